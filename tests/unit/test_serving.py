"""How long a connection may keep a service waiting: request heads, readers that do not read, garbage."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

import h11
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from runtime.front.settings import FrontSettings
from runtime.inflow import SLICE_BYTES
from runtime.server import server_config
from runtime.serving import UNIX_SEND_BYTES, UNREAD_LEAST_BYTES, DeadlineProtocol, QuietServer, unread_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from starlette.requests import Request

GET = b"GET /hello HTTP/1.1\r\nhost: x\r\n\r\n"


class Impatient(DeadlineProtocol):
    head_seconds = 0.1
    unread_seconds = 0.1


class Served:
    """A server whose head deadline is a tenth of a second, and what its app needs."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.waiting = asyncio.Event()
        self.over = asyncio.Event()
        self.port = 0
        self.server: Any = None

    def app(self) -> Starlette:
        async def hello(_request: Request) -> Response:
            return PlainTextResponse("hello")

        async def slow(_request: Request) -> Response:
            self.waiting.set()
            await self.release.wait()
            return PlainTextResponse("slow")

        async def endless(_request: Request) -> Response:
            return StreamingResponse(self.flood())

        return Starlette(
            routes=[
                Route("/hello", hello),
                Route("/slow", slow),
                Route("/endless", endless),
                Route("/unread", slow, methods=["POST"]),
            ]
        )

    async def flood(self) -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x" * 65536
                await asyncio.sleep(0)  # once the client is gone, sending waits for nothing
        finally:
            self.over.set()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@pytest.fixture
