"""One turn's door: its own limits, its own end, and nobody else's trouble."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import socket
import stat
import time
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from runtime.modelproxy import door as door_module
from runtime.modelproxy.door import DoorStopped
from runtime.modelproxy.doors import DoorExists, TooManyDoors, remove_stale

POST = b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\n"


async def closed(stream: Any) -> bytes:
    received = b""
    with anyio.fail_after(5):
        try:
            while True:
                received += await stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return received


@pytest.mark.control("DOOR-01")
async def test_the_seventeenth_connection_is_closed_at_once_and_another_door_is_free(
    demo: Any, asking: Any
) -> None:
    door, other = await demo.open(), await demo.open()
    path = str(demo.socket(door))
    held = [await anyio.connect_unix(path) for _ in range(16)]
    with anyio.fail_after(5):
        while len(door.server.state.connections) < 16:
            await anyio.lowlevel.checkpoint()
    extra = await anyio.connect_unix(path)
    assert await closed(extra) == b""
    assert (await demo.post(other, asking())).status_code == 200
    await held[0].aclose()
    with anyio.fail_after(5):
        while len(door.server.state.connections) == 16:
            await anyio.lowlevel.checkpoint()
    assert (await demo.post(door, asking())).status_code == 200
    for stream in [*held, extra]:
        await stream.aclose()


async def test_a_head_that_does_not_end_is_cut(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "HEAD_SECONDS", 0.05)
    door = await demo.open()
    async with await anyio.connect_unix(str(demo.socket(door))) as stream:
        await stream.send(b"POST /v1/messages HTTP/1.1\r\nhost: ")
        assert await closed(stream) == b""


async def test_a_connection_that_says_nothing_is_cut(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "HEAD_SECONDS", 0.05)
    door = await demo.open()
    async with await anyio.connect_unix(str(demo.socket(door))) as stream:
        assert await closed(stream) == b""


async def test_a_second_head_on_the_same_connection_has_the_same_deadline(
    demo: Any, asking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = await demo.open()
    body = json.dumps(asking(stream=False)).encode()
    async with await anyio.connect_unix(str(demo.socket(door))) as stream:
        await stream.send(POST + f"content-length: {len(body)}\r\n\r\n".encode() + body)
        received = b""
        with anyio.fail_after(5):
            while b'"usage"' not in received:
                received += await stream.receive()
        assert received.startswith(b"HTTP/1.1 200")
        assert b"connection: close" not in received
        monkeypatch.setattr(door_module, "HEAD_SECONDS", 0.05)
        await stream.send(b"POST /v1/messages HTTP/1.1\r\nhost: ")
        assert await closed(stream) == b""


async def test_an_idle_connection_is_closed_after_its_answer(
    demo: Any, asking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(door_module, "IDLE_SECONDS", 0.05)
    door = await demo.open()
    async with demo.client(door) as client:
        assert (await client.post("/v1/messages", json=asking())).status_code == 200
        with anyio.fail_after(5):
            while door.server.state.connections:
                await anyio.lowlevel.checkpoint()


async def test_a_body_that_does_not_end_is_403(demo: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from runtime.modelproxy import app

    monkeypatch.setattr(app, "BODY_SECONDS", 0.05)
    door = await demo.open()
    head = POST + b"content-length: 9\r\n\r\n{"
    async with await anyio.connect_unix(str(demo.socket(door))) as stream:
        await stream.send(head)
        assert (await closed(stream)).startswith(b"HTTP/1.1 403 ")


@pytest.mark.control("DOOR-01")
async def test_a_client_that_does_not_read_is_cut_and_slows_no_other_door(
    live: Any, asking: Any, script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from runtime.modelproxy import app

    monkeypatch.setattr(app, "WRITE_SECONDS", 0.2)
    script({"text": "x" * 3_000_000, "chunks": 100}, marker="Flood")
    door, other = await live.open(), await live.open()
    async with live.client(door) as client, client.stream("POST", "/v1/messages", json=asking("Flood")):
        assert (await live.post(other, asking())).status_code == 200
        with anyio.fail_after(10):
            while door.server.state.tasks:
                await anyio.lowlevel.checkpoint()
    usage = await live.doors.close(door.turn)
    assert usage.requests == 1


async def test_a_turn_that_is_refused_too_often_loses_its_door(demo: Any) -> None:
    door = await demo.open()
    async with await anyio.connect_unix(str(demo.socket(door))) as stream:
        await stream.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        await closed(stream)
    door.refused = door_module.REFUSALS - 1
    async with await anyio.connect_unix(str(demo.socket(door))) as stream:
        await stream.send(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
        await closed(stream)
    assert not demo.socket(door).exists()
    assert (await demo.doors.close(door.turn)).refused == door_module.REFUSALS


@pytest.mark.control("DOOR-01")
async def test_a_turn_that_connects_without_end_loses_its_door(demo: Any) -> None:
    door = await demo.open()
    door.accepted = door_module.CONNECTIONS_IN_ALL - 1
    async with await anyio.connect_unix(str(demo.socket(door))):
        pass
    with anyio.fail_after(5):
        while demo.socket(door).exists():
            await anyio.lowlevel.checkpoint()
    with pytest.raises(OSError, match="No such file"):
        await anyio.connect_unix(str(demo.socket(door)))


async def test_the_socket_is_open_to_the_turn_s_uid_and_removed_at_the_end(demo: Any) -> None:
    door = await demo.open()
    path = demo.socket(door)
    assert stat.S_IMODE(path.stat().st_mode) == 0o666
    await demo.doors.close(door.turn)
    assert not path.exists()
    assert await demo.doors.close(door.turn) is None


@pytest.mark.control("DOOR-02")
async def test_a_door_closes_itself_at_its_deadline_and_still_tells_its_usage(
    live: Any, asking: Any, script: Any
) -> None:
    script({"text": "half", "hang": True})
    door = await live.open(deadline=time.time() + 0.3)
    async with await anyio.connect_unix(str(live.socket(door))) as stream:
        body = json.dumps(asking()).encode()
        await stream.send(POST + f"content-length: {len(body)}\r\n\r\n".encode() + body)
        assert b"message_start" in await closed(stream)
    assert not live.socket(door).exists()
    assert (await live.doors.close(door.turn)).requests == 1


async def test_a_known_turn_and_one_door_too_many_are_refused(
    demo: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = await demo.open()
    with pytest.raises(DoorExists):
        await demo.doors.open(door)
    monkeypatch.setattr("runtime.modelproxy.doors.MAX_DOORS", 1)
    with pytest.raises(TooManyDoors):
        await demo.open()
    assert len(demo.doors) == 1


async def test_a_turn_without_a_folder_leaves_nothing_behind(demo: Any) -> None:
    door = await demo.open()
    door.turn = "f" * 32
    with pytest.raises(OSError, match="No such file"):
        await demo.doors.open(door)
    assert len(demo.doors) == 1


def bound_below(folder: Path) -> bool:
    """Whether a socket that was bound in `folder` still exists, unlinked or not."""
    return str(folder) in Path("/proc/net/unix").read_text()


async def opening(demo: Any) -> tuple[str, asyncio.Task[None]]:
    """Begin to open a door, and come back while its server is not yet known to be up."""
    first = await demo.open()
    turn = "e" * 32
    (demo.root / turn).mkdir()
    task = asyncio.create_task(demo.doors.open(dataclasses.replace(first, turn=turn, server=None)))
    with anyio.fail_after(5):
        while len(demo.doors) < 2:
            await anyio.lowlevel.checkpoint()
    assert not task.done()
    return turn, task


@pytest.mark.control("DOOR-02")
async def test_a_door_that_is_closed_while_it_opens_leaves_nothing_listening(demo: Any) -> None:
    turn, task = await opening(demo)
    assert await demo.doors.close(turn) is not None
    with pytest.raises(DoorStopped):
        await task
    assert not bound_below(demo.root / turn)
    assert not (demo.root / turn / "model.sock").exists()
    assert await demo.doors.close(turn) is None


@pytest.mark.control("DOOR-02")
async def test_an_opening_that_is_given_up_leaves_nothing_listening(demo: Any) -> None:
    turn, task = await opening(demo)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not bound_below(demo.root / turn)
    assert not (demo.root / turn / "model.sock").exists()
    assert len(demo.doors) == 1


@pytest.mark.control("DOOR-02")
def test_sockets_of_an_earlier_process_are_removed(folder: Path) -> None:
    (folder / ("a" * 32)).mkdir()
    path = folder / ("a" * 32) / "model.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    assert remove_stale(folder) == 1
    assert not path.exists()


async def test_pipelined_requests_are_each_answered(demo: Any) -> None:
    door = await demo.open()
    one = POST + b"content-length: 2\r\n\r\n{}"
    reader, writer = await asyncio.open_unix_connection(str(demo.socket(door)))
    writer.write(one + one)
    received = b""
    with anyio.fail_after(5):
        while received.count(b"HTTP/1.1 403") < 2:
            received += await reader.read(4096)
    writer.close()
    await writer.wait_closed()
    assert (await demo.doors.close(door.turn)).refused == 2
