"""The client of the figures, against a server that says what the test tells it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import TYPE_CHECKING

import pytest

from tests.bench.wire import Address, BadAnswer, Connection, Load, Stream, ask, ask_all, get, message

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"


@contextlib.asynccontextmanager
async def answering(*pieces: bytes) -> AsyncGenerator[Address]:
    """Answer each request with the pieces, one write each, and hang up where the last is empty."""

    ended: list[asyncio.Event] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end = asyncio.Event()
        ended.append(end)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await reader.readuntil(b"\r\n\r\n")
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                if not pieces[-1]:
                    break
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        end.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield Address(server.sockets[0].getsockname()[1])
    finally:
        server.close()
        await server.wait_closed()
        async with asyncio.timeout(5):
            for end in ended:
                await end.wait()


@pytest.mark.parametrize("pieces", [(OK,), (OK[:9], OK[9:30], OK[30:41], OK[41:])])
async def test_an_answer_is_whole_however_it_comes(pieces: tuple[bytes, ...]) -> None:
    async with answering(*pieces) as address:
        connection = await Connection.open(address)
        assert [await connection.ask(get("/")) for _ in range(3)] == [OK] * 3
        connection.close()


async def test_every_request_is_asked_once_over_several_connections() -> None:
    async with answering(OK) as address:
        done = await ask_all(address, (get(f"/{n}") for n in range(20)), b"hello", connections=3)
    assert done.requests == 20
    assert done.rate > 0


@pytest.mark.parametrize("answer", [OK.replace(b"200", b"503"), OK.replace(b"hello", b"sorry")])
async def test_an_answer_that_is_not_the_one_measured_stops_the_measuring(answer: bytes) -> None:
    async with answering(answer) as address:
        connection = await Connection.open(address)
        with pytest.raises(BadAnswer, match="not what is measured"):
            await ask(connection, get("/"), b"hello")
        connection.close()


async def test_a_server_that_hangs_up_does_not_leave_the_asker_waiting() -> None:
    async with answering(OK[:20], b"") as address:
        connection = await Connection.open(address)
        with pytest.raises(BadAnswer, match="closed"):
            async with asyncio.timeout(5):
                await connection.ask(get("/"))


async def test_a_stream_is_read_up_to_what_is_waited_for_and_its_early_end_is_told() -> None:
    async with answering(b"HTTP/1.1 200 OK\r\n\r\ndata: one\r\n", b"data: two\r\n", b"") as address:
        stream = await Stream.open(address, get("/"))
        assert b"one" in await stream.until(b"one")
        with pytest.raises(BadAnswer, match="three"):
            await stream.until(b"three")
        await stream.close()


def test_a_message_is_a_request_of_the_old_dialect_with_its_length_in_bytes() -> None:
    head, _, body = message("message/send", "Wer wär's? 🙂").partition(b"\r\n\r\n")
    assert f"content-length: {len(body)}".encode() in head
    request = json.loads(body)
    assert request["method"] == "message/send"
    assert request["params"]["message"]["parts"] == [{"kind": "text", "text": "Wer wär's? 🙂"}]


def test_a_rate_is_requests_by_the_second() -> None:
    assert Load(30, 2.0, 0.1).rate == 15
