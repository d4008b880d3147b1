"""Memory of the front after 10,000 messages and 2,000 abandoned streams ÷ that after 500 messages.

One process throughout. Every message has a text and a context of its own, so that nothing is small by being
the same. Of the streams, whose reader goes away at the first words of the answer, half are of turns that soon
end by themselves, and half of turns that never would: the policy for turns that nobody watches ends them.

Resident memory as the kernel sees it decides. At the end the same is asked again after a garbage collection,
and after the allocator has given back what it keeps: what only then goes was no leak of the front's. The
stores say what they hold, so that growth can be told from filling up; and the interpreter, how many blocks of
memory are in use, which grow with a leak and not with the holes between them.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tests.bench.child import Child, child
from tests.bench.numbers import Row
from tests.bench.wanted import WANTED
from tests.bench.wire import Stream, ask_all, message

if TYPE_CHECKING:
    from collections.abc import Iterator

FIRST = 500
SENDS = 10_000
STREAMS = 2_000
BLOCKS = 5
CONNECTIONS = 8
READERS = CONNECTIONS  # as many at once, because what stays resident follows the most that was ever under way
SLOTS = 64
SETTLE_SECONDS = 30.0
SHOWN = b'"artifact-update"'


@dataclass
class Curve:
    """What the front held after each part of the work."""

    front: Child
    points: list[tuple[str, dict[str, int]]] = field(default_factory=list)

    def take(self, name: str, word: str = "measure") -> dict[str, int]:
        """Wait until no turn runs, and measure. Raises ClickException when turns do not end."""
        end = time.monotonic() + SETTLE_SECONDS
        while (held := self.front.ask(word))["turns"]:
            if time.monotonic() > end:
                raise click.ClickException(f"{held['turns']} turns did not end within {SETTLE_SECONDS:.0f} s")
            time.sleep(0.1)
        self.points.append((name, held))
        click.echo(f"  {point(name, held)}", err=True)
        return held


def point(name: str, held: dict[str, int]) -> str:
    """Return one line of the curve."""
    return (
        f"{name}: {held['resident'] / 1e6:.1f} MB resident, {held['blocks'] / 1e3:.0f} thousand "
        f"blocks; {held['tasks']} tasks of "
        f"{held['task_bytes'] / 1e6:.2f} MB, {held['contexts']} contexts of "
        f"{held['memory_bytes'] / 1e6:.2f} MB, {held['asyncio_tasks']} asyncio tasks"
    )


def questions(count: int, kind: str = "Who was she") -> Iterator[str]:
    """Return as many texts, each its own, of about 150 characters."""
    return (f"{kind}? {secrets.token_hex(70)}" for _ in range(count))


async def send(front: Child, count: int) -> None:
    """Send messages and read their answers."""
    requests = (message("message/send", text) for text in questions(count))
    await ask_all(front.address, requests, b'"completed"', connections=CONNECTIONS)


async def abandon(front: Child, count: int) -> None:
    """Open streams, and leave each as soon as its answer begins to show."""
    kinds = (next(questions(1, "hold" if number % 2 else "short")) for number in range(count))

    async def reader() -> None:
        for text in kinds:
            stream = await Stream.open(front.address, message("message/stream", text))
            await stream.until(SHOWN)
            await stream.close()

    async with asyncio.TaskGroup() as group:
        for _ in range(READERS):
            group.create_task(reader())


def measure(*, quick: bool) -> list[Row]:
    """Return the ratio, with the curve that led to it."""
    sends, streams = (SENDS // 10, STREAMS // 10) if quick else (SENDS, STREAMS)
    with (
        tempfile.TemporaryDirectory() as folder,
        child("tests.bench.front_process", Path(folder) / "front.log", str(SLOTS)) as front,
    ):
        curve = Curve(front)
        curve.take("at the start")
        asyncio.run(send(front, FIRST))
        first = last = curve.take(f"after {FIRST} messages")["resident"]
        for block in range(1, BLOCKS + 1):
            asyncio.run(send(front, sends // BLOCKS))
            curve.take(f"and {sends // BLOCKS * block} more")
        for block in range(1, BLOCKS + 1):
            asyncio.run(abandon(front, streams // BLOCKS))
            last = curve.take(f"and {streams // BLOCKS * block} abandoned streams")["resident"]
        end = curve.take("once more", "collect")
    rest = (
        f"{end['collected'] / 1e6:.1f} MB after a garbage collection, "
        f"{end['trimmed'] / 1e6:.1f} MB after the allocator gave back what it can"
    )
    return [
        Row(
            "memory of the front, after all ÷ after 500 messages",
            last / first,
            digits=3,
            wanted=WANTED["front-memory"],
            said=f"{last / 1e6:.1f} ÷ {first / 1e6:.1f} MB; of the former {rest}",
            parts={name: float(held["resident"]) for name, held in curve.points},
        )
    ]
