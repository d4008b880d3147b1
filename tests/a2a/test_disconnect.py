"""A turn that nobody watches any more: who counts as watching, how long it waits, and how it ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import struct
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from runtime.turn.events import Answer, Snapshot, TurnEvent
from runtime.turn.receipt import Receipt, Receipts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from runtime.turn.plan import TurnPlan

SEND = {"0.3": "message/send", "1.0": "SendMessage"}
STREAM = {"0.3": "message/stream", "1.0": "SendStreamingMessage"}
SUBSCRIBE = {"0.3": "tasks/resubscribe", "1.0": "SubscribeToTask"}
SHORT = {"disconnect_grace_seconds": 0.05}
LONG = {"disconnect_grace_seconds": 600.0}


class Held:
    """A runner's script that says a little and ends when it is told to, or cleans up when it is ended."""

    def __init__(self) -> None:
        self.may_finish = asyncio.Event()
        self.cleaned = asyncio.Event()

    async def script(self, _plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        try:
            yield Snapshot("so far " * 20)
            await self.may_finish.wait()
            yield Answer("The whole answer.")
        finally:
            self.cleaned.set()


@pytest.fixture
def receipts(monkeypatch: pytest.MonkeyPatch) -> list[Receipt]:
    written: list[Receipt] = []
    monkeypatch.setattr(Receipts, "write", lambda _self, receipt: written.append(receipt))
    return written


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the object under test has no event for it."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  a state of the object, not an event of ours
            await asyncio.sleep(0)


class Visit:
    """A visitor's message in either dialect, blocking or streamed, whose client can hang up."""

    def __init__(
        self, front: Any, kit: Any, version: str, *, stream: bool, context: str | None = None
    ) -> None:
        self.front = front
        self.version = version
        message = kit.message03 if version == "0.3" else kit.message10
        self.method = (STREAM if stream else SEND)[version]
        self.params = message("hello", context)
        self.before = set(front.executor._turns)
        self.asking: asyncio.Task[Any] = asyncio.create_task(self.stream() if stream else self.send())

    async def send(self) -> dict[str, Any]:
        answer: dict[str, Any] = await self.front.rpc(self.method, self.params, version=self.version)
        return answer

    async def stream(self) -> list[dict[str, Any]]:
        events = self.front.events(self.method, self.params, version=self.version)
        return [event["result"] async for event in events]

    async def task(self) -> str:
        """Return the id of its task, once its turn is there and watched."""
        turns = self.front.executor._turns
        await until(lambda: bool(set(turns) - self.before))
        (task_id,) = set(turns) - self.before
        await until(lambda: turns[task_id].audience._present > 0)
        return str(task_id)

    async def hang_up(self) -> None:
        self.asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.asking


async def state_of(front: Any, task_id: str, state: str) -> dict[str, Any]:
    """Return a task as it reads back, once it has the state."""
    async with asyncio.timeout(5):
        while True:
            task: dict[str, Any] = (await front.rpc("tasks/get", {"id": task_id}))["result"]
            if task["status"]["state"] == state:
                return task


@pytest.mark.control("ANS-01", "LOAD-07")
@pytest.mark.parametrize("version", ["0.3", "1.0"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_turn_whose_sender_hung_up_is_ended_after_the_grace_and_can_be_read_back(
    kit: Any, receipts: list[Receipt], version: str, stream: bool
) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(**SHORT)) as front:
        visit = Visit(front, kit, version, stream=stream)
        task_id = await visit.task()
        await visit.hang_up()
        task = await state_of(front, task_id, "canceled")
        assert held.cleaned.is_set(), "the runner has cleaned up before the task says so"
        assert front.executor.running == 0
        message = task["status"]["message"]
        assert message["parts"][0]["text"] == front.agent.messages.cancelled
        assert message["metadata"] == {"gatehouse": {"outcome": "abandoned"}}
    assert [(one.outcome, one.cause) for one in receipts] == [("cancelled", "abandoned")]


@pytest.mark.parametrize("stream", [True, False])
async def test_within_the_grace_the_turn_runs_on_and_its_answer_can_be_read_back(
    kit: Any, receipts: list[Receipt], stream: bool
) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(**LONG)) as front:
        visit = Visit(front, kit, "0.3", stream=stream)
        task_id = await visit.task()
        turn = front.executor._turns[task_id]
        await visit.hang_up()
        await until(lambda: turn.audience._timer is not None)
        assert turn.ended is None
        held.may_finish.set()
        task = await state_of(front, task_id, "completed")
        assert kit.texts(task)[0] == "The whole answer."
        await turn.settled.wait()
        assert turn.audience._timer is None, "nothing is left that could fire"
    assert [one.outcome for one in receipts] == ["answered"]


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_a_reader_who_comes_back_in_the_grace_stops_it_and_sees_the_end(kit: Any, version: str) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(**LONG)) as front:
        visit = Visit(front, kit, version, stream=True)
        task_id = await visit.task()
        turn = front.executor._turns[task_id]
        await visit.hang_up()
        await until(lambda: turn.audience._timer is not None)
        states: list[Any] = []
        async for event in front.events(SUBSCRIBE[version], {"id": task_id}, version=version):
            if not states:
                assert turn.audience._timer is None
                held.may_finish.set()
            states.append(event["result"])
        last = states[-1] if version == "0.3" else states[-1]["statusUpdate"]
        assert last["status"]["state"] in {"completed", "TASK_STATE_COMPLETED"}


