"""The answer contract (architecture §6): one non-empty answer on every path, in both dialects."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from runtime.agents.definition import Tools
from runtime.front.telling import SNAPSHOTS_MAX
from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step, TurnEvent
from runtime.turn.receipt import Receipt, Receipts
from runtime.turn.stream import OTHER_TOOL, STEPS_MAX

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.turn.plan import TurnPlan

LONG = "Office hours are on Tuesday from two to four, in the drawing room, by appointment only. " * 4
MESSAGES = {
    Cause.TIMEOUT: "timeout",
    Cause.EMPTY: "empty_model",
    Cause.BUSY: "busy",
    Cause.ENGINE: "spawn_error",
    Cause.SPAWNER: "spawn_error",
    Cause.MODEL: "error",
    Cause.OUTPUT: "error",
    Cause.CRASH: "error",
    Cause.INTERNAL: "error",
}


def playing(*events: TurnEvent) -> Any:
    async def script(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        for event in events:
            yield event

    return script


@pytest.mark.control("ANS-01")
async def test_send_answers_one_completed_task_with_the_same_text_twice(front: Any, kit: Any) -> None:
    task = await front.ask("  hello  ")
    assert task["kind"] == "task"
    assert task["status"]["state"] == "completed"
    assert kit.texts(task) == ("echo: hello", "echo: hello")
    assert len(task["artifacts"]) == 1
    assert task["artifacts"][0]["name"] == "answer"
    assert task["history"][0]["role"] == "user"


async def test_send_in_the_1_0_dialect_answers_the_same(front: Any, kit: Any) -> None:
    answer = await front.rpc("SendMessage", kit.message10("hello"), version="1.0")
    task = answer["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_COMPLETED"
    assert kit.texts(task) == ("echo: hello", "echo: hello")


async def test_the_version_may_come_as_a_query_parameter(front: Any, kit: Any) -> None:
    body = {"jsonrpc": "2.0", "id": 7, "method": "SendMessage", "params": kit.message10("hello")}
    answer = await front.http.post("/?A2A-Version=1.0", json=body)
    assert answer.json()["result"]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.parametrize("text", ["größe 🎉 中文 שלום", "a\u2028b", "tab\there", "\\ud83d"])
async def test_text_beyond_ascii_comes_back_whole(front: Any, kit: Any, text: str) -> None:
    expected = "echo: " + text.replace("\u2028", "")
    assert kit.texts(await front.ask(text)) == (expected, expected)
    answer = await front.rpc("SendMessage", kit.message10(text), version="1.0")
    assert kit.texts(answer["result"]["task"]) == (expected, expected)


async def test_a_stream_shows_task_working_steps_growing_answer_and_the_end(front: Any, kit: Any) -> None:
    front.runner.script = playing(
        Step("Read", "Reading hours.md"),
        Snapshot(LONG[:100]),
        Snapshot(LONG[:200]),
        Snapshot(LONG),
        Answer(LONG),
    )
    events = [event["result"] async for event in front.events("message/stream", kit.message03("When?"))]
    assert events[0]["kind"] == "task"
    assert events[0]["status"]["state"] == "submitted"
    labels = [e["status"]["message"]["parts"][0]["text"] for e in events[1:] if e["kind"] == "status-update"]
    assert labels[:2] == [front.agent.messages.working, "Reading hours.md"]
    shown = [e["artifact"]["parts"][0]["text"] for e in events if e["kind"] == "artifact-update"]
    assert len(shown) == 4
    assert all(LONG.startswith(text) for text in shown)
    assert [len(text) for text in shown] == sorted(len(text) for text in shown)
    assert len({e["artifact"]["artifactId"] for e in events if e["kind"] == "artifact-update"}) == 1
    assert not any(e.get("append") for e in events)
    assert events[-1]["final"] is True
    assert events[-1]["status"]["state"] == "completed"
    assert labels[-1] == shown[-1] == LONG.strip()


async def test_a_1_0_stream_ends_with_the_completed_state(front: Any, kit: Any) -> None:
    front.runner.script = playing(Snapshot(LONG), Answer(LONG))
    events = [e async for e in front.events("SendStreamingMessage", kit.message10("When?"), version="1.0")]
    assert events[0]["result"]["task"]["status"]["state"] == "TASK_STATE_SUBMITTED"
    assert events[-1]["result"]["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"
    assert events[-2]["result"]["artifactUpdate"]["artifact"]["parts"][0]["text"] == LONG.strip()


async def test_a_finished_task_can_be_read_back_in_both_dialects(front: Any, kit: Any) -> None:
    task = await front.ask("hello")
    again = (await front.rpc("tasks/get", {"id": task["id"]}))["result"]
    assert again["status"]["state"] == "completed"
    assert kit.texts(again) == kit.texts(task)
    newer = (await front.rpc("GetTask", {"id": task["id"]}, version="1.0"))["result"]
    assert newer["status"]["state"] == "TASK_STATE_COMPLETED"


@pytest.mark.control("ANS-01")
@pytest.mark.parametrize("cause", list(MESSAGES))
async def test_each_failure_is_one_configured_text_in_artifact_and_message(
    front: Any, kit: Any, cause: Cause
) -> None:
    front.runner.script = playing(Failed(cause, "SECRET detail for the log"))
    task = await front.ask("hello")
    expected = getattr(front.agent.messages, MESSAGES[cause])
    assert task["status"]["state"] == "completed"
    assert kit.texts(task) == (expected, expected)
    told = task["status"]["message"]["metadata"]["gatehouse"]
    assert told["outcome"] == cause.value
    assert ("retryAfterSeconds" in told) == (cause is Cause.BUSY)
    assert "SECRET" not in json.dumps(task)


async def raising(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
    yield Snapshot("x" * 200)
    raise RuntimeError("SECRET internal path")


async def silent(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
    if _plan.agent == "nobody":
        yield Snapshot("never")


async def endless(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
    await asyncio.Event().wait()
    yield Snapshot("never")


async def raising_at_cleanup(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
    try:
        yield Answer("The answer.")
    finally:
        raise OSError("SECRET")


@pytest.mark.control("ANS-01", "WIRE-01")
@pytest.mark.parametrize("script", [raising, silent])
async def test_a_runner_with_a_bug_still_gives_one_answer(front: Any, kit: Any, script: Any) -> None:
    front.runner.script = script
    task = await front.ask("hello")
    assert kit.texts(task) == (front.agent.messages.error,) * 2
    assert "SECRET" not in json.dumps(task)
    assert front.executor.running == 0


@pytest.mark.control("ANS-01")
async def test_a_runner_that_never_ends_is_ended_by_the_watchdog(kit: Any) -> None:
    runner = kit.Runner(endless)
    async with kit.serving(runner, kit.definition(timeout_seconds=0.2), watchdog_slack_seconds=0.1) as front:
        task = await front.ask("hello")
        assert kit.texts(task) == (front.agent.messages.timeout,) * 2
        front.runner.script = playing(Answer("fine"))
        assert kit.texts(await front.ask("again")) == ("fine", "fine")
    assert runner.closed == 2


async def test_a_cleanup_that_fails_does_not_cost_the_answer(front: Any, kit: Any) -> None:
    front.runner.script = raising_at_cleanup
    assert kit.texts(await front.ask("hello")) == ("The answer.",) * 2


async def test_a_streamed_failure_ends_the_stream_with_the_configured_text(front: Any, kit: Any) -> None:
    front.runner.script = raising
    events = [event["result"] async for event in front.events("message/stream", kit.message03("hello"))]
    assert events[-1]["final"] is True
    assert events[-1]["status"]["message"]["parts"][0]["text"] == front.agent.messages.error
    artifacts = [e for e in events if e["kind"] == "artifact-update"]
    assert artifacts[-1]["artifact"]["parts"][0]["text"] == front.agent.messages.error
    assert "SECRET" not in json.dumps(events)


async def test_text_that_screening_empties_is_answered_with_the_configured_message(
    front: Any, kit: Any
) -> None:
    front.runner.script = playing(Answer("\u200b\u2066\x00"))
    assert kit.texts(await front.ask("hello")) == (front.agent.messages.empty_model,) * 2


@pytest.mark.control("SCREEN-01")
async def test_a_key_in_an_answer_or_a_snapshot_does_not_leave(front: Any, kit: Any) -> None:
    text = (
        "Here: sk-ant-test-0000-0000-0000 and more words that follow it, enough to be shown to a visitor. "
        * 2
    )
    front.runner.script = playing(Step("Read", "Reading sk-ant-test-0000-0000"), Snapshot(text), Answer(text))
    events = [event["result"] async for event in front.events("message/stream", kit.message03("hello"))]
    assert "sk-ant" not in json.dumps(events)
    assert "[withheld]" in json.dumps(events[-1])


@pytest.mark.control("IN-01")
async def test_empty_text_is_a_failed_task_that_says_so(front: Any, kit: Any) -> None:
    for parameters in (kit.message03("   "), kit.message03("")):
        task = (await front.rpc("message/send", parameters))["result"]
        assert task["status"]["state"] == "failed"
        assert kit.texts(task) == ("", front.agent.messages.empty)
    answer = await front.rpc("SendMessage", kit.message10(""), version="1.0")
    assert answer["result"]["task"]["status"]["state"] == "TASK_STATE_FAILED"
    assert front.runner.plans == []


@pytest.mark.control("IN-02")
async def test_text_at_the_limit_passes_and_one_character_more_does_not(kit: Any) -> None:
    async with kit.serving(kit.Runner(), kit.definition(max_input_chars=10)) as front:
        assert kit.texts(await front.ask("x" * 10))[0] == "echo: " + "x" * 10
        task = await front.ask("x" * 11)
        expected = front.agent.messages.too_long.format(n=11, max=10)
        assert task["status"]["state"] == "completed"
        assert kit.texts(task) == (expected, expected)
        assert len(front.runner.plans) == 1


@pytest.mark.control("LOAD-01")
async def test_when_all_slots_are_taken_the_answer_is_busy_at_once(kit: Any) -> None:
    release = asyncio.Event()

    async def held(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        await release.wait()
        yield Answer("done")

    async with kit.serving(kit.Runner(held), kit.definition(max_concurrency=1)) as front:
        first = asyncio.create_task(front.ask("one"))
        await front.runner.started.wait()
        task = await front.ask("two")
        assert kit.texts(task) == (front.agent.messages.busy,) * 2
        assert task["status"]["message"]["metadata"]["gatehouse"]["outcome"] == "busy"
        release.set()
        assert kit.texts(await first) == ("done", "done")
        assert kit.texts(await front.ask("three")) == ("done", "done")


async def test_a_non_blocking_send_returns_at_once_and_the_task_finishes(front: Any) -> None:
    release = asyncio.Event()

    async def held(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        await release.wait()
        yield Answer("done")

    front.runner.script = held
    task = await front.ask("hello", configuration={"blocking": False})
    assert task["status"]["state"] in {"submitted", "working"}
    release.set()
    async for event in front.events("tasks/resubscribe", {"id": task["id"]}):
        if event.get("result", {}).get("final"):
            break
    done = (await front.rpc("tasks/get", {"id": task["id"]}))["result"]
    assert done["status"]["state"] == "completed"


async def test_a_flood_of_events_stays_below_the_limit_at_which_a_reader_is_dropped(
    front: Any, kit: Any
) -> None:
    # Each begins anew, as after a tool's use; beyond 1024 events the SDK drops a reader.
    front.runner.script = playing(*(Snapshot(f"{n} " + "a " * 50) for n in range(1500)), Answer("done"))
    events = [event["result"] async for event in front.events("message/stream", kit.message03("hello"))]
    assert SNAPSHOTS_MAX < len(events) < SNAPSHOTS_MAX + 10
    assert SNAPSHOTS_MAX + STEPS_MAX < 1024
    assert events[-1]["final"] is True


async def test_a_turn_cancelled_while_its_runner_hangs_is_told_as_cancelled(kit: Any) -> None:
    async def deaf(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Step("Read", "Reading")
        hangs.set()
        while not may_end.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await may_end.wait()

    hangs, may_end = asyncio.Event(), asyncio.Event()
    agent = kit.definition(timeout_seconds=0.2)
    async with kit.serving(kit.Runner(deaf), agent, watchdog_slack_seconds=0.05) as front:
        asking = asyncio.create_task(front.ask("hello"))
        await hangs.wait()
        (turn,) = front.executor._turns.values()
        turn.end(Cause.CANCELLED)
        task = await asking
        may_end.set()
    assert (task["status"]["state"], kit.texts(task)[-1]) == ("canceled", agent.messages.cancelled)


@pytest.mark.control("ANS-01", "LOAD-01")
@pytest.mark.parametrize("last", [Answer("done"), Failed(Cause.TIMEOUT, "x")])
async def test_the_answer_comes_before_the_cleanup_and_the_slot_is_free_after_it(
    kit: Any, last: TurnEvent
) -> None:
    may_clean = asyncio.Event()

    async def slow_to_clean(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        try:
            yield last
        finally:
            await may_clean.wait()

    agent = kit.definition(max_concurrency=1, timeout_seconds=0.2)
    async with kit.serving(kit.Runner(slow_to_clean), agent, watchdog_slack_seconds=0.05) as front:
        task = await front.ask("hello")
        assert kit.texts(task)[0] == (last.text if isinstance(last, Answer) else agent.messages.timeout)
        assert front.runner.closed == 0
        assert front.executor.running == 1
        assert kit.texts(await front.ask("another"))[0] == agent.messages.busy
        turn = next(iter(front.executor._turns.values()))
        with pytest.raises(TimeoutError):  # past the turn's time and the watchdog's
            async with asyncio.timeout(0.5):
                await turn.settled.wait()
        assert front.executor.running == 1
        may_clean.set()
        await turn.settled.wait()
        assert front.runner.closed == 1
        assert front.executor.running == 0


@pytest.mark.control("ANS-01")
async def test_a_turn_is_planned_for_what_is_left_of_its_time_and_no_more(front: Any) -> None:
    await front.ask("hello")
    assert 0 < front.runner.plans[-1].timeout_seconds <= front.agent.limits.timeout_seconds


async def test_only_the_agent_s_own_tools_are_named_in_the_receipt(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[Receipt] = []
    monkeypatch.setattr(Receipts, "write", lambda _self, receipt: written.append(receipt))
    agent = replace(kit.definition(), tools=Tools(("Read",), ("opening_hours",)))
    names = ["Read", "mcp__grants__opening_hours", "mcp__grants__made_up", "Glob"]
    script = playing(*(Step(name, "Working") for name in names), Answer("x"))
    async with kit.serving(kit.Runner(script), agent) as front:
        await front.ask("hello")
    assert written[0].steps == {"Read": 1, "mcp__grants__opening_hours": 1, OTHER_TOOL: 2}
