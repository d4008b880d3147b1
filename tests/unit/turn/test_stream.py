"""The CLI's lines: what counts as the answer, and that nothing a turn writes can break the reader."""

from __future__ import annotations

import itertools
import json
from typing import Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step, ToolFailed, Usage
from runtime.turn.stream import (
    ANSWER_MAX_BYTES,
    DETAIL_MAX_CHARS,
    LINE_MAX_BYTES,
    STEPS_MAX,
    TurnStream,
    step_of,
)


def assistant(*blocks: dict[str, Any], **extra: Any) -> str:
    return json.dumps({"type": "assistant", "message": {"id": "m", "content": list(blocks)}, **extra})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": "t", "name": name, "input": arguments}


def result(value: Any = "The answer.", **extra: Any) -> str:
    return json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": value, **extra})


def stream_event(kind: str, **extra: Any) -> str:
    return json.dumps({"type": "stream_event", "event": {"type": kind, **extra}})


def delta(value: str, kind: str = "text_delta", key: str = "text") -> str:
    return stream_event("content_block_delta", index=0, delta={"type": kind, key: value})


START = stream_event("message_start", message={})


def play(
    *lines: str | bytes, reason: str = "exited", **end: Any
) -> tuple[list[Step | ToolFailed | Snapshot], Answer | Failed]:
    stream = TurnStream()
    events = [event for line in lines for event in stream.feed(line)]
    return events, stream.conclude(reason, **({"exit_code": 0} | end))


def test_the_result_is_the_answer_whatever_was_said_before() -> None:
    _events, end = play(assistant(text("Let me look.")), result("The answer."), usage=Usage(2, 10, 5, 0))
    assert end == Answer("The answer.", Usage(2, 10, 5, 0))


def test_fault_16_a_deadline_is_a_timeout_even_when_text_was_said() -> None:
    assert play(START, delta("x" * 60), reason="deadline")[1] == Failed(
        Cause.TIMEOUT, "the turn ended: deadline", Usage()
    )
    _events, end = play(assistant(text("Half an answer")), reason="deadline")
    assert isinstance(end, Failed)
    assert end.cause is Cause.TIMEOUT


def test_fault_17_an_empty_result_falls_back_to_what_was_said() -> None:
    assert play(assistant(text("Said.")), result(""))[1] == Answer("Said.")
    assert play(assistant(text("Said.")), result(None))[1] == Answer("Said.")
    assert play(START, delta("Only deltas."), result("  "))[1] == Answer("Only deltas.")


def test_fault_18_a_second_result_is_ignored() -> None:
    events, end = play(result("First."), result("Second."), assistant(tool("Read")), delta("x" * 60))
    assert end == Answer("First.")
    assert events == []


def test_fault_18_text_seen_only_as_deltas_is_the_fallback() -> None:
    assert play(START, delta("Only "), delta("deltas."))[1] == Answer("Only deltas.")


@pytest.mark.parametrize(
    "line", ["[]", "1", '"text"', "null", "true", "{", "", "\x00", b"\xff\xfe", "[" * 100_000]
)
def test_fault_18_a_line_that_is_no_object_is_skipped(line: str | bytes) -> None:
    assert play(line, result("Fine."))[1] == Answer("Fine.")


def test_fault_19_the_answer_stands_however_the_turn_then_ends() -> None:
    for reason in ("exited", "deadline", "output-cap", "engine", "shutdown", "something new"):
        assert play(result("Fine."), reason=reason, exit_code=137)[1] == Answer("Fine.")


def test_without_a_result_the_text_after_the_last_tool_call_is_the_answer() -> None:
    assert play(assistant(text("Let me look."), tool("Read")), assistant(text("Tuesday.")))[1] == Answer(
        "Tuesday."
    )


def test_without_a_result_and_without_text_there_is_no_answer() -> None:
    _events, end = play()
    assert isinstance(end, Failed)
    assert end.cause is Cause.EMPTY


