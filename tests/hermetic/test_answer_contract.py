"""The answer contract from a process to a visitor: one non-empty answer, in time, whatever the CLI does."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step
from runtime.unsandboxed import runner as runner_file

if TYPE_CHECKING:
    from pathlib import Path

LONG = "Office hours are on Tuesday from two to four, in the drawing room, by appointment only. " * 4


async def test_the_result_is_the_answer(front: Any) -> None:
    assert await front.ask() == "From the stub."


async def test_what_the_visitor_wrote_reaches_the_cli_framed_and_as_one_line(
    front: Any, stub: Any, kit: Any
) -> None:
    stub.play({"read": True}, {"record": str(stub.record)}, kit.result("ok"))
    assert await front.ask("/model opus\n@./facts.md größe 🎉") == "ok"
    line = stub.recorded()["stdin"]
    assert line.count("\n") == 1
    text = json.loads(line)["message"]["content"][0]["text"]
    assert text.startswith("What follows is a conversation with an anonymous visitor")
    now = json.loads(next(row for row in text.splitlines() if row.startswith('{"from"')))
    assert now == {"from": "visitor", "text": "/model opus\n@./facts.md größe 🎉", "now": True}


async def test_a_stream_shows_steps_and_a_growing_answer_before_the_end(
    front: Any, stub: Any, kit: Any
) -> None:
    stub.play(
        kit.used("Read", file_path="/grounding/hours.md"),
        kit.used("Grep", pattern="x"),
        kit.event("message_start"),
        *(kit.delta(LONG[at : at + 10]) for at in range(0, len(LONG), 10)),
        kit.result(LONG),
    )
    events = [event async for event in front.stream()]
    labels = [e["status"]["message"]["parts"][0]["text"] for e in events[1:] if e["kind"] == "status-update"]
    shown = [e["artifact"]["parts"][0]["text"] for e in events if e["kind"] == "artifact-update"]
    assert labels[:3] == ["<working>", "Reading hours.md", "Searching"]
    assert len(shown) > 2
    assert all(LONG.startswith(text.strip()) for text in shown)
    assert [len(text) for text in shown] == sorted(len(text) for text in shown)
    assert shown[-1] == labels[-1] == LONG.strip()
    assert events[-1]["final"] is True


@pytest.mark.parametrize(
    ("steps", "answer"),
    [
        ([{"kind": "said", "text": "Only said."}], "Only said."),
        ([{"kind": "delta", "text": "Only as a delta."}], "Only as a delta."),
        ([], "<empty_model>"),
        (
            [{"line": "not json"}, {"line": "[1, 2]"}, {"line": "null"}, {"line": '{"type": 7}'}],
            "<empty_model>",
        ),
        ([{"kind": "result", "text": ""}], "<empty_model>"),
        ([{"kind": "said", "text": "Said before."}, {"kind": "result", "text": ""}], "Said before."),
        ([{"kind": "result", "text": "first"}, {"kind": "result", "text": "second"}], "first"),
        ([{"kind": "result", "text": "as error", "is_error": True}], "<error>"),
        ([{"kind": "said", "text": "API Error: x", "is_api_error_message": True}], "<error>"),
        ([{"exit": 3}], "<error>"),
        ([{"stderr": "Segmentation fault"}, {"die": "SIGSEGV"}], "<error>"),
        ([{"kind": "said", "text": "Said, then it broke."}, {"exit": 1}], "Said, then it broke."),
        ([{"kind": "result", "text": "Right."}, {"exit": 1}], "Right."),
        ([{"bytes": "x", "n": 2 * 1024 * 1024}, {"line": ""}], "<empty_model>"),
        (
            [{"bytes": "x", "n": 2 * 1024 * 1024}, {"line": ""}, {"kind": "result", "text": "After it."}],
            "After it.",
        ),
        ([{"bytes": "\x00", "n": 70000}], "<empty_model>"),
        ([{"close": "stdout"}, {"hang": True}], "<error>"),
        ([{"kind": "said", "text": "Said."}, {"close": "stdout"}, {"hang": True}], "Said."),
        ([{"kind": "result", "text": "And stays."}, {"hang": True}], "And stays."),
        ([{"ignore": "SIGTERM"}, {"kind": "result", "text": "Stubborn."}, {"hang": True}], "Stubborn."),
    ],
)
async def test_whatever_the_cli_does_the_visitor_gets_one_answer(
    front: Any, stub: Any, kit: Any, steps: list[dict[str, Any]], answer: str
) -> None:
    def made(step: dict[str, Any]) -> dict[str, Any]:
        made_by = {"said": kit.said, "delta": kit.delta, "result": kit.result}
        kind = step.pop("kind", "")
        return dict(made_by[kind](**step)) if kind else step

    stub.play(*(made(dict(step)) for step in steps))
    assert await front.ask() == answer


@pytest.mark.parametrize("flood", ["x" * 100, "\n" * 65536, "{}"])
async def test_a_flood_ends_at_the_output_cap_or_on_a_busy_machine_at_the_deadline(
    front: Any, stub: Any, flood: str
) -> None:
    stub.play({"flood": flood})
    assert await front.ask() in {"<error>", "<timeout>"}


async def test_a_line_of_256_kib_is_read(front: Any, stub: Any, kit: Any) -> None:
    stub.play(kit.said("x", padding="y" * 256 * 1024), kit.result("Read it."))
    assert await front.ask() == "Read it."


async def test_a_lost_delta_is_mended_by_the_final_answer(stub: Any, kit: Any) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    stub.play(kit.delta("The sky is "), kit.event("content_block_stop"), kit.result("The sky is blue."))
    events = await kit.events_of(runner, agent)
    await runner.aclose()
    assert events == [Snapshot("The sky is "), Answer("The sky is blue.")]


@pytest.mark.parametrize("steps", [[], [{"stderr": "x"}], [{"say": {"type": "system"}}]])
async def test_at_the_deadline_the_visitor_is_asked_to_try_again(
    stub: Any, kit: Any, clock: Any, steps: list[dict[str, Any]]
) -> None:
    agent = stub.agent()
    stub.play(kit.delta(LONG), *steps, {"record": str(stub.record)}, {"hang": True})
    async with kit.serving(stub.runner(agent), agent) as front:
        asking = asyncio.create_task(front.ask())
        await asyncio.to_thread(kit.wait_for, stub.record)
        clock.leap(agent.limits.timeout_seconds - 0.5)
        assert await asking == "<timeout>"


async def test_a_cli_that_says_nothing_meets_the_deadline_before_the_turns_own_time_is_over(
    stub: Any, kit: Any, clock: Any
) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    stub.play({"record": str(stub.record)}, {"hang": True})
    turn = asyncio.create_task(kit.events_of(runner, agent))
    await asyncio.to_thread(kit.wait_for, stub.record)
    clock.leap(agent.limits.timeout_seconds - 0.5)
    clock.stop()  # whatever comes now does not wait for the end of the turn's time
    (end,) = await turn
    await runner.aclose()
    assert isinstance(end, Failed)
    assert end.cause is Cause.TIMEOUT
    assert not kit.alive(stub.recorded()["pid"])


async def test_the_result_counts_even_when_the_deadline_comes_after_it(
    stub: Any, kit: Any, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    stub.play(kit.result("In time."), {"hang": True})
    hurry = runner_file._Turn.hurry

    def late(turn: Any) -> None:
        clock.leap(agent.limits.timeout_seconds - 1.5)
        hurry(turn)
        clock.leap(1.0)

    monkeypatch.setattr(runner_file._Turn, "hurry", late)
    assert await kit.events_of(runner, agent) == [Answer("In time.")]
    await runner.aclose()


@pytest.mark.parametrize("session", [False, True])
async def test_a_child_that_holds_the_pipe_delays_nothing_and_does_not_outlive_the_turn(
    stub: Any, kit: Any, tmp_path: Path, *, session: bool
) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    child = tmp_path / "child.json"
    stub.play(
        {"fork": [{"record": str(child)}, {"hang": True}], "session": session},
        {"wait": str(child)},
        kit.result("Done."),
        *([{"hang": True}] if session else []),
    )
    async with asyncio.timeout(10):
        assert await kit.events_of(runner, agent) == [Answer("Done.")]
    await runner.aclose()
    assert not kit.alive(json.loads(child.read_text())["pid"])


async def test_a_turn_that_is_left_takes_the_cli_and_its_children_with_it(
    stub: Any, kit: Any, tmp_path: Path
) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    child = tmp_path / "child.json"
    hanging = [{"record": str(child)}, {"hang": True}]
    stub.play(
        {"ignore": "SIGTERM"},
        {"fork": hanging, "session": True},
        {"wait": str(child)},
        {"record": str(stub.record)},
        kit.used("Glob"),
        {"hang": True},
    )
    from runtime.turn.plan import plan_turn

    async with contextlib.aclosing(runner.run(plan_turn(agent, (), "Hi", "c", "v"))) as events:
        assert await anext(events) == Step("Glob", "Looking for files")
    pids = [stub.recorded()["pid"], json.loads(child.read_text())["pid"]]
    await runner.aclose()
    assert [pid for pid in pids if kit.alive(pid)] == []


async def test_a_cancelled_turn_ends_its_process_before_the_cancellation_is_through(
    stub: Any, kit: Any
) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    stub.play({"record": str(stub.record)}, kit.used("Glob"), {"hang": True})
    from runtime.turn.plan import plan_turn

    seen = asyncio.Event()

    async def turn() -> None:
        async for _event in runner.run(plan_turn(agent, (), "Hi", "c", "v")):
            seen.set()

    task = asyncio.create_task(turn())
    await seen.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await runner.aclose()
    assert not kit.alive(stub.recorded()["pid"])


async def test_cancelling_over_a2a_says_so_once_and_ends_the_process(front: Any, stub: Any, kit: Any) -> None:
    stub.play({"record": str(stub.record)}, kit.used("Glob"), {"hang": True})
    states = []
    async for event in front.stream():
        states.append(event["status"]["state"] if "status" in event else "")
        task_id = event.get("id") or event["taskId"]
        if event["kind"] == "status-update" and "Looking" in json.dumps(event):
            body = {"jsonrpc": "2.0", "id": 2, "method": "tasks/cancel", "params": {"id": task_id}}
            answer = (await front.http.post("/", json=body)).json()
            assert answer["result"]["status"]["state"] == "canceled"
    assert states.count("canceled") == 1
    assert not kit.alive(stub.recorded()["pid"])


@pytest.mark.parametrize("kind", ["missing", "no program", "a folder", "not executable", "no format"])
async def test_a_cli_that_cannot_be_started_is_the_overloaded_message(stub: Any, kit: Any, kind: str) -> None:
    program = stub.program
    match kind:
        case "missing":
            program.unlink()
        case "no program":
            program.write_bytes(b"#!/no/such/interpreter\n")
        case "a folder":
            program.unlink()
            program.mkdir()
        case "not executable":
            program.chmod(0o644)
        case "no format":
            program.write_bytes(b"\x00\x01\x02")
    agent = stub.agent()
    async with kit.serving(stub.runner(agent), agent) as front:
        assert await front.ask() == "<spawn_error>"


async def test_a_cli_that_goes_away_between_start_and_turn_is_the_same(front: Any, stub: Any) -> None:
    stub.program.unlink()
    assert await front.ask() == "<spawn_error>"


async def test_the_end_of_stderr_is_kept_for_the_log(stub: Any, kit: Any) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    stub.play({"stderr": "x" * 100_000 + "the reason"}, {"exit": 1})
    (end,) = await kit.events_of(runner, agent)
    await runner.aclose()
    assert isinstance(end, Failed)
    assert end.cause is Cause.CRASH
    assert end.detail.endswith("the reason")
    assert "exit code 1" in end.detail


async def test_a_plan_of_another_agent_is_refused(stub: Any, kit: Any) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    (end,) = await kit.events_of(runner, dataclasses.replace(agent, id="bob"))
    await runner.aclose()
    assert isinstance(end, Failed)
    assert end.cause is Cause.INTERNAL


async def test_two_turns_at_once_do_not_meet(stub: Any, kit: Any) -> None:
    agent = stub.agent()
    stub.play({"read": True}, {"line": '{"type":"result","result":"{prompt}"}'})
    async with kit.serving(stub.runner(agent), agent) as front:
        answers = await asyncio.gather(front.ask("first-marker"), front.ask("second-marker"))
    assert ["first-marker" in answer for answer in answers] == [True, False]
    assert ["second-marker" in answer for answer in answers] == [False, True]
