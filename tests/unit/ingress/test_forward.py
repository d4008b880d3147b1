"""The forwarder: every byte both ways, half-closed streams, bounds, and a plain word when nobody is there."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runtime import layout
from runtime.agents.fields import SETTINGS
from runtime.ingress.__main__ import check
from runtime.ingress.forward import BUSY, IDLE_SECONDS, UNAVAILABLE, Forwarder

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the object under test has no event for it."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  a state of the object, not an event of ours
            await asyncio.sleep(0)


def places_taken(forwarder: Forwarder, count: int) -> bool:
    return forwarder.open_connections == count


class Back:
    """A Unix socket server with a handler that the test sets."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.handler: Handler = echo
        self.ended = asyncio.Event()
        self.accepted = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            await self.handler(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            self.ended.set()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
        await writer.drain()


async def after_the_end(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer only once the client has stopped sending, as an SSE stream may go on for long after."""
    received = await reader.read(-1)
    for _ in range(3):
        writer.write(received)
        await writer.drain()


@pytest.fixture
async def back() -> AsyncGenerator[Back, None]:
    with tempfile.TemporaryDirectory() as folder:
        made = Back(Path(folder) / "local.sock")
        server = await asyncio.start_unix_server(made.accept, str(made.path))
        yield made
        server.close()


async def started(back: Back, **options: Any) -> Forwarder:
    forwarder = Forwarder(back.path, **options)
    await forwarder.start("127.0.0.1", 0)
    return forwarder


async def exchange(port: int, sent: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(sent)
    writer.write_eof()
    received = await reader.read(-1)
    writer.close()
    await writer.wait_closed()
    return received


async def test_every_byte_comes_back_also_when_there_are_many(back: Back) -> None:
    forwarder = await started(back)
    sent = bytes(range(256)) * 20_000

    async def both() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)

        async def send() -> None:
            writer.write(sent)
            await writer.drain()
            writer.write_eof()

        sending = asyncio.create_task(send())
        received = await reader.read(-1)
        await sending
        writer.close()
        await writer.wait_closed()
        return received

    assert hashlib.sha256(await both()).digest() == hashlib.sha256(sent).digest()
    await forwarder.stop(0)


async def test_a_client_that_stops_sending_still_reads_its_stream(back: Back) -> None:
    back.handler = after_the_end
    forwarder = await started(back)
    assert await exchange(forwarder.port, b"hello ") == b"hello hello hello "
    await forwarder.stop(0)


async def test_a_client_that_goes_away_ends_the_connection_to_the_front(back: Back) -> None:
    forwarder = await started(back)
    _reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    writer.write(b"x")
    await writer.drain()
    writer.close()
    async with asyncio.timeout(5):
        await back.ended.wait()
    await until(lambda: not forwarder.open_connections)
    assert not forwarder.open_connections
    await forwarder.stop(0)


async def test_no_front_is_a_502(tmp_path: Path) -> None:
    forwarder = Forwarder(tmp_path / "none.sock")
    await forwarder.start("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    writer.write(b"GET")
    received = await reader.read(-1)
    assert received == UNAVAILABLE
    head, body = received.split(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head
    writer.close()
    await writer.wait_closed()
    assert await asyncio.to_thread(check, "127.0.0.1", forwarder.port) == 1
    await forwarder.stop(0)


async def test_connections_beyond_the_bound_are_told_so(back: Back) -> None:
    forwarder = await started(back, max_connections=2)
    held = [await asyncio.open_connection("127.0.0.1", forwarder.port) for _ in range(2)]
    for held_reader, held_writer in held:
        held_writer.write(b"x")
        assert await held_reader.read(1) == b"x"
    assert forwarder.open_connections == 2
    reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    received = await reader.read(-1)
    assert received == BUSY
    head, body = received.split(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head
    for one in (writer, *(pair[1] for pair in held)):
        one.close()
        await one.wait_closed()
    await until(lambda: not forwarder.open_connections)
    assert await exchange(forwarder.port, b"again") == b"again"
    await forwarder.stop(0)


async def test_an_idle_connection_is_closed(back: Back) -> None:
    forwarder = await started(back, idle_seconds=0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    writer.write(b"x")
    async with asyncio.timeout(5):
        assert await reader.read(-1) == b"x"
    writer.close()
    await writer.wait_closed()
    await forwarder.stop(0)


def test_a_connection_outlives_the_longest_turn_s_silence() -> None:
    longest = max(item.maximum or 0 for item in SETTINGS if item.key == "timeout")
    assert longest == layout.TURN_MAX_SECONDS
    assert longest + 10 < IDLE_SECONDS


async def test_a_client_that_sends_nothing_is_closed_and_the_front_never_hears_of_it(back: Back) -> None:
    forwarder = await started(back, first_byte_seconds=0.05)
    reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    async with asyncio.timeout(5):
        assert await reader.read(-1) == b""
        await until(lambda: not forwarder.open_connections)
    assert not back.ended.is_set()
    assert back.accepted == 0
    writer.close()
    await writer.wait_closed()
    await forwarder.stop(0)


async def test_when_all_places_are_taken_the_oldest_that_sent_nothing_makes_room(back: Back) -> None:
    forwarder = await started(back, max_connections=3)
    talking = await asyncio.open_connection("127.0.0.1", forwarder.port)
    talking[1].write(b"a")
    assert await talking[0].read(1) == b"a"
    silent = []
    for count in (2, 3):
        silent.append(await asyncio.open_connection("127.0.0.1", forwarder.port))
        await until(partial(places_taken, forwarder, count))
    assert await exchange(forwarder.port, b"hello") == b"hello"
    async with asyncio.timeout(5):
        assert await silent[0][0].read(-1) == b""
    for one in (silent[1], talking):
        one[1].write(b"still here")
        assert await one[0].readexactly(10) == b"still here"
    for one in (*silent, talking):
        one[1].close()
        await one[1].wait_closed()
    await until(partial(places_taken, forwarder, 0))
    await forwarder.stop(0)


async def test_a_client_that_stays_after_the_front_has_closed_holds_no_place(
    back: Back, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def answer_and_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.read(1) + b"bye")
        await writer.drain()

    monkeypatch.setattr("runtime.ingress.forward.LINGER_SECONDS", 0.05)
    back.handler = answer_and_close
    forwarder = await started(back)
    reader, writer = await asyncio.open_connection("127.0.0.1", forwarder.port)
    writer.write(b"x")
    assert await reader.read(-1) == b"xbye"
    await until(partial(places_taken, forwarder, 0))
    writer.close()
    await writer.wait_closed()
    await forwarder.stop(0)


async def test_stopping_lets_an_open_stream_end_and_takes_no_new_one(back: Back) -> None:
    release = asyncio.Event()

    async def held(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        await release.wait()
        writer.write(b"terminal event")
        await writer.drain()

    back.handler = held
    forwarder = await started(back)
    port = forwarder.port
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"x")
    await writer.drain()
    await until(lambda: forwarder.open_connections == 1)
    stopping = asyncio.create_task(forwarder.stop(5))
    await asyncio.sleep(0)
    with pytest.raises(OSError):  # noqa: PT011  refused or reset, as the kernel likes
        await asyncio.open_connection("127.0.0.1", port)
    release.set()
    assert await reader.read(-1) == b"terminal event"
    writer.close()
    await writer.wait_closed()
    await stopping


async def test_the_process_forwards_stops_on_sigterm_and_says_when_the_port_is_taken(back: Back) -> None:
    command = [sys.executable, "-m", "runtime.ingress", "--host", "127.0.0.1", "--target", str(back.path)]
    process = await asyncio.create_subprocess_exec(*command, "--port", "0", stderr=subprocess.PIPE)
    assert process.stderr is not None
    line = (await process.stderr.readline()).decode()
    port = int(line.split(" -> ")[0].rsplit(":", 1)[1])
    assert await exchange(port, b"hello") == b"hello"
    second = await asyncio.create_subprocess_exec(*command, "--port", str(port), stderr=subprocess.PIPE)
    _out, said = await second.communicate()
    assert second.returncode == 4
    assert said.decode() == (
        f"gatehouse: port-in-use: Port {port} on 127.0.0.1 is taken. (stop what uses it)\n"
    )
    process.terminate()
    async with asyncio.timeout(10):
        assert await process.wait() == 0