@pytest.mark.parametrize("end", [{"exit_code": 137}, {"exit_code": 0, "oom": True}, {"exit_code": None}])
def test_a_crash_before_an_answer_is_a_crash_and_deltas_are_not_enough(end: dict[str, Any]) -> None:
    _events, failed = play(START, delta("Office hours are on"), **end)
    assert isinstance(failed, Failed)
    assert failed.cause is Cause.CRASH
    assert play(assistant(text("A whole message.")), **end)[1] == Answer("A whole message.")


@pytest.mark.parametrize(
    ("reason", "cause"),
    [
        ("deadline", Cause.TIMEOUT),
        ("output-cap", Cause.OUTPUT),
        ("engine", Cause.ENGINE),
        ("shutdown", Cause.SPAWNER),
        ("", Cause.INTERNAL),
    ],
)
def test_each_end_of_the_spawner_s_has_its_cause(reason: str, cause: Cause) -> None:
    _events, end = play(assistant(text("x")), reason=reason)
    assert isinstance(end, Failed)
    assert end.cause is cause


def test_is_error_is_never_an_answer_whatever_the_subtype_says() -> None:
    _events, end = play(assistant(text("Said.")), result("API Error: SECRET", is_error=True))
    assert isinstance(end, Failed)
    assert end.cause is Cause.MODEL
    assert "SECRET" not in end.detail


@pytest.mark.parametrize("mark", ["is_api_error_message", "isApiErrorMessage"])
def test_text_marked_as_an_api_error_is_never_an_answer(mark: str) -> None:
    marked = assistant(text("API Error: 402"), **{mark: True})
    for lines in ((marked,), (marked, result("API Error: 402")), (marked, result(""))):
        _events, end = play(*lines)
        assert isinstance(end, Failed), lines
        assert end.cause is Cause.MODEL


def test_an_answer_after_a_marked_error_stands() -> None:
    marked = assistant(text("API Error: retrying"), is_api_error_message=True)
    assert play(marked, START, delta("Fine."), assistant(text("Fine.")), result("Fine."))[1] == Answer(
        "Fine."
    )


def test_a_result_that_ran_out_of_turns_is_a_failure_without_is_error() -> None:
    _events, end = play(assistant(text("Let me look.")), result("", subtype="error_max_turns"))
    assert isinstance(end, Failed)
    assert end.cause is Cause.MODEL


def test_snapshots_grow_by_at_least_48_characters_and_begin_the_answer() -> None:
    whole = "word " * 400
    events, _end = play(START, *(delta(whole[n : n + 5]) for n in range(0, len(whole), 5)), result(whole))
    shown = [event.text for event in events if isinstance(event, Snapshot)]
    assert len(shown) > 5
    assert all(whole.startswith(one) for one in shown)
    assert all(len(after) - len(before) >= 48 for before, after in itertools.pairwise(shown))


def test_a_long_answer_makes_few_snapshots() -> None:
    events, _end = play(START, *(delta("x" * 20) for _ in range(5000)))
    assert len(events) < 250
    assert max(len(event.text) for event in events if isinstance(event, Snapshot)) <= ANSWER_MAX_BYTES


def test_a_new_message_discards_the_snapshot() -> None:
    events, _end = play(START, delta("a" * 60), START, delta("b" * 60))
    assert events == [Snapshot("a" * 60), Snapshot("b" * 60)]


def test_a_finished_block_is_shown_however_short() -> None:
    events, _end = play(START, delta("Short."), stream_event("content_block_stop", index=0))
    assert events == [Snapshot("Short.")]


def test_tool_arguments_and_thinking_never_show() -> None:
    lines = (
        START,
        delta('{"file_path": "/etc/passwd"}' * 10, "input_json_delta", "partial_json"),
        delta("x" * 100, "input_json_delta"),
        delta("x" * 100, "thinking_delta", "thinking"),
    )
    assert play(*lines)[0] == []


