"""A client that costs little: HTTP/1.1 over asyncio, by hand, one prepared request after the other.

Why no HTTP library: measured here, httpx2 takes more of a core for a request than the front takes to answer
it, and would be what is measured. What it leaves out: it takes answers with a Content-Length alone; a stream
is read only as bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

END_OF_HEAD = b"\r\n\r\n"
SECONDS = 30.0


class BadAnswer(Exception):
    """The server said something else than what is measured."""


@dataclass(frozen=True, slots=True)
class Address:
    """Where a server listens, on the loopback address."""

    port: int
    host: str = "127.0.0.1"


def get(path: str) -> bytes:
    """Return a GET request as bytes."""
    return f"GET {path} HTTP/1.1\r\nhost: bench\r\n\r\n".encode()


def post(body: dict[str, Any]) -> bytes:
    """Return a POST request of JSON to `/` as bytes."""
    content = json.dumps(body).encode()
    head = (
        f"POST / HTTP/1.1\r\nhost: bench\r\ncontent-type: application/json\r\ncontent-length: {len(content)}"
    )
    return head.encode() + END_OF_HEAD + content


def message(method: str, text: str, context: str | None = None) -> bytes:
    """Return a 0.3 request that sends a text, as a client would: with a message id of its own."""
    value = {
        "kind": "message",
        "role": "user",
        "messageId": str(uuid.uuid4()),
        "parts": [{"kind": "text", "text": text}],
    }
    if context is not None:
        value["contextId"] = context
    return post({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": value}})


class Connection(asyncio.Protocol):
    """One keep-alive connection: a request, its answer, the next request."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[bytes] | None = None
        self._data = b""
        self._length = -1

    @classmethod
    async def open(cls, address: Address) -> Self:
        """Connect."""
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(cls, address.host, address.port)
        return connection

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._data += data
        if self._length < 0:
            end = self._data.find(END_OF_HEAD)
            if end < 0:
                return
            self._length = end + 4 + _content_length(self._data[:end])
        if len(self._data) >= self._length and self._answer is not None:
            answer, self._answer = self._answer, None
            if not answer.done():
                answer.set_result(self._data)
            self._data, self._length = b"", -1

    def connection_lost(self, exc: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(exc or BadAnswer("the server closed the connection"))

    async def ask(self, request: bytes) -> bytes:
        """Send a request and return head and body of its answer, as they came."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        """Hang up."""
        if self._transport is not None:
            self._transport.close()


def _content_length(head: bytes) -> int:
    lower = head.lower()
    at = lower.find(b"\r\ncontent-length:")
    if at < 0:
        raise BadAnswer(f"no Content-Length in {head[:200]!r}")
    return int(lower[at + 17 :].split(b"\r\n", 1)[0])


@dataclass(frozen=True, slots=True)
class Load:
    """What a burst of requests came to; `client_seconds` is the CPU time that this process took for it."""

    requests: int
    seconds: float
    client_seconds: float

    @property
    def rate(self) -> float:
        return self.requests / self.seconds


async def ask(connection: Connection, request: bytes, expected: bytes) -> None:
    """Ask once. Raises BadAnswer for an answer that is no 200 or does not hold `expected`."""
    answer = await connection.ask(request)
    if not answer.startswith(b"HTTP/1.1 200") or expected not in answer:
        raise BadAnswer(f"not what is measured: {answer[:1000]!r}")


async def ask_all(address: Address, requests: Iterator[bytes], expected: bytes, *, connections: int) -> Load:
    """Ask over `connections` at once, each the next request when it has its answer, until there are no more.

    Raises BadAnswer as `ask` does, within a group of its own.
    """
    open_ones = [await Connection.open(address) for _ in range(connections)]
    asked = 0
    begin, cpu = time.perf_counter(), time.process_time()

    async def one(connection: Connection) -> None:
        nonlocal asked
        for request in requests:
            async with asyncio.timeout(SECONDS):
                await ask(connection, request, expected)
            asked += 1

    try:
        async with asyncio.TaskGroup() as group:
            for connection in open_ones:
                group.create_task(one(connection))
        return Load(asked, time.perf_counter() - begin, time.process_time() - cpu)
    finally:
        for connection in open_ones:
            connection.close()


def for_seconds(seconds: float, request: Callable[[], bytes]) -> Iterator[bytes]:
    """Return requests for a while, which begins with the first."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        yield request()


class Stream:
    """A `message/stream` whose reader may go away in the middle."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def open(cls, address: Address, request: bytes) -> Self:
        """Connect and send the request."""
        reader, writer = await asyncio.open_connection(address.host, address.port)
        writer.write(request)
        return cls(reader, writer)

    async def until(self, expected: bytes) -> bytes:
        """Read until the bytes have come, and return all that was read. Raises BadAnswer at the end."""
        read = b""
        async with asyncio.timeout(SECONDS):
            while expected not in read:
                piece = await self._reader.read(65536)
                if not piece:
                    raise BadAnswer(f"the stream ended without {expected!r}: {read[-1000:]!r}")
                read += piece
        return read

    async def drain(self) -> None:
        """Read and forget until the stream ends."""
        with contextlib.suppress(OSError):
            while await self._reader.read(65536):
                pass

    async def close(self) -> None:
        """Hang up."""
        self._writer.close()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