async def served() -> AsyncGenerator[Served, None]:
    made = Served()
    listener = socket.create_server(("127.0.0.1", 0))
    made.port = listener.getsockname()[1]
    config = uvicorn.Config(
        made.app(), http=Impatient, ws="none", log_config=None, lifespan="off", timeout_graceful_shutdown=1
    )
    server = made.server = QuietServer(config)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    await server.accepting.wait()
    yield made
    made.release.set()
    server.should_exit = True
    await task
    listener.close()


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Read to the end, which must come; a reset is an end."""
    received = b""
    async with asyncio.timeout(5):
        with contextlib.suppress(ConnectionResetError):
            while chunk := await reader.read(65536):
                received += chunk
    return received


@pytest.mark.control("WIRE-03")
@pytest.mark.parametrize("half", [b"", b"GET /hello HT", b"GET /hello HTTP/1.1\r\nhost: x\r\nx: "])
async def test_a_head_that_does_not_come_is_cut_off(served: Served, half: bytes) -> None:
    reader, writer = await served.connect()
    writer.write(half)
    assert await ended(reader) == b""
    await closed(writer)


@pytest.mark.control("WIRE-03")
async def test_bytes_that_come_one_by_one_give_a_head_no_more_time(served: Served) -> None:
    reader, writer = await served.connect()
    ending = asyncio.create_task(ended(reader))

    async def trickle() -> None:
        writer.write(b"GET /hello HTTP/1.1\r\nx: ")
        while not ending.done():
            writer.write(b"y")
            with contextlib.suppress(OSError):
                await writer.drain()
            await asyncio.wait({ending}, timeout=0.01)

    async with asyncio.timeout(5):
        await trickle()
    assert await ending == b""
    await closed(writer)


@pytest.mark.control("WIRE-03")
async def test_the_next_head_of_a_connection_has_the_same_time(served: Served) -> None:
    reader, writer = await served.connect()
    for _ in range(2):
        writer.write(GET)
        assert (await reader.readuntil(b"hello")).startswith(b"HTTP/1.1 200")
    writer.write(GET[:20])
    assert await ended(reader) == b""
    await closed(writer)


async def test_an_answer_may_take_longer_than_a_head(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(GET.replace(b"/hello", b"/slow"))
    await served.waiting.wait()
    _reader, silent = await served.connect()
    await ended(_reader)  # a head's time and more has passed
    served.release.set()
    assert (await reader.readuntil(b"slow")).startswith(b"HTTP/1.1 200")
    await closed(silent)
    await closed(writer)


@pytest.mark.control("WIRE-03")
async def test_a_client_that_reads_nothing_of_its_answer_is_cut_off(served: Served) -> None:
    _reader, writer = await served.connect()
    writer.write(GET.replace(b"/hello", b"/endless"))
    async with asyncio.timeout(5):
        await served.over.wait()
    assert served.over.is_set()
    await closed(writer)


async def test_garbage_in_the_middle_of_an_answer_ends_the_connection_without_an_exception(
    served: Served,
) -> None:
    failures: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: failures.append(context))
    reader, writer = await served.connect()
    writer.write(b"GET /endless HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
    await reader.read(10)
    writer.write(b"no chunk at all\r\n")
    await ended(reader)
    assert failures == []
    await closed(writer)


def test_the_front_serves_with_the_deadlines_of_its_settings() -> None:
    plain: Any = server_config(Starlette()).http
    assert issubclass(plain, DeadlineProtocol)
    assert plain.head_seconds == FrontSettings().head_seconds <= 10
    assert plain.unread_seconds == FrontSettings().unread_seconds <= 30
    given = FrontSettings(head_seconds=3, unread_seconds=4, keep_alive_seconds=5, head_max_bytes=2048)
    config = server_config(Starlette(), given)
    protocol: Any = config.http
    assert (protocol.head_seconds, protocol.unread_seconds) == (3, 4)
    assert config.timeout_keep_alive == 5
    assert config.h11_max_incomplete_event_size == 2048


@pytest.mark.control("WIRE-03")
async def test_a_turn_of_the_loop_parses_a_few_events_of_one_read(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    fed: list[int] = []
    turns: list[Any] = []
    receive, feed = h11.Connection.receive_data, DeadlineProtocol._feed

    def receiving(connection: h11.Connection, data: bytes) -> None:
        fed.append(len(data))
        receive(connection, data)

    def feeding(protocol: DeadlineProtocol) -> None:
        turns.append(protocol)
        feed(protocol)

    monkeypatch.setattr(h11.Connection, "receive_data", receiving)
    monkeypatch.setattr(DeadlineProtocol, "_feed", feeding)
    reader, writer = await served.connect()
    chunks = b"40\r\n" + b"x" * 64 + b"\r\n"
    head = b"POST /hello HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
    writer.write(head + chunks * 400 + b"0\r\n\r\n" + GET)
    answers = await reader.readuntil(b"\r\n\r\n")
    assert answers.startswith(b"HTTP/1.1 405 ")
    assert (await reader.readuntil(b"\r\nhello")).count(b"HTTP/1.1 200") == 1
    assert max(fed) <= SLICE_BYTES
    assert len(turns) >= len(fed) > 5
    await closed(writer)


@pytest.mark.control("WIRE-03")
async def test_a_body_that_the_app_does_not_read_is_not_held(served: Served) -> None:
    sizes: list[int] = []
    _reader, writer = await served.connect()
    writer.write(b"POST /unread HTTP/1.1\r\nhost: x\r\ncontent-length: 50000000\r\n\r\n")
    await served.waiting.wait()
    (connection,) = served.server.server_state.connections
    for _ in range(200):
        writer.write(b"x" * 65536)
        await asyncio.sleep(0)
        sizes.append(len(connection._held) + len(connection.cycle.body))
    assert 65536 < max(sizes) <= 65536 + SLICE_BYTES + 256 * 1024
    writer.transport.abort()


class Waits:
    """A transport for which so many bytes wait, and a loop whose timers the test lets run out."""

    def __init__(self, waiting: int) -> None:
        self.waiting = waiting
        self.aborted = False
        self.timers: list[Any] = []

    def get_write_buffer_size(self) -> int:
        return self.waiting

    def get_extra_info(self, _name: str) -> None:
        return None

    def abort(self) -> None:
        self.aborted = True

    def call_later(self, _seconds: float, act: Any, *arguments: Any) -> Any:
        self.timers.append((act, arguments))
        return self

    def run_out(self) -> None:
        act, arguments = self.timers.pop()
        act(*arguments)


def test_a_slow_reader_is_not_cut_and_one_who_stops_is() -> None:
    waits = Waits(1_000_000)
    protocol: Any = object.__new__(DeadlineProtocol)
    protocol.transport = protocol.loop = waits
    protocol._expect_reading()
    for _ in range(20):
        waits.waiting -= UNREAD_LEAST_BYTES
        waits.run_out()
        assert not waits.aborted
    waits.waiting -= UNREAD_LEAST_BYTES - 1
    waits.run_out()
    assert waits.aborted


def test_what_the_kernel_holds_for_a_reader_counts_as_unread() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:

        class Transport(Waits):
            def get_extra_info(self, _name: str) -> Any:
                return ours

        assert unread_bytes(Transport(7)) == 7  # type: ignore[arg-type]
        ours.sendall(b"x" * 20_000)
        before = unread_bytes(Transport(7))  # type: ignore[arg-type]
        assert before >= 20_007
        assert theirs.recv(20_000, socket.MSG_WAITALL)
        assert unread_bytes(Transport(7)) == 7  # type: ignore[arg-type]


def test_a_unix_reader_who_takes_three_times_the_least_is_seen_to_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:

        class Transport(Waits):
            def get_extra_info(self, _name: str) -> Any:
                return ours

        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNIX_SEND_BYTES)
        ours.setblocking(False)  # noqa: FBT003  the only form it has
        with contextlib.suppress(BlockingIOError):
            while ours.send(b"x" * 200_000):
                pass
        waits = unread_bytes(Transport(0))  # type: ignore[arg-type]
        read = 0
        while waits > 3 * UNREAD_LEAST_BYTES:
            read += len(theirs.recv(3 * UNREAD_LEAST_BYTES, socket.MSG_WAITALL))
            before, waits = waits, unread_bytes(Transport(0))  # type: ignore[arg-type]
            assert before - waits >= UNREAD_LEAST_BYTES
        assert read >= 3 * UNREAD_LEAST_BYTES


async def test_whatever_waits_for_a_client_starts_its_time(served: Served) -> None:
    reader, writer = await served.connect()
    writer.write(GET)
    await reader.readuntil(b"hello")
    (connection,) = served.server.server_state.connections
    assert connection.transport.get_write_buffer_limits() == (0, 0)
    await closed(writer)
