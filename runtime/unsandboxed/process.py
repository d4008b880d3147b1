"""One run of the bare CLI as a child process: fed one line, read in bounded pieces, ended with its family.

It is started through launch.py, so that it ends with us however we end. Why not asyncio's own subprocess:
whether its `wait` returns when the process has ended or only when its pipes have, differs between Python
releases, and here a grandchild may hold a pipe for ever. So the pipes are plain asyncio streams, and the end
of the process is a readable pidfd.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Final

from runtime.spawner.output import STDERR_TAIL_BYTES
from runtime.unsandboxed import launch
from runtime.unsandboxed.family import kill_family

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

CHUNK_BYTES: Final = 64 * 1024
DRAIN_SECONDS: Final = 0.3  # for what a process that has ended left in its pipe, whoever else holds that
GONE_SECONDS: Final = 5.0  # a killed process that is not gone by then hangs in the kernel


class _Feeding(asyncio.BaseProtocol):
    """Knows whether stdin is closed: its transport raises when it is aborted after that (seen, 3.11)."""

    closed = False

    def connection_lost(self, exc: Exception | None) -> None:
        """Note it."""
        del exc  # a child that reads no further is no failure
        self.closed = True


class Child:
    """A running CLI. Whoever starts one calls `end` on every path; `kill` may come before it."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        loop = asyncio.get_running_loop()
        self._process = process
        self._out = asyncio.StreamReader(limit=CHUNK_BYTES)
        self._err = asyncio.StreamReader(limit=CHUNK_BYTES)
        self._outlets: list[asyncio.ReadTransport] = []
        self._feed: tuple[asyncio.WriteTransport, _Feeding] | None = None
        self._reading: asyncio.Task[bytes] | None = None
        self._telling: asyncio.Task[None] | None = None
        self._tail = bytearray()
        self._drained_by = math.inf
        self._gone = asyncio.Event()
        self._pidfd = os.pidfd_open(process.pid)
        loop.add_reader(self._pidfd, self._is_gone)

    @classmethod
    async def start(cls, argv: Sequence[str], *, cwd: Path, environ: Mapping[str, str], line: bytes) -> Child:
        """Start a program in a session of its own and give it one line. Raises OSError when it cannot.

        The first of `argv` is the program's absolute path.
        """
        reading, report = os.pipe()
        with open(reading, "rb", buffering=0) as told:  # noqa: ASYNC230, PTH123  a pipe's end
            try:
                process = subprocess.Popen(  # noqa: S603, ASYNC220  an argv list, no shell
                    [sys.executable, "-I", "-S", launch.__file__, str(os.getpid()), str(report), *argv],
                    cwd=cwd,
                    env=dict(environ),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,
                    pass_fds=(report,),
                )
            finally:
                os.close(report)
            return await cls._started(process, told, line)

    @classmethod
    async def _started(cls, process: subprocess.Popen[bytes], told: IO[bytes], line: bytes) -> Child:
        try:
            child = cls(process)
        except BaseException:  # a kernel without pidfds, say: no process stays behind; it passes on
            process.kill()
            process.communicate()
            raise
        try:
            await child._connect(process, line)
            await _begun(told)
        except BaseException:  # cancellation too leaves no process behind, and passes on
            child.kill()
            await asyncio.shield(child.end())
            raise
        return child

    async def _connect(self, process: subprocess.Popen[bytes], line: bytes) -> None:
        loop = asyncio.get_running_loop()
        for reader, pipe in ((self._out, process.stdout), (self._err, process.stderr)):
            protocol = asyncio.StreamReaderProtocol(reader)
            transport, _protocol = await loop.connect_read_pipe(lambda one=protocol: one, _there(pipe))  # type: ignore[misc]
            self._outlets.append(transport)
        self._telling = asyncio.create_task(self._tell())
        self._feed = await loop.connect_write_pipe(_Feeding, _there(process.stdin))
        self._feed[0].write(line)  # waits in our memory for a child that does not read: it is bounded
        self._feed[0].write_eof()

    @property
    def gone(self) -> bool:
        """Whether the process itself has ended, whoever may still hold its pipes."""
        return self._gone.is_set()

    @property
    def untrusted_stderr_tail(self) -> str:
        """The last STDERR_TAIL_BYTES of stderr, for logs alone."""
        return self._tail.decode("utf-8", "replace").strip()

    async def read(self, until: float) -> bytes | None:
        """Return the next piece of stdout, b"" at its end, None when the loop's clock has passed `until`.

        The end is also when the process has ended and DRAIN_SECONDS have passed.
        """
        loop = asyncio.get_running_loop()
        if self._reading is None:
            self._reading = asyncio.create_task(self._out.read(CHUNK_BYTES))
        leaving = asyncio.create_task(self._gone.wait())
        try:
            while True:
                if self._gone.is_set():
                    self._drained_by = min(self._drained_by, loop.time() + DRAIN_SECONDS)
                if loop.time() >= until:
                    return None
                if loop.time() >= self._drained_by:
                    return b""
                if self._reading.done():
                    break
                watched = {self._reading} if leaving.done() else {self._reading, leaving}
                left = min(until, self._drained_by) - loop.time()
                await asyncio.wait(watched, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
        done, self._reading = self._reading, None
        return done.result()

    async def wait_gone(self, until: float) -> bool:
        """Wait until the loop's clock has passed `until` for the process to end by itself; say if it did."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(until):
                await self._gone.wait()
        return self._gone.is_set()

    def kill(self) -> None:
        """Kill the process and all that it started, at once. Nothing happens after `end`."""
        if self._process.returncode is None:
            kill_family(self._process.pid)

    async def end(self) -> int | None:
        """Kill what is left, wait for it, close the pipes; return the exit code (None: it does not go away).

        A process that had ended by itself keeps its own exit code.
        """
        self.kill()
        gone = await self.wait_gone(asyncio.get_running_loop().time() + GONE_SECONDS)
        code = self._process.poll() if gone else None
        if self._telling is not None:
            await asyncio.wait({self._telling}, timeout=DRAIN_SECONDS)
        for task in (self._reading, self._telling):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        for outlet in self._outlets:
            outlet.close()
        if self._feed is not None and not self._feed[1].closed:
            self._feed[0].abort()
        await asyncio.sleep(0)  # the transports close what is theirs
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            with contextlib.suppress(OSError):
                _there(pipe).close()
        if self._pidfd >= 0:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = -1
        return code

    def _is_gone(self) -> None:
        asyncio.get_running_loop().remove_reader(self._pidfd)
        self._gone.set()

    async def _tell(self) -> None:
        """Keep the end of stderr, and read on whatever comes: a full pipe would hold the child."""
        while chunk := await self._err.read(CHUNK_BYTES):
            self._tail += chunk
            del self._tail[:-STDERR_TAIL_BYTES]


async def _begun(told: IO[bytes]) -> None:
    """Wait until the launcher has become the program. Raises OSError when it cannot."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    transport, _protocol = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, told)
    try:
        number = await reader.read()
    finally:
        transport.close()
        await asyncio.sleep(0)  # it closes the pipe
    if number:
        raise OSError(int(number), os.strerror(int(number)))


def _there(pipe: IO[bytes] | None) -> IO[bytes]:
    if pipe is None:
        raise OSError("the child has no pipe")
    return pipe
