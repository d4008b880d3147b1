"""Cancelling: the run really ends, the runner's cleanup is waited for, and the end is said once."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

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
        assert kit.texts(late) == (front.agent.messages.busy,) * 2
        assert (await front.http.get("/ready")).json() == {"status": "not-ready"}
        await reading
        assert seen[-1]["final"] is True
        assert seen[-1]["status"]["message"]["parts"][0]["text"] == front.agent.messages.cancelled
    assert held.cleaned


async def test_canceling_an_unknown_task_is_not_found(front: Any) -> None:
    assert (await front.rpc("tasks/cancel", {"id": "nope"}))["error"]["code"] == -32001