async def test_a_turn_is_watched_as_long_as_one_of_its_readers_is_there(kit: Any) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(**SHORT)) as front:
        sender = Visit(front, kit, "0.3", stream=True)
        task_id = await sender.task()
        turn = front.executor._turns[task_id]
        seen: list[Any] = []
        events = front.events("tasks/resubscribe", {"id": task_id})

        async def read() -> None:
            seen.append(await anext(events))
            await anext(events)

        reading = asyncio.create_task(read())
        await until(lambda: turn.audience._present == 2)
        await sender.hang_up()
        await until(lambda: turn.audience._present == 1)
        assert turn.audience._timer is None
        reading.cancel()
        await state_of(front, task_id, "canceled")
        assert seen


async def test_both_hang_up_and_each_of_their_turns_is_ended(kit: Any, receipts: list[Receipt]) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(**SHORT)) as front:
        visits = []
        for stream in (True, False):
            visits.append(Visit(front, kit, "0.3", stream=stream))
            await visits[-1].task()
        tasks = list(front.executor._turns)
        for visit in visits:
            await visit.hang_up()
        for task_id in tasks:
            await state_of(front, task_id, "canceled")
        assert front.runner.closed == 2
    assert [one.cause for one in receipts] == ["abandoned"] * 2


@pytest.mark.control("LOAD-02")
async def test_a_message_that_waits_for_its_turn_is_given_up_when_its_sender_has_gone(
    kit: Any, receipts: list[Receipt]
) -> None:
    held, context = Held(), str(uuid.uuid4())
    async with kit.serving(kit.Runner(held.script), kit.definition(**SHORT)) as front:
        first = Visit(front, kit, "0.3", stream=True, context=context)
        await first.task()
        second = Visit(front, kit, "0.3", stream=False, context=context)
        waiting = await second.task()
        await until(lambda: front.executor._memory.waiting(context) == 1)
        await second.hang_up()
        task = await state_of(front, waiting, "canceled")
        assert kit.texts(task)[1] == front.agent.messages.cancelled
        assert front.executor._memory.waiting(context) == 0
        held.may_finish.set()
        assert (await first.asking)[-1]["status"]["state"] == "completed", "the one before it is not touched"
        assert len(front.runner.plans) == 1, "no container was started for nobody"
    assert [one.cause for one in receipts] == ["abandoned", ""]


@pytest.mark.parametrize("stream", [True, False])
async def test_with_finish_a_turn_nobody_watches_runs_to_its_answer(kit: Any, stream: bool) -> None:
    held = Held()
    agent = kit.definition(on_disconnect="finish", disconnect_grace_seconds=0.0)
    async with kit.serving(kit.Runner(held.script), agent) as front:
        visit = Visit(front, kit, "0.3", stream=stream)
        task_id = await visit.task()
        turn = front.executor._turns[task_id]
        await visit.hang_up()
        await until(lambda: turn.audience._present == 0)
        assert turn.audience._timer is None
        held.may_finish.set()
        assert kit.texts(await state_of(front, task_id, "completed"))[0] == "The whole answer."


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_a_message_sent_without_waiting_is_never_given_up_even_after_a_reader_has_left(
    kit: Any, version: str
) -> None:
    held = Held()
    agent = kit.definition(disconnect_grace_seconds=0.0)
    async with kit.serving(kit.Runner(held.script), agent) as front:
        if version == "0.3":
            params = kit.message03("hello", configuration={"blocking": False})
        else:
            params = kit.message10("hello", configuration={"returnImmediately": True})
        answer = (await front.rpc(SEND[version], params, version=version))["result"]
        task_id = answer["id"] if version == "0.3" else answer["task"]["id"]
        turn = front.executor._turns[task_id]
        async for _event in front.events(SUBSCRIBE[version], {"id": task_id}, version=version):
            break
        await until(lambda: turn.audience._present == 0)
        assert turn.audience._timer is None
        assert turn.ended is None
        held.may_finish.set()
        assert kit.texts(await state_of(front, task_id, "completed"))[0] == "The whole answer."


