"""What asks a process that runs turns to end: held until it is heard, and each of it heard."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime.turn import ending

REPO = Path(__file__).parents[3]

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator


@pytest.fixture
async def asked() -> AsyncGenerator[asyncio.Event, None]:
    yield asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ending.SIGNALS:
        loop.remove_signal_handler(number)


# In a process of its own: what is held is held in one thread, and a test run has others.
HELD = """
import asyncio, os, signal, sys
from runtime.turn import ending

async def main():
    asked = asyncio.Event()
    ending.hear(asked.set)
    async with asyncio.timeout(10):
        await asked.wait()
    print("heard")

number = signal.Signals(int(sys.argv[1]))
signal.signal(number, signal.SIG_DFL)
ending.hold()
os.kill(os.getpid(), number)
assert number in signal.sigpending()
asyncio.run(main())
"""


@pytest.mark.parametrize("number", ending.SIGNALS)
def test_a_signal_that_came_while_they_were_held_is_heard(number: signal.Signals) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HELD, str(int(number))],
        cwd=REPO,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "heard\n"), done.stderr


@pytest.mark.parametrize("number", ending.SIGNALS)
async def test_a_signal_that_comes_later_is_heard(asked: asyncio.Event, number: signal.Signals) -> None:
    ending.hear(asked.set)
    os.kill(os.getpid(), number)
    async with asyncio.timeout(10):
        assert await asked.wait()


async def test_a_hangup_that_is_ignored_stays_so(asked: asyncio.Event) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        ending.hear(asked.set)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


async def test_a_reader_that_leaves_is_heard_of(asked: asyncio.Event) -> None:
    reading, writing = os.pipe()
    ending.hear_reader_leave(writing, asked.set)
    os.write(writing, b"words that nobody has read yet")
    await asyncio.sleep(0)
    assert not asked.is_set()
    os.close(reading)
    async with asyncio.timeout(10):
        await asked.wait()
    os.close(writing)


async def test_what_is_no_pipe_is_left_alone(asked: asyncio.Event, tmp_path: Path) -> None:
    descriptor = os.open(tmp_path / "file", os.O_CREAT | os.O_WRONLY)
    ending.hear_reader_leave(descriptor, asked.set)
    assert not asyncio.get_running_loop().remove_reader(descriptor)
    os.close(descriptor)
