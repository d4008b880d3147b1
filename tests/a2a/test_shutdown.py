"""A front that is stopped: no new turns, time for those that run, and a text of its own for each visitor."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from runtime.turn.events import Answer, Snapshot, TurnEvent
from runtime.turn.receipt import Receipt, Receipts

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.turn.plan import TurnPlan

GRACE = {"stop_grace_seconds": 60.0}


class Held:
    def __init__(self) -> None:
        self.may_finish = asyncio.Event()

    async def script(self, _plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Snapshot("so far " * 20)
        await self.may_finish.wait()
        yield Answer("The whole answer.")


async def streamed(front: Any, kit: Any, context: str | None = None) -> list[dict[str, Any]]:
    events = front.events("message/stream", kit.message03("hello", context))
    return [event["result"] async for event in events]


async def turns(front: Any, count: int) -> None:
    """Let the loop run until so many turns are in hand; the front has no event for it."""
    async with asyncio.timeout(5):
        while len(front.executor._turns) != count:  # noqa: ASYNC110  a state of the object, not an event
            await asyncio.sleep(0)


def told(status: dict[str, Any]) -> tuple[str, str, dict[str, Any]]:
    message = status["message"]
    return status["state"], message["parts"][0]["text"], message.get("metadata", {}).get("gatehouse", {})


@pytest.mark.control("LOAD-03")
async def test_turns_that_run_get_their_time_and_their_visitors_the_answer(kit: Any) -> None:
    held = Held()
    async with kit.serving(kit.Runner(held.script), kit.definition(), **GRACE) as front:
        asking = asyncio.create_task(front.ask("hello"))
        reading = asyncio.create_task(streamed(front, kit))
        await turns(front, 2)
        draining = asyncio.create_task(front.executor.drain())
        late = await front.ask("too late")
        assert told(late["status"])[:2] == ("completed", front.agent.messages.stopping)
        assert told(late["status"])[2] == {"outcome": "stopping", "retryAfterSeconds": 60}
        assert kit.texts(late)[0] == front.agent.messages.stopping
        assert not draining.done()
        held.may_finish.set()
        await draining
        assert kit.texts(await asking)[0] == "The whole answer."
        assert told((await reading)[-1]["status"])[1] == "The whole answer."


@pytest.mark.control("LOAD-03", "ANS-01")
async def test_past_the_grace_every_stream_and_blocking_sender_reads_that_the_agent_stops(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Receipt] = []
    monkeypatch.setattr(Receipts, "write", lambda _self, receipt: written.append(receipt))
    held = Held()
    agent = kit.definition(max_concurrency=4)
    async with kit.serving(kit.Runner(held.script), agent, stop_grace_seconds=0.05) as front:
        asking = asyncio.create_task(front.ask("hello"))
        reading = asyncio.create_task(streamed(front, kit))
        apart = await front.ask("hello", configuration={"blocking": False})
        await turns(front, 3)
        assert apart["status"]["state"] in {"submitted", "working"}
        await front.stop()
        for status in ((await asking)["status"], (await reading)[-1]["status"]):
            state, text, metadata = told(status)
            assert (state, text) == ("completed", front.agent.messages.stopping)
            assert metadata["outcome"] == "stopping"
            assert 1 <= metadata["retryAfterSeconds"] <= 60
    assert front.runner.closed == 3
    assert [(one.outcome, one.cause) for one in written] == [("cancelled", "stopping")] * 3


@pytest.mark.control("LOAD-03")
async def test_a_message_that_waits_for_another_of_its_context_is_told_at_once(kit: Any) -> None:
    held, context = Held(), str(uuid.uuid4())
    async with kit.serving(kit.Runner(held.script), kit.definition(), **GRACE) as front:
        first = asyncio.create_task(streamed(front, kit, context))
        await front.runner.started.wait()
        second = asyncio.create_task(streamed(front, kit, context))
        third = asyncio.create_task(front.ask("hello", context))
        await turns(front, 3)
        draining = asyncio.create_task(front.executor.drain())
        assert told((await second)[-1]["status"])[:2] == ("completed", front.agent.messages.stopping)
        assert told((await third)["status"])[:2] == ("completed", front.agent.messages.stopping)
        assert not draining.done()
        held.may_finish.set()
        await draining
        assert told((await first)[-1]["status"])[1] == "The whole answer."
        assert len(front.runner.plans) == 1


async def test_who_is_in_a_hurry_ends_the_turns_that_run_at_once(kit: Any) -> None:
    held, hurry = Held(), asyncio.Event()
    async with kit.serving(kit.Runner(held.script), kit.definition(), **GRACE) as front:
        asking = asyncio.create_task(front.ask("hello"))
        await front.runner.started.wait()
        draining = asyncio.create_task(front.executor.drain(hurry))
        async with asyncio.timeout(5):
            while not front.executor.stopping:  # noqa: ASYNC110  a state of the object, not an event
                await asyncio.sleep(0)
            assert not asking.done()
            hurry.set()
            await draining
            assert told((await asking)["status"])[1] == front.agent.messages.stopping


async def test_draining_with_nothing_to_end_returns(kit: Any) -> None:
    async with kit.serving(kit.Runner(), kit.definition(), **GRACE) as front:
        await front.ask("hello")
        async with asyncio.timeout(5):
            await front.executor.drain()
            await front.executor.drain()
        assert front.executor.stopping


@pytest.mark.control("LOAD-03")
@pytest.mark.parametrize("how", ["stop", "cancel"])
async def test_a_turn_that_has_answered_cleans_up_whole_and_is_remembered(kit: Any, how: str) -> None:
    may_clean, cleaned = asyncio.Event(), asyncio.Event()

    async def script(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        try:
            yield Answer("The whole answer.")
        finally:
            await may_clean.wait()
            cleaned.set()

    context = str(uuid.uuid4())
    async with kit.serving(kit.Runner(script), kit.definition(), stop_grace_seconds=0.0) as front:
        asking = asyncio.create_task(streamed(front, kit, context))
        await turns(front, 1)
        ((task_id, turn),) = front.executor._turns.items()
        async with asyncio.timeout(5):
            while not turn.telling.finished:  # noqa: ASYNC110  a state of the object, not an event
                await asyncio.sleep(0)
        if how == "stop":
            ending = asyncio.create_task(front.executor.drain())
        else:
            ending = asyncio.create_task(front.rpc("tasks/cancel", {"id": task_id}))
        for _ in range(50):
            await asyncio.sleep(0)
        assert front.executor.running == 1, "the place is taken until the runner has cleaned up"
        may_clean.set()
        await ending
        assert told((await asking)[-1]["status"])[:2] == ("completed", "The whole answer.")
        assert cleaned.is_set()
        async with front.forget._memory.turn(context) as remembered:
            assert [one.agent for one in remembered] == ["The whole answer."]