async def test_a_stream_is_watched_even_if_it_asks_not_to_block(kit: Any) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(**SHORT)) as front:
        params = kit.message03("hello", configuration={"blocking": False})
        events = front.events("message/stream", params)
        task_id = (await anext(events))["result"]["id"]
        await events.aclose()
        task = await state_of(front, task_id, "canceled")
    assert task["status"]["message"]["metadata"]["gatehouse"]["outcome"] == "abandoned"


async def test_a_turn_that_has_answered_is_not_given_up_while_its_runner_cleans_up(
    kit: Any, receipts: list[Receipt]
) -> None:
    may_clean, interrupted = asyncio.Event(), False

    async def slow_to_clean(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        nonlocal interrupted
        try:
            yield Answer("done")
        finally:
            try:
                await may_clean.wait()
            except asyncio.CancelledError:
                interrupted = True
                raise

    agent = kit.definition(disconnect_grace_seconds=0.0)
    async with kit.serving(kit.Runner(slow_to_clean), agent) as front:
        assert kit.texts(await front.ask("hello"))[0] == "done"
        (turn,) = front.executor._turns.values()
        await until(lambda: turn.audience._timer is not None)
        may_clean.set()
        await turn.settled.wait()
    assert not interrupted
    assert [one.outcome for one in receipts] == ["answered"]


def raw_request(kit: Any, method: str, extra: str = "") -> bytes:
    sent = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": kit.message03("hi")})
    return (
        f"POST / HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n{extra}"
        f"content-length: {len(sent)}\r\n\r\n{sent}"
    ).encode()


@pytest.mark.control("ANS-01", "LOAD-07")
@pytest.mark.parametrize("reset", [True, False])
@pytest.mark.parametrize("method", ["message/send", "message/stream"])
@pytest.mark.parametrize("extra", ["", "connection: close\r\n", "connection: upgrade\r\nupgrade: x\r\n"])
async def test_a_byte_after_the_request_does_not_hide_that_its_client_has_left(
    kit: Any, method: str, extra: str, *, reset: bool
) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(**SHORT)) as front:
        _reader, writer = await asyncio.open_connection("127.0.0.1", int(front.url.rpartition(":")[2]))
        writer.write(raw_request(kit, method, extra))
        await front.runner.started.wait()
        writer.write(b"G")
        await writer.drain()
        for _ in range(20):
            await asyncio.sleep(0)
        if reset:
            linger = struct.pack("ii", 1, 0)
            writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        writer.close()
        await until(lambda: front.executor.running == 0)
        assert held.cleaned.is_set()


async def test_a_request_sent_before_the_first_is_answered_is_answered_after_it(kit: Any) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(**SHORT)) as front:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(front.url.rpartition(":")[2]))
        writer.write(raw_request(kit, "message/send") + b"GET /health HTTP/1.1\r\nhost: x\r\n")
        await front.runner.started.wait()
        writer.write(b"connection: close\r\n\r\n")
        await writer.drain()
        held.may_finish.set()
        async with asyncio.timeout(5):
            answers = await reader.read()
        assert answers.count(b"HTTP/1.1 200 ") == 2
        assert answers.index(b"The whole answer.") < answers.rindex(b"HTTP/1.1 200 ")
        writer.close()


@pytest.mark.control("LOAD-07")
async def test_a_flood_after_a_request_ends_its_connection_and_its_turn(kit: Any) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(**SHORT)) as front:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(front.url.rpartition(":")[2]))
        writer.write(raw_request(kit, "message/send"))
        await front.runner.started.wait()
        writer.write(b"G" * 20_000)
        async with asyncio.timeout(5):
            with contextlib.suppress(ConnectionError):
                assert await reader.read() == b""
        await until(lambda: front.executor.running == 0)
        assert held.cleaned.is_set()
        writer.close()
