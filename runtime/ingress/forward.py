"""The way in: bytes from a TCP port to the front's Unix socket and back, and nothing else.

Why a process of its own: the front has no network, so something must have the port, and whatever that is
holds nothing worth taking (architecture §2). It reads no byte of what it carries. Standard library only: it
must stay small.

Each direction is copied with backpressure and holds no more than `buffers` says. A client may stop sending
and still read its stream; when the front has ended its side, the connection is over. It also ends when
neither direction moved for `idle_seconds`, or when the client has read nothing for `unread_seconds` of what
waits for it. The front has no such limit: it reads no further request while a turn answers one. The front
hears of a client with its first byte: one that sends none is closed after `first_byte_seconds`, and makes
room at once when all places are taken, the oldest first.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime import layout
from runtime.ingress.buffers import CHUNK_BYTES, READER_LIMIT_BYTES, bound, bound_kernel

if TYPE_CHECKING:
    from pathlib import Path

MAX_CONNECTIONS = 512
CONNECT_SECONDS = 2.0
FIRST_BYTE_SECONDS = 15.0
# A blocking answer is silent for as long as a turn takes; a stream pings every 3 s.
IDLE_SECONDS = layout.TURN_MAX_SECONDS + 30.0
LINGER_SECONDS = 2.0  # for the client to read the front's last words and to close
UNREAD_SECONDS = 30.0  # as long as the front waits for who reads nothing
DRAIN_SECONDS = 50.0  # the front ends its turns within 45, and is killed after 55

UNAVAILABLE = (
    b"HTTP/1.1 502 Bad Gateway\r\ncontent-type: text/plain\r\ncontent-length: 20\r\nconnection: close\r\n\r\n"
    b"The agent is not up\n"
)
BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\ncontent-length: 21\r\n"
    b"retry-after: 5\r\nconnection: close\r\n\r\nToo many connections\n"
)


@dataclass(slots=True)
class _Activity:
    at: float


class Forwarder:
    """Forwards connections to the socket at `target`, at most `max_connections` at once."""

    def __init__(
        self,
        target: Path,
        *,
        max_connections: int = MAX_CONNECTIONS,
        idle_seconds: float = IDLE_SECONDS,
        connect_seconds: float = CONNECT_SECONDS,
        first_byte_seconds: float = FIRST_BYTE_SECONDS,
        unread_seconds: float = UNREAD_SECONDS,
    ) -> None:
        self._target = str(target)
        self._max_connections = max_connections
        self._idle_seconds = idle_seconds
        self._connect_seconds = connect_seconds
        self._first_byte_seconds = first_byte_seconds
        self._unread_seconds = unread_seconds
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()
        # Those that have sent nothing so far, oldest first.
        self._silent: dict[asyncio.Task[None], asyncio.StreamWriter] = {}

    @property
    def open_connections(self) -> int:
        """Connections that have a place now."""
        return len(self._connections)

    @property
    def port(self) -> int:
        """The port that is listened on; 0 before `start`."""
        sockets = self._server.sockets if self._server else ()
        return int(sockets[0].getsockname()[1]) if sockets else 0

    async def start(self, host: str, port: int) -> None:
        """Listen. Raises OSError when the address cannot be had."""
        self._server = await asyncio.start_server(
            self._accepted, host, port, limit=READER_LIMIT_BYTES, backlog=256, start_serving=False
        )
        for sock in self._server.sockets:
            bound_kernel(sock)
        await self._server.start_serving()

    async def stop(self, drain_seconds: float = DRAIN_SECONDS) -> None:
        """Take no new connection, let those that are open end within `drain_seconds`, then cut them."""
        if self._server is not None:
            self._server.close()
        if self._connections:
            await asyncio.wait(set(self._connections), timeout=drain_seconds)
        for task in set(self._connections):
            task.cancel()
        if self._connections:
            await asyncio.wait(set(self._connections), timeout=1.0)
        if self._server is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):  # since Python 3.12 it waits for connections too
                    await self._server.wait_closed()

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        if task is None:
            return
        bound(writer)
        if len(self._connections) >= self._max_connections and not self._drop_silent():
            await _say(writer, BUSY)
            return
        self._connections.add(task)
        self._silent[task] = writer
        try:
            await self._forward(reader, writer, task)
        finally:
            self._silent.pop(task, None)
            self._connections.discard(task)
            await _close(writer)

    def _drop_silent(self) -> bool:
        """Give the place of the connection that has been silent longest to another; False when none is."""
        if not self._silent:
            return False
        oldest = next(iter(self._silent))
        self._connections.discard(oldest)
        self._silent.pop(oldest).transport.abort()
        return True

    async def _forward(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, task: asyncio.Task[None]
    ) -> None:
        try:
            async with asyncio.timeout(self._first_byte_seconds):
                first = await reader.read(CHUNK_BYTES)
        except (OSError, TimeoutError):
            return
        if not first:
            return
        self._silent.pop(task, None)
        try:
            async with asyncio.timeout(self._connect_seconds):
                back_reader, back_writer = await asyncio.open_unix_connection(
                    self._target, limit=READER_LIMIT_BYTES
                )
        except (OSError, TimeoutError):
            await _say(writer, UNAVAILABLE)
            return
        activity = _Activity(asyncio.get_running_loop().time())
        bound(back_writer)
        sending = asyncio.create_task(_copy(reader, back_writer, activity, first=first))
        del first
        answering = asyncio.create_task(
            _copy(back_reader, writer, activity, unread_seconds=self._unread_seconds)
        )
        try:
            await self._watch(sending, answering, activity)
        finally:
            for copy in (sending, answering):
                copy.cancel()
            await asyncio.gather(sending, answering, return_exceptions=True)
            await _close(back_writer)

    async def _watch(
        self, sending: asyncio.Task[bool], answering: asyncio.Task[bool], activity: _Activity
    ) -> None:
        """Return when the front has ended, one direction has broken, or neither has moved for too long."""
        pending = {sending, answering}
        while not answering.done():
            rest = activity.at + self._idle_seconds - asyncio.get_running_loop().time()
            if rest <= 0:
                return
            done, pending = await asyncio.wait(pending, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
            if any(not copy.result() for copy in done):
                return
        await asyncio.wait({sending}, timeout=LINGER_SECONDS)


async def _copy(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    activity: _Activity,
    *,
    first: bytes = b"",
    unread_seconds: float | None = None,
) -> bool:
    """Copy one direction to its end and pass the end on; False when either side broke or read nothing."""
    clock = asyncio.get_running_loop()
    try:
        chunk = first or await reader.read(CHUNK_BYTES)
        del first
        while chunk:
            activity.at = clock.time()
            writer.write(chunk)
            chunk = b""
            async with asyncio.timeout(unread_seconds):
                await writer.drain()
            activity.at = clock.time()
            chunk = await reader.read(CHUNK_BYTES)
        if writer.can_write_eof():
            writer.write_eof()
    except TimeoutError:  # what waits for such a reader goes with its place, not a second later
        writer.transport.abort()
        return False
    except OSError:
        return False
    return True


async def _say(writer: asyncio.StreamWriter, answer: bytes) -> None:
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(1.0):
            writer.write(answer)
            await writer.drain()
    await _close(writer)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        async with asyncio.timeout(1.0):
            await writer.wait_closed()
    except TimeoutError:  # it would stay until the other side reads, without a place that counts it
        writer.transport.abort()
    except OSError:
        return