def test_another_agent_s_events_inside_the_turn_are_ignored() -> None:
    line = json.dumps(json.loads(delta("x" * 100)) | {"parent_tool_use_id": "t1"})
    assert play(START, line)[0] == []


@pytest.mark.parametrize(
    ("name", "arguments", "step"),
    [
        ("Read", {"file_path": "/grounding/a/hours.md"}, Step("Read", "Reading hours.md")),
        ("Read", {"file_path": "x\n\x1b[31mred\u202e"}, Step("Read", "Reading x[31mred")),
        ("Read", {"file_path": 5}, Step("Read", "Reading")),
        ("Read", {"file_path": "a" * 500}, Step("Read", "Reading " + "a" * 80)),
        ("Glob", {"pattern": "SECRET*"}, Step("Glob", "Looking for files")),
        ("Grep", {"pattern": "SECRET"}, Step("Grep", "Searching")),
        ("mcp__grants__opening_hours", {}, Step("mcp__grants__opening_hours", "Using opening_hours")),
        ("mcp__grants__intake_notify", {}, Step("mcp__grants__intake_notify", "Recording your request")),
        ("mcp__grants__book_request", {}, Step("mcp__grants__book_request", "Recording your request")),
        ("mcp__grants__x y\n", {}, Step("Other", "Working")),
        ("Bash", {"command": "SECRET"}, Step("Other", "Working")),
    ],
)
def test_a_step_is_made_of_fixed_words_and_a_base_name(
    name: str, arguments: dict[str, Any], step: Step
) -> None:
    assert step_of(name, arguments) == step
    assert play(assistant(tool(name, **arguments)))[0] == [step]


def test_steps_are_bounded() -> None:
    events, _end = play(*(assistant(tool("Read")) for _ in range(STEPS_MAX + 50)))
    assert len(events) == STEPS_MAX


def test_the_answer_is_capped_in_bytes_on_a_character_s_boundary() -> None:
    _events, end = play(result("é" * ANSWER_MAX_BYTES))
    assert isinstance(end, Answer)
    assert len(end.text.encode()) == ANSWER_MAX_BYTES


def test_a_line_over_the_cap_is_skipped() -> None:
    assert play("x" * (LINE_MAX_BYTES + 1), result("Fine."))[1] == Answer("Fine.")


@pytest.mark.control("OUT-01")
@pytest.mark.parametrize("opening", ['{"":', "["])
def test_a_line_that_would_cost_its_parser_far_more_than_its_bytes_is_skipped(opening: str) -> None:
    deep = opening * 400 + "1" + ("}" if opening[0] == "{" else "]") * 400
    bomb = '{"type":"assistant","message":{"content":[' + ",".join([deep] * 200) + "]}}"
    assert len(bomb) < LINE_MAX_BYTES
    with mock.patch("runtime.turn.stream.json.loads", side_effect=AssertionError("parsed")):
        assert TurnStream().feed(bomb) == []
        assert TurnStream().feed(bomb.encode()) == []
    assert play(bomb, result("Fine."))[1] == Answer("Fine.")


def test_surrogate_halves_across_deltas_join_and_lone_ones_are_replaced() -> None:
    _events, end = play(START, delta("\ud83d"), delta("\ude00"), delta(" \ud800"))
    assert end == Answer("\U0001f600 \ufffd")


def failed_call(content: Any, identity: str = "t", **extra: Any) -> str:
    block = {"type": "tool_result", "content": content, "is_error": True, "tool_use_id": identity} | extra
    return json.dumps({"type": "user", "message": {"role": "user", "content": [block]}})


