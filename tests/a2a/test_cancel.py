"""Cancelling: the run really ends, the runner's cleanup is waited for, and the end is said once."""

from __future__ import annotations

import asyncio
import gc
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.types import (
    CancelTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskState,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import UnsupportedOperationError

from runtime.front.card import agent_card
from runtime.front.handler import READERS_MAX, FrontRequestHandler
from runtime.front.tasks import BoundedTaskStore
from runtime.turn.events import Answer, Snapshot, TurnEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.turn.plan import TurnPlan


class Held:
    """A run that holds until it is ended, and whose cleanup takes a moment that the test controls."""

    def __init__(self) -> None:
        self.cleaning = asyncio.Event()
        self.may_finish = asyncio.Event()
        self.cleaned = False

    async def script(self, _plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        try:
            yield Snapshot("x" * 200)
            await asyncio.Event().wait()
            yield Answer("never")
        finally:
            self.cleaning.set()
            await self.may_finish.wait()
            self.cleaned = True


async def start(front: Any, held: Held) -> str:
    front.runner.script = held.script
    task = await front.ask("hello", configuration={"blocking": False})
    await front.runner.started.wait()
    return str(task["id"])


async def test_cancel_waits_for_the_cleanup_and_answers_canceled(front: Any, kit: Any) -> None:
    held = Held()
    task_id = await start(front, held)
    cancelling = asyncio.create_task(front.rpc("tasks/cancel", {"id": task_id}))
    await held.cleaning.wait()
    assert not cancelling.done()
    held.may_finish.set()
    answer = await cancelling
    assert held.cleaned
    assert answer["result"]["status"]["state"] == "canceled"
    assert kit.texts(answer["result"])[1] == front.agent.messages.cancelled
    assert front.executor.running == 0
    again = await front.rpc("tasks/cancel", {"id": task_id})
    assert again["error"]["code"] == -32002
    assert again["error"]["message"] == front.agent.messages.no_running


async def test_cancel_in_the_1_0_dialect(front: Any) -> None:
    held = Held()
    held.may_finish.set()
    task_id = await start(front, held)
    answer = await front.rpc("CancelTask", {"id": task_id}, version="1.0")
    assert answer["result"]["status"]["state"] == "TASK_STATE_CANCELED"
    again = await front.rpc("CancelTask", {"id": task_id}, version="1.0")
    assert again["error"]["code"] == -32002


async def test_five_cancels_at_once_end_the_run_once_and_the_stream_says_so_once(
    front: Any, kit: Any
) -> None:
    held = Held()
    front.runner.script = held.script
    seen: list[dict[str, Any]] = []
    known = asyncio.Event()

    async def read() -> None:
        async for event in front.events("message/stream", kit.message03("hello")):
            seen.append(event["result"])
            known.set()

    reading = asyncio.create_task(read())
    await known.wait()
    await front.runner.started.wait()
    cancels = [asyncio.create_task(front.rpc("tasks/cancel", {"id": seen[0]["id"]})) for _ in range(5)]
    await held.cleaning.wait()
    held.may_finish.set()
    answers = await asyncio.gather(*cancels)
    await reading
    for answer in answers:
        if "error" in answer:
            assert answer["error"]["code"] == -32002
        else:
            assert answer["result"]["status"]["state"] == "canceled"
    assert any("result" in answer for answer in answers)
    assert [event.get("status", {}).get("state") for event in seen].count("canceled") == 1
    assert seen[-1]["final"] is True
    assert front.runner.closed == 1


@dataclass
class InTheSdk:
    """A turn that runs, asked for at the SDK's handler, with streams of it that nobody reads on.

    Readers that are behind show the SDK's fault: it closes a task's queues only when all is read, and a
    cancellation that comes meanwhile makes it forget to.
    """

    handler: FrontRequestHandler
    streams: list[AsyncGenerator[Any, None]]
    request: CancelTaskRequest

    @classmethod
    async def started(cls, front: Any, readers: int = 1, loops: int = 20) -> InTheSdk:
        """Start one and give it `loops` turns of the loop."""

        async def script(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
            for number in range(5):
                yield Snapshot("x y " * (60 + 10 * number))
            await asyncio.Event().wait()

        front.runner.script = script
        card = agent_card(front.agent, demo=False)
        handler = FrontRequestHandler(
            agent_executor=front.executor, task_store=BoundedTaskStore(), agent_card=card
        )
        message = Message(role=Role.ROLE_USER, message_id="m", parts=[Part(text="hello")])
        stream = handler.on_message_send_stream(SendMessageRequest(message=message), ServerCallContext())
        task = await anext(stream)
        await turns_of_the_loop(loops)
        self = cls(handler, [stream], CancelTaskRequest(id=task.id))
        for _ in range(readers):
            self.streams.append(self.read())
            await anext(self.streams[-1])
        return self

    def read(self) -> AsyncGenerator[Any, None]:
        asked = SubscribeToTaskRequest(id=self.request.id)
        return self.handler.on_subscribe_to_task(asked, ServerCallContext())

    def cancel(self) -> asyncio.Task[Any]:
        return asyncio.create_task(self.handler.on_cancel_task(self.request, ServerCallContext()))

    async def last_states(self) -> list[Any]:
        """Read every stream to its end and return the last state that each told."""

        async def read(stream: AsyncGenerator[Any, None]) -> Any:
            return [event.status.state async for event in stream if isinstance(event, TaskStatusUpdateEvent)]

        return [states[-1] for states in await asyncio.gather(*map(read, self.streams))]

    async def close(self) -> None:
        for stream in self.streams:
            await stream.aclose()
        await self.handler.aclose()


async def turns_of_the_loop(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("loops", range(3, 9))
async def test_cancels_that_come_while_the_sdk_cleans_up_do_not_keep_a_stream_open(
    front: Any, loops: int
) -> None:
    for apart in range(16):
        sdk = await InTheSdk.started(front, loops=loops)
        cancels = [sdk.cancel()]
        await turns_of_the_loop(apart)
        cancels.append(sdk.cancel())
        async with asyncio.timeout(5):
            assert await sdk.last_states() == [TaskState.TASK_STATE_CANCELED] * 2
            await asyncio.gather(*cancels, return_exceptions=True)
        await sdk.close()


@pytest.mark.parametrize("late", [0, 3, 4, 5, 8])
async def test_a_cancellation_of_the_sdk_s_that_comes_after_the_turn_s_end_does_not_keep_a_stream_open(
    front: Any, late: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel = front.executor.cancel

    async def slow(*arguments: Any) -> None:
        await cancel(*arguments)
        await turns_of_the_loop(late)

    monkeypatch.setattr(front.executor, "cancel", slow)
    for loops in (10, 20, 40):
        sdk = await InTheSdk.started(front, loops=loops)
        cancelling = sdk.cancel()
        await turns_of_the_loop(loops)
        async with asyncio.timeout(5):
            assert await sdk.last_states() == [TaskState.TASK_STATE_CANCELED] * 2
            assert (await cancelling).status.state == TaskState.TASK_STATE_CANCELED
        await sdk.close()


async def test_a_cancel_that_fails_when_all_who_asked_have_gone_is_no_unread_exception(
    front: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unread: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: unread.append(context))
    begun, may_fail = asyncio.Event(), asyncio.Event()

    async def failing(*_arguments: Any) -> None:
        begun.set()
        await may_fail.wait()
        raise OSError

    sdk = await InTheSdk.started(front)
    monkeypatch.setattr(DefaultRequestHandler, "on_cancel_task", failing)
    asking = sdk.cancel()
    await begun.wait()
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    may_fail.set()
    await turns_of_the_loop(3)
    gc.collect()
    assert sdk.handler._cancels == {}
    assert unread == []
    await sdk.close()


async def test_a_task_is_read_by_a_few_streams_at_a_time(front: Any) -> None:
    sdk = await InTheSdk.started(front, READERS_MAX)
    with pytest.raises(UnsupportedOperationError):
        await anext(sdk.read())
    await sdk.streams.pop().aclose()
    sdk.streams.append(sdk.read())
    await anext(sdk.streams[-1])
    await sdk.close()
    assert not sdk.handler._readers


async def test_a_blocking_sender_gets_its_task_back_as_canceled(front: Any, kit: Any) -> None:
    held = Held()
    held.may_finish.set()
    front.runner.script = held.script
    context = "6d0ad0a1-6a3c-4b8e-9d9a-1f8c53b6f2aa"
    sending = asyncio.create_task(front.ask("hello", context))
    await front.runner.started.wait()
    task_id = next(iter(front.executor._turns))
    await front.rpc("tasks/cancel", {"id": task_id})
    task = await sending
    assert task["status"]["state"] == "canceled"
    assert kit.texts(task)[1] == front.agent.messages.cancelled


@pytest.mark.control("LOAD-03")
async def test_stopping_ends_open_streams_with_a_configured_text(kit: Any) -> None:
    held = Held()
    held.may_finish.set()
    async with kit.serving(kit.Runner(held.script), kit.definition()) as front:
        seen: list[dict[str, Any]] = []

        async def read() -> None:
            seen.extend(
                [event["result"] async for event in front.events("message/stream", kit.message03("x"))]
            )

        reading = asyncio.create_task(read())
        await front.runner.started.wait()
        draining = asyncio.create_task(front.executor.drain())
        await draining
        late = await front.ask("too late")
        assert kit.texts(late) == (front.agent.messages.stopping,) * 2
        assert (await front.http.get("/ready")).json() == {"status": "not-ready"}
        await reading
        assert seen[-1]["final"] is True
        assert seen[-1]["status"]["message"]["parts"][0]["text"] == front.agent.messages.stopping
    assert held.cleaned


async def test_canceling_an_unknown_task_is_not_found(front: Any) -> None:
    assert (await front.rpc("tasks/cancel", {"id": "nope"}))["error"]["code"] == -32001
