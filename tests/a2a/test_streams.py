"""Event streams over real HTTP: what comes when, how much of it, and readers slow, late or too many."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from sse_starlette.sse import EventSourceResponse

from runtime.front import telling
from runtime.front.settings import FrontSettings
from runtime.front.telling import GROWTH_PART, has_grown
from runtime.server import PING_SECONDS
from runtime.serving import DeadlineProtocol
from runtime.turn.events import Answer, Snapshot, TurnEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable

    from runtime.turn.plan import TurnPlan

STREAM = {"0.3": "message/stream", "1.0": "SendStreamingMessage"}
SUBSCRIBE = {"0.3": "tasks/resubscribe", "1.0": "SubscribeToTask"}
PROSE = "Office hours are on Tuesday from two to four, in the drawing room.\n"


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the object under test has no event for it."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  a state of the object, not an event of ours
            await asyncio.sleep(0)


def message(kit: Any, version: str, context: str | None = None) -> Any:
    return (kit.message03 if version == "0.3" else kit.message10)("hello", context)


async def silent(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
    await asyncio.Event().wait()
    yield Answer("never")


def writing(answer: str, step: int = 48) -> Any:
    """Return a script whose model writes an answer a few characters at a time."""

    async def script(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        for end in range(step, len(answer), step):
            yield Snapshot(answer[:end])
        yield Answer(answer)

    return script


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_the_first_event_comes_while_the_runner_has_not_said_or_done_anything(
    kit: Any, version: str
) -> None:
    context = str(uuid.uuid4())
    async with kit.serving(kit.Runner(silent), kit.definition()) as front:
        asking = asyncio.create_task(front.ask("hello", context))
        await front.runner.started.wait()
        async for event in front.events(STREAM[version], message(kit, version, context), version=version):
            task = event["result"] if version == "0.3" else event["result"]["task"]
            assert task["status"]["state"] in {"submitted", "TASK_STATE_SUBMITTED"}
            assert len(front.runner.plans) == 1, "this one waits for the turn before it"
            break
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking


async def test_a_silent_stream_is_kept_alive_by_comments_at_most_three_seconds_apart(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with kit.serving(kit.Runner(silent), kit.definition()) as front:
        assert EventSourceResponse.DEFAULT_PING_INTERVAL == PING_SECONDS <= 3
        monkeypatch.setattr(EventSourceResponse, "DEFAULT_PING_INTERVAL", 0.05)
        body = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": kit.message03("hello")}
        comments = 0
        async with asyncio.timeout(10), front.http.stream("POST", "/", json=body) as response:
            async for line in response.aiter_lines():
                comments += line.startswith(":")
                if comments == 3:
                    break
        assert comments == 3


async def wire(front: Any, kit: Any, answer: str) -> tuple[int, list[Any]]:
    """Return the bytes of a streamed answer on the wire, and its events."""
    front.runner.script = writing(answer)
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": kit.message03("hello")}
    async with front.http.stream("POST", "/", json=body) as response:
        whole = b"".join([chunk async for chunk in response.aiter_raw()])
    events = [json.loads(line[6:])["result"] for line in whole.splitlines() if line.startswith(b"data: ")]
    return len(whole), events


async def test_the_bytes_of_a_stream_go_with_the_length_of_the_answer_and_its_events_stay_few(
    kit: Any,
) -> None:
    sizes = {}
    async with kit.serving(kit.Runner(), kit.definition(timeout_seconds=60)) as front:
        for times in (1, 8):
            answer = PROSE * 60 * times
            sizes[times], events = await wire(front, kit, answer)
            shown = [event["artifact"] for event in events if event["kind"] == "artifact-update"]
            texts = [artifact["parts"][0]["text"] for artifact in shown]
            assert len(events) < 150
            assert len(texts) > 10, "it grows before it is whole"
            assert all(answer.startswith(text) for text in texts)
            assert len({artifact["artifactId"] for artifact in shown}) == 1
            assert not any(event.get("append") for event in events)
            assert sizes[times] < (GROWTH_PART + 3) * len(answer) + 400 * len(events)
    assert sizes[8] < 8 * 1.2 * sizes[1]


def test_a_snapshot_is_worth_its_bytes_or_begins_anew() -> None:
    assert has_grown("", "x")
    assert not has_grown("x" * 100, "x" * 147)
    assert has_grown("x" * 100, "x" * 148)
    assert not has_grown("x" * 1000, "x" * 1099)
    assert has_grown("x" * 1000, "x" * 1100)
    assert has_grown("x" * 1000, "y")
    assert not has_grown("x", "x")


class RawStream:
    """A stream read from a bare socket with a small buffer, as little at a time as its reader wants."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, front: Any, params: Any) -> RawStream:
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)  # noqa: FBT003  the only form it has
        host, _, port = front.url.removeprefix("http://").partition(":")
        await asyncio.get_running_loop().sock_connect(connection, (host, int(port)))
        reader, writer = await asyncio.open_connection(sock=connection, limit=2048)
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params}).encode()
        head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        writer.write(head.encode() + b"\r\nConnection: close\r\n\r\n" + body)
        return cls(reader, writer)

    async def pieces(self) -> AsyncIterator[bytes]:
        while piece := await self.reader.read(1500):
            yield piece

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