# What the pinned CLI wrote when a granted script ended with an exit code, shortened by its ids.
RECORDED_FAILURE = {
    "type": "user",
    "message": {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "content": "Traceback (most recent call last):\n"
                '  File "/instance/tools/which.py", line 2, in <module>\n    import requests\n'
                "ModuleNotFoundError: No module named 'requests'\n\n[exit code 1]",
                "is_error": True,
                "tool_use_id": "t",
            }
        ],
    },
    "parent_tool_use_id": None,
    "tool_use_result": "Error: Traceback (most recent call last):",
    "tool_result_meta": [
        {
            "id": "t",
            "permission_decision": {"decision": "accept", "source": "config", "reason_type": "rule"},
        }
    ],
}


def test_a_script_that_failed_is_told_under_its_name_with_what_it_said_last() -> None:
    events, end = play(assistant(tool("mcp__grants__which")), json.dumps(RECORDED_FAILURE), result("Done."))
    assert events[0] == Step("mcp__grants__which", "Using which")
    failed = events[1]
    assert isinstance(failed, ToolFailed)
    assert failed.tool == "mcp__grants__which"
    assert failed.detail.endswith("ModuleNotFoundError: No module named 'requests' [exit code 1]")
    assert "\n" not in failed.detail
    assert end == Answer("Done.")


def test_a_failure_has_the_name_of_its_own_call_and_is_told_once() -> None:
    calls = assistant(tool("Read") | {"id": "a"}, tool("Grep") | {"id": "b"})
    error = failed_call([{"type": "text", "text": "gone"}, {"type": "image"}], "b")
    events, _end = play(calls, error, error, failed_call("no such call", "c"))
    assert events[2:] == [ToolFailed("Grep", "gone")]


@pytest.mark.parametrize("mark", [False, None, "true", 1])
def test_only_a_result_that_is_marked_as_an_error_is_a_failure(mark: object) -> None:
    events, _end = play(assistant(tool("Read")), failed_call("fine", is_error=mark))
    assert events == [Step("Read", "Reading")]


def test_what_a_failed_tool_said_is_cut_to_its_last_printable_characters() -> None:
    said = "x" * 100_000 + "\x1b[31m\u202e the\n\t end\x00"
    events, _end = play(assistant(tool("Read")), failed_call(said))
    failed = events[-1]
    assert isinstance(failed, ToolFailed)
    assert len(failed.detail) == DETAIL_MAX_CHARS
    assert failed.detail.isprintable()
    assert failed.detail.startswith("…x")
    assert failed.detail.endswith("x[31m the end")


def test_no_more_failures_are_told_than_steps() -> None:
    names = [f"call-{number}" for number in range(STEPS_MAX + 50)]
    stream = TurnStream()
    steps = [one for name in names for one in stream.feed(assistant(tool("Read") | {"id": name}))]
    failures = [one for name in names for one in stream.feed(failed_call("gone", name))]
    assert len(steps) == len(failures) == STEPS_MAX


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
KNOWN = st.fixed_dictionaries(
    {"type": st.sampled_from(["system", "assistant", "user", "stream_event", "result"])},
    optional={
        "message": JSON | st.fixed_dictionaries({"content": JSON}),
        "event": JSON
        | st.fixed_dictionaries({"type": st.sampled_from(["message_start", "content_block_delta"])}),
        "result": JSON,
        "is_error": JSON,
        "subtype": JSON,
        "is_api_error_message": JSON,
    },
)


@given(
    st.lists(st.binary(max_size=50) | st.text(max_size=50) | (JSON | KNOWN).map(json.dumps), max_size=12),
    st.sampled_from(["exited", "deadline", "output-cap", "engine", "shutdown", "x"]),
    st.none() | st.integers(),
)
def test_no_bytes_and_no_json_raise_and_every_turn_has_one_non_empty_end(
    lines: list[bytes | str], reason: str, exit_code: int | None
) -> None:
    stream = TurnStream()
    for line in lines:
        for event in stream.feed(line):
            assert isinstance(event, Step | ToolFailed | Snapshot)
    end = stream.conclude(reason, exit_code=exit_code)
    assert isinstance(end, Answer | Failed)
    if isinstance(end, Answer):
        assert end.text.strip()
        end.text.encode()
