from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from runtime.serving import bind, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.requests import Request


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as name:
        yield Path(name)


async def hello(request: Request) -> Response:
    return PlainTextResponse(f"hello {len(await request.body())}")


APP = Starlette(routes=[Route("/", hello, methods=["GET", "POST"])])


async def status(path: Path) -> bytes:
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
    line = await reader.readline()
    writer.close()
    return line.split(b" ")[1]


@pytest.mark.control("SPAWN-02")
async def test_unfinished_requests_take_a_bounded_number_of_connections(folder: Path) -> None:
    path = folder / "s.sock"
    async with serving(APP, path, connections=4, grace_seconds=1), asyncio.timeout(10):
        held = [await asyncio.open_unix_connection(path) for _ in range(4)]
        for _, writer in held:
            writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 320000\r\n\r\n")
        assert await status(path) == b"503"
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        answers = [
            await status(path) for _ in range(50)
        ]  # the first may come before the server saw them close
        assert answers[-1] == b"200"


def test_a_socket_of_a_dead_process_is_replaced_and_anything_else_is_not(folder: Path) -> None:
    path = folder / "s.sock"
    with bind(path) as first, bind(path) as second:
        assert first.fileno() != second.fileno()
    path.unlink()
    path.mkdir()
    with pytest.raises(FileExistsError, match="is not a socket"):
        bind(path)
