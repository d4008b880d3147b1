"""Each bound of the front, filled over real HTTP: what comes past it is refused, and nothing of it is held.

What is held is counted (bytes traced, objects, conversations, tasks), never timed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import json
import tracemalloc
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from runtime import server
from runtime.front.memory import Memory
from runtime.front.settings import FrontSettings
from runtime.front.tasks import BoundedTaskStore
from runtime.turn.events import Answer, Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

MIB = 1024 * 1024
JSON = {"content-type": "application/json"}
SECURITY = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}


def body(kit: Any, text: str = "hi", **extra: Any) -> bytes:
    said = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": kit.message03(text, **extra)}
    return json.dumps(said).encode()


async def connect(front: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", int(front.url.rpartition(":")[2]))


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


async def ended(reader: asyncio.StreamReader) -> bytes:
    """Read to the end, which must come; a reset is an end."""
    received = b""
    async with asyncio.timeout(10):
        with contextlib.suppress(ConnectionResetError):
            while chunk := await reader.read(65536):
                received += chunk
    return received


@contextlib.asynccontextmanager
async def held(most_bytes: int) -> AsyncIterator[None]:
    """Fail when what is allocated meanwhile ever exceeds `most_bytes`."""
    gc.collect()
    tracemalloc.start(1)
    try:
        before = tracemalloc.get_traced_memory()[0]
        yield
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert peak < most_bytes


@pytest.mark.control("WIRE-03", "LOAD-08")
async def test_a_body_past_its_setting_is_413_and_never_held(kit: Any) -> None:
    settings = FrontSettings(body_max_bytes=2000)
    async with kit.serving(kit.Runner(), kit.definition(), settings=settings) as front:
        fits = body(kit).ljust(2000)
        assert (await front.http.post("/", content=fits, headers=JSON)).status_code == 200
        refused = await front.http.post("/", content=fits + b" ", headers=JSON)
        assert (refused.status_code, refused.headers["connection"]) == (413, "close")
        ran = len(front.runner.plans)
        async with held(4 * MIB):
            for _ in range(4):
                reader, writer = await connect(front)
                writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n")
                writer.write(b"transfer-encoding: chunked\r\n\r\n")
                with contextlib.suppress(ConnectionError):
                    for _ in range(256):
                        writer.write(b"10000\r\n" + b" " * 65536 + b"\r\n")
                        await writer.drain()
                await ended(reader)
                await closed(writer)
        assert len(front.runner.plans) == ran


@pytest.mark.control("WIRE-03")
async def test_a_body_that_does_not_come_is_408_and_its_connection_ends(kit: Any) -> None:
    settings = FrontSettings(body_seconds=0.05)
    async with kit.serving(kit.Runner(), kit.definition(), settings=settings) as front:
        reader, writer = await connect(front)
        writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n")
        writer.write(b"content-length: 100\r\n\r\n{")
        answer = await ended(reader)
        assert answer.startswith(b"HTTP/1.1 408 ")
        await closed(writer)


@pytest.mark.control("WIRE-03")
@pytest.mark.parametrize(
    ("settings", "extra", "code"),
    [
        ({"max_parts": 2}, {"message": {"parts": [{"kind": "text", "text": "x"}] * 3}}, -32602),
        ({"max_depth": 8}, {"metadata": [[[[[[[[1]]]]]]]]}, -32600),
        ({"max_values": 100}, {"metadata": [0] * 100}, -32600),
    ],
    ids=["parts", "depth", "values"],
)
async def test_what_a_request_may_hold_is_a_setting(
    kit: Any, settings: dict[str, Any], extra: dict[str, Any], code: int
) -> None:
    async with kit.serving(kit.Runner(), kit.definition()) as front:
        answer = await front.http.post("/", content=body(kit, **extra), headers=JSON)
        assert answer.json()["result"]["status"]["state"] == "completed"
    async with kit.serving(kit.Runner(), kit.definition(), settings=FrontSettings(**settings)) as front:
        answer = await front.http.post("/", content=body(kit, **extra), headers=JSON)
        assert answer.json()["error"]["code"] == code
        assert front.runner.plans == []


@pytest.mark.control("WIRE-03")
async def test_a_flood_of_deep_and_wide_bodies_holds_nothing(front: Any) -> None:
    bodies = [
        b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":' + inner + b"}"
        for inner in (b"[" * 30_000, b"[" + b"0," * 20_000 + b"0]", b'{"a":' * 8000, b'"' + b"\\" * 60_000)
    ]
    async with held(4 * MIB):
        for _ in range(8):
            for one in bodies:
                answer = await front.http.post("/", content=one, headers=JSON)
                assert answer.json()["error"]["code"] in {-32600, -32700}
    assert front.runner.plans == []


@pytest.mark.control("WIRE-03", "WIRE-04")
@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "text/plain;charset=UTF-8",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/json",
        "application/jsonx",
        "text/plain, application/json",
    ],
)
async def test_a_page_s_simple_request_runs_nothing(front: Any, kit: Any, kind: str | None) -> None:
    for origin in ("https://evil.example", "null"):
        head = [f"POST / HTTP/1.1\r\nhost: x\r\norigin: {origin}\r\nconnection: close\r\n"]
        if kind is not None:
            head.append(f"content-type: {kind}\r\n")
        sent = body(kit)
        head.append(f"content-length: {len(sent)}\r\n\r\n")
        reader, writer = await connect(front)
        writer.write("".join(head).encode() + sent)
        assert (await ended(reader)).startswith(b"HTTP/1.1 415 ")
        await closed(writer)
    assert front.runner.plans == []


async def test_json_with_a_charset_in_any_case_is_json(front: Any, kit: Any) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/json ;x=y"):
        answer = await front.http.post("/", content=body(kit), headers={"content-type": kind})
        assert answer.json()["result"]["status"]["state"] == "completed"


@pytest.mark.control("IN-02")
@pytest.mark.parametrize("character", ["a", "é", "語", "🎉"])
async def test_a_text_is_measured_in_characters_whatever_their_bytes(kit: Any, character: str) -> None:
    async with kit.serving(kit.Runner(), kit.definition(max_input_chars=10)) as front:
        fits = await front.ask(f"  {character * 10}\n")
        assert kit.texts(fits)[1] == f"echo: {character * 10}"
        too_long = await front.ask(character * 11)
        assert too_long["status"]["message"]["metadata"]["gatehouse"]["outcome"] == "too-long"
        assert len(front.runner.plans) == 1


@pytest.mark.control("MEM-02", "LOAD-08")
async def test_conversations_turns_and_tasks_stay_at_their_bounds(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    made: list[Any] = []

    def keeping(kind: Any) -> Any:
        def make(*arguments: Any, **options: Any) -> Any:
            made.append(kind(*arguments, clock=lambda: now[0], **options))
            return made[-1]

        return functools.wraps(kind)(make)

    monkeypatch.setattr(server, "Memory", keeping(Memory))
    monkeypatch.setattr(server, "BoundedTaskStore", keeping(BoundedTaskStore))
    settings = FrontSettings(max_tasks=5, task_age_seconds=100, memory_age_seconds=50)
    agent = kit.definition(max_contexts=3, max_turns=2)
    async with kit.serving(kit.Runner(), agent, settings=settings) as front:
        memory, store = made
        sizes = []
        last = ""
        contexts = [str(uuid.uuid4()) for _ in range(20)]
        for context in contexts:
            *_, last = [(await front.ask(f"{number}" * 100, context))["id"] for number in range(4)]
            sizes.append((len(memory), len(store), memory.size_bytes, store.size_bytes))
        assert sizes[-1][2] == sizes[4][2]
        assert abs(sizes[-1][3] - sizes[4][3]) < 200  # a time takes a byte more or less
        assert sizes[-1][:2] == (3, 5)
        assert len(front.runner.prompt()) == 2 * 2 + 1
        assert "result" in await front.rpc("tasks/get", {"id": last})
        now[0] = 101.0
        assert (await front.rpc("tasks/get", {"id": last}))["error"]["code"] == -32001
        await front.ask("again", contexts[-1])
        assert len(front.runner.prompt()) == 1
        assert (len(memory), len(store)) == (1, 1)


@pytest.mark.control("MEM-02", "LOAD-08")
async def test_the_bytes_of_a_store_are_a_setting(kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    def keep(*arguments: Any, **options: Any) -> Any:
        made.append(BoundedTaskStore(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(server, "BoundedTaskStore", keep)
    agent = kit.definition(max_input_chars=20_000)
    settings = FrontSettings(store_bytes=MIB // 4)
    async with kit.serving(kit.Runner(), agent, settings=settings) as front:
        for _ in range(30):
            await front.ask("x" * 20_000)
            assert made[0].size_bytes <= MIB // 4
        assert 1 <= len(made[0]) < 15


@pytest.mark.control("LOAD-01", "LOAD-08")
async def test_streams_and_readers_past_their_settings_are_answered_and_not_held(
    kit: Any,
) -> None:
    released = asyncio.Event()

    async def until_released(_plan: Any) -> Any:
        yield Snapshot("a")
        await released.wait()
        yield Answer("done")

    settings = FrontSettings(max_streams=3, max_readers=1)
    async with kit.serving(kit.Runner(until_released), kit.definition(), settings=settings) as front:
        sender = front.events("message/stream", kit.message03("hi"))
        task = (await anext(sender))["result"]["id"]
        reader = front.events("tasks/resubscribe", {"id": task})
        assert (await anext(reader))["result"]["id"] == task
        refused = [event async for event in front.events("tasks/resubscribe", {"id": task})]
        assert refused[0]["error"]["code"] == -32004
        other = front.events("message/stream", kit.message03("hi"))
        await anext(other)
        for _ in range(20):
            crowded = [event["result"] async for event in front.events("message/stream", kit.message03("x"))]
            assert crowded[-1]["status"]["message"]["metadata"]["gatehouse"]["outcome"] == "busy"
            assert crowded[-1]["final"] is True
        assert len(front.runner.plans) == 2
        released.set()
        for stream in (sender, reader, other):
            last = [event async for event in stream][-1]
            assert last["result"]["status"]["state"] == "completed"


@pytest.mark.control("WIRE-03", "LOAD-08")
@pytest.mark.parametrize(
    "head",
    [
        b"x: y\r\n" * 60,
        b"x: " + b"y" * 5000 + b"\r\n",
        b"".join(b"x-%d: %s\r\n" % (number, b"y" * 400) for number in range(12)),
    ],
    ids=["number", "one", "sum"],
)
async def test_headers_past_their_settings_are_431(kit: Any, head: bytes) -> None:
    settings = FrontSettings(head_max_bytes=4096, head_max_count=50)
    async with kit.serving(kit.Runner(), kit.definition(), settings=settings) as front:
        for end in (b"\r\n", b"") if len(head) > 4096 else (b"\r\n",):
            reader, writer = await connect(front)
            writer.write(b"GET /health HTTP/1.1\r\nhost: x\r\n" + head + end)
            answer = await ended(reader)
            assert answer.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
            assert answer.endswith(b'The request has too many headers"}')
            await closed(writer)
        assert (await front.http.get("/health")).status_code == 200


@pytest.mark.control("WIRE-03")
async def test_a_target_counts_as_head(front: Any) -> None:
    assert (await front.http.get("/health?" + "x" * 20_000)).status_code == 431


@pytest.mark.control("WIRE-03", "LOAD-08")
async def test_connections_past_their_setting_are_503_and_past_twice_ended(kit: Any) -> None:
    settings = FrontSettings(max_connections=3)
    async with kit.serving(kit.Runner(), kit.definition(), settings=settings) as front:
        get = b"GET /health HTTP/1.1\r\nhost: x\r\n\r\n"
        idle = [await connect(front) for _ in range(3)]
        for reader, writer in idle:
            writer.write(get)
            assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 200 ")
        reader, writer = await connect(front)
        writer.write(get)
        answer = (await ended(reader)).decode()
        assert answer.startswith("HTTP/1.1 503 ")
        for name, value in SECURITY.items():
            assert f"{name}: {value}\r\n" in answer
        waiting = [await connect(front) for _ in range(3)]
        refused, last = await connect(front)
        assert await ended(refused) == b""
        for _, one in [*idle, *waiting, (None, writer), (None, last)]:
            await closed(one)
        async with asyncio.timeout(10):
            while (await front.http.get("/health")).status_code != 200:
                pass


@pytest.mark.control("WIRE-03")
async def test_an_address_in_a_part_is_refused_with_the_types_we_take_and_never_asked(
    front: Any, kit: Any
) -> None:
    asked: list[bytes] = []

    async def listening(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.read(100))
        writer.close()

    async with await asyncio.start_server(listening, "127.0.0.1", 0) as listener:
        url = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/x.txt"
        old = [
            {"kind": "file", "file": {"uri": url, "mimeType": "text/plain"}},
            {"kind": "file", "file": {"bytes": "aGk=", "mimeType": "text/plain"}},
            {"kind": "data", "data": {"url": url}},
        ]
        new = [{"url": url}, {"url": url, "mediaType": "text/plain"}, {"raw": "aGk="}, {"data": {"url": url}}]
        for method, make, version, parts in (
            ("message/send", kit.message03, None, old),
            ("message/stream", kit.message03, None, old),
            ("SendMessage", kit.message10, "1.0", new),
            ("SendStreamingMessage", kit.message10, "1.0", new),
        ):
            for part in parts:
                text = {"kind": "text", "text": "x"} if version is None else {"text": "x"}
                refused = await front.rpc(method, make("x", message={"parts": [text, part]}), version=version)
                assert refused["error"]["code"] == -32005
                assert refused["error"]["data"][0]["metadata"] == {"acceptedTypes": "text/plain"}
        push = {"url": url, "pushNotificationConfig": {"url": url}}
        answer = await front.rpc("message/send", kit.message03("x", configuration=push))
        assert answer["error"]["code"] == -32003
        linked = await front.ask(f"Read {url} for me")
        assert linked["status"]["state"] == "completed"
        assert asked == []


@pytest.mark.control("WIRE-03", "LOAD-08")
async def test_a_body_in_tiny_chunks_is_413_before_it_is_read(front: Any) -> None:
    reader, writer = await connect(front)
    writer.write(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n")
    writer.write(b"transfer-encoding: chunked\r\n\r\n" + b"1\r\n[\r\n" * 1100)
    answer = await ended(reader)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"too many small pieces" in answer
    assert b"x-content-type-options: nosniff\r\n" in answer
    await closed(writer)


async def test_a_body_in_chunks_of_a_plain_size_is_answered(front: Any, kit: Any) -> None:
    sent = body(kit, "x" * 3000)

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(sent), 100):
            yield sent[start : start + 100]

    answer = await front.http.post("/", content=chunks(), headers=JSON)
    assert answer.json()["result"]["status"]["state"] == "completed"


@pytest.mark.parametrize("version", ["0.3", "1.0"])
@pytest.mark.parametrize("length", [10**18, 2**62, 2**40, -(2**40), 2**31, 1.5])
async def test_a_history_length_that_is_no_int32_is_invalid(
    front: Any, kit: Any, version: str, length: float
) -> None:
    get, send = ("tasks/get", "message/send") if version == "0.3" else ("GetTask", "SendMessage")
    make = kit.message03 if version == "0.3" else kit.message10
    params = make("hi", configuration={"historyLength": length})
    assert (await front.rpc(send, params, version=version))["error"]["code"] == -32602
    asked = await front.rpc(get, {"id": "x", "historyLength": length}, version=version)
    assert asked["error"]["code"] == -32602
    assert front.runner.plans == []


@pytest.mark.parametrize("version", ["2.0", "3.0", "0.9", "1.2"])
@pytest.mark.parametrize("method", ["POST", "HEAD"])
async def test_another_version_of_http_is_505_and_runs_nothing(
    front: Any, kit: Any, method: str, version: str
) -> None:
    sent = body(kit)
    reader, writer = await connect(front)
    head = f"{method} / HTTP/{version}\r\nhost: x\r\ncontent-type: application/json\r\n"
    writer.write(f"{head}content-length: {len(sent)}\r\n\r\n".encode() + sent)
    answer = (await ended(reader)).decode()
    assert answer.startswith("HTTP/1.1 505 ")
    for name, value in SECURITY.items():
        assert f"{name}: {value}\r\n" in answer
    assert front.runner.plans == []
    await closed(writer)


async def test_what_is_no_http_and_an_upgrade_write_no_log_line(
    front: Any, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    get = b"GET /health HTTP/1.1\r\nhost: x\r\nconnection: %s\r\n%s\r\n"
    upgrade = get % (b"close, upgrade", b"upgrade: websocket\r\n")
    for sent in (b"\x16\x03\x01\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\n: y\r\n\r\n", upgrade):
        reader, writer = await connect(front)
        writer.write(sent)
        assert await ended(reader) != b""
        await closed(writer)
    assert [record for record in caplog.records if record.name.startswith("uvicorn.error")] == []
