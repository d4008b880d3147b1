"""What a connection holds when nobody reads: bounded, and for all places less than the container has."""

from __future__ import annotations

import asyncio
import hashlib
import re
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime.ingress.buffers import (
    CHUNK_BYTES,
    CONNECTION_HELD_BYTES,
    KERNEL_BUFFER_BYTES,
    KERNEL_HELD_BYTES,
    READER_HELD_BYTES,
    WRITER_HELD_BYTES,
    bound,
)
from runtime.ingress.forward import DRAIN_SECONDS, MAX_CONNECTIONS, UNREAD_SECONDS, Forwarder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

STACK = Path(__file__).parents[3] / "compose" / "stack.yaml"
STALLED = 12
MEGABYTE = bytes(range(250)) * 4_000
# Measured and rounded up: the interpreter with its imports; the tasks and transports of a connection.
PROCESS_BYTES = 24 * 1024 * 1024
OBJECTS_BYTES = 16 * 1024


class Held:
    """The forwarder's own streams, and an event for each time one of its writers is told to wait."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.writers: list[asyncio.StreamWriter] = []

        def noted(writer: asyncio.StreamWriter) -> None:
            bound(writer)
            self.writers.append(writer)

        monkeypatch.setattr("runtime.ingress.forward.bound", noted)

    @staticmethod
    def read(writer: asyncio.StreamWriter) -> int:
        """Bytes that lie in the reader of the same socket."""
        protocol = writer.transport.get_protocol()
        reader = protocol._stream_reader  # type: ignore[attr-defined]  # nothing public tells
        return 0 if reader is None else len(reader._buffer)

    @staticmethod
    def unwritten(writer: asyncio.StreamWriter) -> int:
        return writer.transport.get_write_buffer_size()

    @classmethod
    def full(cls, writer: asyncio.StreamWriter) -> bool:
        """Whether it waits to write, and has stopped reading: then no buffer of it grows any more."""
        return cls.unwritten(writer) > 0 and not writer.transport.is_reading()  # type: ignore[attr-defined]


class Front:
    """A front that answers, or keeps what it is sent, or reads nothing and sends without end."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.mode = "stall"
        self.received = bytearray()
        self.release = asyncio.Event()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await getattr(self, self.mode)(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.transport.abort()

    async def stall(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            writer.write(bytes(65_536))
            await writer.drain()

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(MEGABYTE)
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self.release.wait()
        while chunk := await reader.read(1_000):
            self.received += chunk
            await asyncio.sleep(0)
        writer.write(b"k")
        await writer.drain()
        writer.close()
        await writer.wait_closed()


@pytest.fixture
async def front() -> AsyncGenerator[Front, None]:
    with tempfile.TemporaryDirectory() as folder:
        made = Front(Path(folder) / "local.sock")
        server = await asyncio.start_unix_server(made.accept, str(made.path), limit=2_048)
        yield made
        server.close()


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    return Held(monkeypatch)


def reluctant(port: int) -> socket.socket:
    """A client's socket with little room for answers."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    client.connect(("127.0.0.1", port))
    client.setblocking(False)  # noqa: FBT003  the standard library's signature
    return client


def push(client: socket.socket) -> None:
    """Send as much as the kernel takes."""
    try:
        while client.send(bytes(65_536)):
            pass
    except BlockingIOError:
        return


async def stalled(port: int, held: Held, count: int) -> list[socket.socket]:
    """`count` clients that send without end and read nothing, once all buffers of the forwarder are full."""
    clients = [reluctant(port) for _ in range(count)]
    async with asyncio.timeout(30):
        while len(held.writers) < 2 * count or not all(map(held.full, held.writers)):
            for client in clients:
                push(client)
            await asyncio.sleep(0)
    return clients


async def test_connections_stalled_both_ways_hold_no_more_than_their_bounds(front: Front, held: Held) -> None:
    forwarder = Forwarder(front.path)
    await forwarder.start("127.0.0.1", 0)
    clients = await stalled(forwarder.port, held, STALLED)
    assert forwarder.open_connections == STALLED
    for writer in held.writers:
        assert 0 < held.read(writer) <= READER_HELD_BYTES
        assert 0 < held.unwritten(writer) <= WRITER_HELD_BYTES
    everything = sum(held.read(writer) + held.unwritten(writer) for writer in held.writers)
    assert everything <= STALLED * CONNECTION_HELD_BYTES
    for client in clients:
        client.close()
    await forwarder.stop(0)


async def test_the_kernel_holds_little_of_either_socket(front: Front, held: Held) -> None:
    forwarder = Forwarder(front.path)
    await forwarder.start("127.0.0.1", 0)
    clients = await stalled(forwarder.port, held, 1)
    for writer in held.writers:
        sock = writer.get_extra_info("socket")
        for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
            assert sock.getsockopt(socket.SOL_SOCKET, option) <= 2 * KERNEL_BUFFER_BYTES
    clients[0].close()
    await forwarder.stop(0)


def test_all_places_stalled_fit_into_the_container() -> None:
    ingress = STACK.read_text(encoding="utf-8").split("\n  ingress:\n")[1].split("\n  front:\n")[0]
    found = re.search(r"^    mem_limit: (\d+)m$", ingress, re.MULTILINE)
    assert found is not None
    limit = int(found[1]) * 1024 * 1024
    each = CONNECTION_HELD_BYTES + OBJECTS_BYTES + KERNEL_HELD_BYTES
    assert limit - PROCESS_BYTES > MAX_CONNECTIONS * each
    assert CONNECTION_HELD_BYTES <= 48 * 1024


@pytest.mark.parametrize("piece", [65_536, 1_000])
async def test_a_whole_answer_comes_through_also_to_a_slow_reader(front: Front, piece: int) -> None:
    front.mode = "answer"
    forwarder = Forwarder(front.path)
    await forwarder.start("127.0.0.1", 0)
    client = reluctant(forwarder.port)
    reader, writer = await asyncio.open_connection(sock=client, limit=2_048)
    writer.write(b"x")
    received = bytearray()
    async with asyncio.timeout(30):
        while chunk := await reader.read(piece):
            received += chunk
            await asyncio.sleep(0)
    assert hashlib.sha256(received).digest() == hashlib.sha256(MEGABYTE).digest()
    writer.close()
    await writer.wait_closed()
    await forwarder.stop(0)


async def test_a_whole_upload_comes_through_also_to_a_front_that_waits_with_reading(
    front: Front, held: Held
) -> None:
    front.mode = "take"
    forwarder = Forwarder(front.path, unread_seconds=0.001)
    await forwarder.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    writer.write(MEGABYTE)
    writer.write_eof()
    async with asyncio.timeout(30):
        while len(held.writers) < 2 or not held.unwritten(held.writers[1]):  # noqa: ASYNC110  their state
            await asyncio.sleep(0)
        front.release.set()
        assert await reader.read(-1) == b"k"
    assert hashlib.sha256(front.received).digest() == hashlib.sha256(MEGABYTE).digest()
    writer.close()
    await writer.wait_closed()
    await forwarder.stop(0)


async def test_a_client_that_reads_nothing_is_cut_and_leaves_nothing_behind(front: Front, held: Held) -> None:
    forwarder = Forwarder(front.path, unread_seconds=0.05)
    await forwarder.start("127.0.0.1", 0)
    client = reluctant(forwarder.port)
    client.send(b"x")
    async with asyncio.timeout(30):
        while len(held.writers) < 2 or forwarder.open_connections:  # noqa: ASYNC110  its state
            await asyncio.sleep(0)
    assert [held.unwritten(writer) for writer in held.writers] == [0, 0]
    client.close()
    await forwarder.stop(0)


def test_who_reads_nothing_is_cut_before_the_drain_at_stop_ends() -> None:
    assert UNREAD_SECONDS < DRAIN_SECONDS
    assert CHUNK_BYTES <= 8 * 1024