def loud(texts: int, chars: int) -> Any:
    """Return a script of many large snapshots, each beginning anew, so that each is shown."""

    async def script(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        for number in range(texts):
            yield Snapshot(f"{number:04} " + "a b " * (chars // 4))
            await asyncio.sleep(0)
        yield Answer("The whole answer.")

    return script


@pytest.fixture
def talkative(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a turn tell far more than it may, so that a reader falls behind."""
    monkeypatch.setattr(telling, "TOLD_CHARS", 10**9)


@pytest.mark.usefixtures("talkative")
async def test_a_reader_who_reads_little_by_little_gets_every_event_to_the_last(kit: Any) -> None:
    async with kit.serving(kit.Runner(loud(400, 8000)), kit.definition(timeout_seconds=60)) as front:
        raw = await RawStream.open(front, kit.message03("hello"))
        async with asyncio.timeout(60):
            whole = b"".join([piece async for piece in raw.pieces()])
        await raw.close()
        for number in range(400):
            assert whole.count(b'"text":"%04d ' % number) == 1
        assert b"The whole answer." in whole
        assert b'"final":true' in whole


class Connection:
    """What becomes of the one connection whose client reads little: it falls behind, and it is lost.

    The kernel holds little for it, so that how far a client is behind is not how large this host's buffers
    are.
    """

    def __init__(self) -> None:
        self.behind, self.lost = asyncio.Event(), asyncio.Event()

    def watch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Hear of the connections that are made from now on."""
        made = DeadlineProtocol.connection_made
        paused = DeadlineProtocol.pause_writing
        lost = DeadlineProtocol.connection_lost

        def connection_made(protocol: DeadlineProtocol, transport: asyncio.Transport) -> None:
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            made(protocol, transport)

        def pause_writing(protocol: DeadlineProtocol) -> None:
            self.transport: Any = protocol.transport
            self.behind.set()
            paused(protocol)

        def connection_lost(protocol: DeadlineProtocol, exc: Exception | None) -> None:
            lost(protocol, exc)
            if self.behind.is_set() and protocol.transport is self.transport:
                self.lost.set()

        monkeypatch.setattr(DeadlineProtocol, "connection_made", connection_made)
        monkeypatch.setattr(DeadlineProtocol, "pause_writing", pause_writing)
        monkeypatch.setattr(DeadlineProtocol, "connection_lost", connection_lost)


@pytest.mark.control("LOAD-08")
@pytest.mark.usefixtures("talkative")
async def test_a_reader_who_reads_nothing_holds_neither_the_turn_nor_memory_and_is_cut(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = Connection()
    connection.watch(monkeypatch)

    async def script(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        number = 0
        while number < 400 and not connection.behind.is_set():
            yield Snapshot(f"{number:04} " + "a b " * 5000)
            await asyncio.sleep(0)
            number += 1
        for more in range(30):
            yield Snapshot(f"{number + more:04} " + "a b " * 5000)
        yield Answer("The whole answer.")

    agent = kit.definition(timeout_seconds=60, on_disconnect="finish")
    settings = FrontSettings(unread_seconds=3)
    async with kit.serving(kit.Runner(script), agent, settings=settings) as front:
        handler = front.forget._handler
        raw = await RawStream.open(front, kit.message03("hello"))
        await until(lambda: bool(front.executor._turns))
        ((task_id, turn),) = front.executor._turns.items()
        (active,) = handler._active_task_registry._active_tasks.values()
        await until(lambda: bool(active._event_queue_subscribers._sinks))
        (sink,) = active._event_queue_subscribers._sinks
        async with asyncio.timeout(50):
            await turn.settled.wait()
            assert connection.behind.is_set()
            assert not connection.lost.is_set(), "the turn ended while its reader was behind"
            await until(lambda: sink.queue.qsize() > 20)  # what it has not read waits with its stream
            assert connection.transport.get_write_buffer_size() < 256 * 1024, "not with the connection"
            await connection.lost.wait()
        await until(lambda: not handler.streams and not handler._active_task_registry._active_tasks)
        assert connection.transport.get_write_buffer_size() == 0
        assert sink.queue.qsize() == 0, "nothing is kept for a reader who was cut"
        task = (await front.rpc("tasks/get", {"id": task_id}))["result"]
        assert kit.texts(task) == ("The whole answer.",) * 2
        await raw.close()


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_resubscribing_gives_the_task_as_it_is_and_then_what_its_sender_sees(
    kit: Any, version: str
) -> None:
    shown, go_on = asyncio.Event(), asyncio.Event()

    async def script(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Snapshot(PROSE * 5)
        shown.set()
        await go_on.wait()
        for times in range(6, 40):
            yield Snapshot(PROSE * times)
        yield Answer(PROSE * 40)

    async with kit.serving(kit.Runner(script), kit.definition()) as front:
        sent: list[Any] = []
        seen: list[Any] = []

        async def send() -> None:
            params = message(kit, version)
            sent.extend([e["result"] async for e in front.events(STREAM[version], params, version=version)])

        sending = asyncio.create_task(send())
        await shown.wait()
        ((task_id, turn),) = front.executor._turns.items()
        async with asyncio.timeout(10):
            while "artifacts" not in (await front.rpc("tasks/get", {"id": task_id}))["result"]:
                pass  # each question lets the SDK take in what the turn has said
        async for event in front.events(SUBSCRIBE[version], {"id": task_id}, version=version):
            seen.append(event["result"])
            go_on.set()
        await sending
        await turn.settled.wait()
    task = seen[0] if version == "0.3" else seen[0]["task"]
    assert task["status"]["state"] in {"working", "TASK_STATE_WORKING"}
    assert PROSE.strip() in task["artifacts"][0]["parts"][0]["text"]
    later = seen[1:]
    assert len(later) > 5
    assert later == sent[-len(later) :]
    last = later[-1] if version == "0.3" else later[-1]["statusUpdate"]
    assert last["status"]["message"]["parts"][0]["text"] == (PROSE * 40).strip()


@pytest.mark.control("LOAD-08")
@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_a_stream_too_many_is_answered_busy_and_let_go_and_reading_along_is_refused(
    kit: Any, version: str
) -> None:
    go_on = asyncio.Event()

    async def held(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        await go_on.wait()
        yield Answer("done")

    async with kit.serving(kit.Runner(held), kit.definition(max_concurrency=8)) as front:
        handler = front.forget._handler
        handler._streams_max = 1
        first = front.events(STREAM[version], message(kit, version), version=version)
        await anext(first)
        (task_id,) = front.executor._turns
        events = [
            event["result"]
            async for event in front.events(STREAM[version], message(kit, version), version=version)
        ]
        last = events[-1] if version == "0.3" else events[-1]["statusUpdate"]
        assert last["status"]["state"] in {"completed", "TASK_STATE_COMPLETED"}
        assert last["status"]["message"]["parts"][0]["text"] == front.agent.messages.busy
        told = last["status"]["message"]["metadata"]["gatehouse"]
        assert told["outcome"] == "busy"
        assert 1 <= told["retryAfterSeconds"] <= 60
        assert handler.streams == 1
        assert len(front.runner.plans) == 1, "it cost no turn"
        refused = [event async for event in lines(front, SUBSCRIBE[version], {"id": task_id}, version)]
        assert [one["error"]["code"] for one in refused] == [-32004]
        go_on.set()
        assert [event async for event in first]
        await until(lambda: handler.streams == 0)
        assert [
            event async for event in front.events(STREAM[version], message(kit, version), version=version)
        ]


async def lines(front: Any, method: str, params: Any, version: str) -> AsyncIterator[Any]:
    """Yield the JSON objects of an answer, be it a stream or one body."""
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    async with front.http.stream("POST", "/", json=body, headers={"A2A-Version": version}) as response:
        async for line in response.aiter_lines():
            text = line.removeprefix("data: ")
            if text.startswith("{"):
                yield json.loads(text)
