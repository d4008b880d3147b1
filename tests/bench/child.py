"""Servers as processes of their own, told what to do over their stdin, and gone when that closes.

Why processes: client and servers in one would share an event loop and a heap, and it is the server's time
and memory that are asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tests.bench.wire import Address

if TYPE_CHECKING:
    import socket
    from collections.abc import Awaitable, Callable, Iterator

    import uvicorn

REPO = Path(__file__).resolve().parents[2]
END_SECONDS = 30.0


async def stdin_lines(take: Callable[[str], Awaitable[None]]) -> None:
    """Give each line of stdin to `take`, until it closes."""
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), sys.stdin
    )
    while line := await reader.readline():
        await take(line.decode().strip())


def say(**facts: Any) -> None:
    """Tell the parent something."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


async def serve_until_stdin_closes(server: uvicorn.Server, listener: socket.socket, port: int) -> None:
    """Serve, having said where, until the parent lets go."""
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    say(port=port)

    async def ignore(_line: str) -> None:
        return

    await stdin_lines(ignore)
    server.should_exit = True
    await serving


class Child:
    """A server that runs, seen from here."""

    def __init__(self, process: subprocess.Popen[str], address: Address) -> None:
        self._process = process
        self.pid = process.pid
        self.address = address

    def ask(self, word: str) -> dict[str, Any]:
        """Send a line and return what the child says to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(word + "\n")
        self._process.stdin.flush()
        return _heard(self._process)


@contextlib.contextmanager
def child(module: str, log: Path, *arguments: str) -> Iterator[Child]:
    """Run `python -m module` while the block runs; its stderr goes into the file `log`."""
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            cwd=REPO,
            # The SDK reads these as it is imported: each server has those that its own code sets.
            env={name: value for name, value in os.environ.items() if not name.startswith("OTEL_")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        try:
            yield Child(process, Address(_heard(process, log)["port"]))
        finally:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(END_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()


def _heard(process: subprocess.Popen[str], log: Path | None = None) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    if not line:
        end = log.read_text(errors="replace")[-2000:] if log else ""
        raise click.ClickException(f"{process.args!r} ended before its time. {end}")
    return dict(json.loads(line))
