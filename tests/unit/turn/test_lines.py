"""What of the CLI's output is the answer, where no other file here proves it (tests/behaviours.py)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step
from runtime.turn.stream import LINE_MAX_BYTES, TurnStream


def assistant(*blocks: dict[str, Any]) -> str:
    return json.dumps({"type": "assistant", "message": {"content": list(blocks)}})


def said(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


USED = {"type": "tool_use", "id": "t", "name": "Read", "input": {"file_path": "/grounding/hours.md"}}


def end_of(*lines: str, reason: str = "exited") -> Answer | Failed:
    stream = TurnStream()
    for line in lines:
        stream.feed(line)
    return stream.conclude(reason, exit_code=0)


@pytest.mark.parametrize(
    "event",
    [{"text": "From text."}, {"result": None, "text": "From text."}, {"result": 5, "text": "From text."}],
)
def test_a_result_without_a_result_field_is_read_from_its_text(event: dict[str, Any]) -> None:
    assert end_of(json.dumps({"type": "result", **event})) == Answer("From text.")


def test_the_result_field_goes_before_the_text_field() -> None:
    assert end_of(json.dumps({"type": "result", "result": "Right.", "text": "Wrong."})) == Answer("Right.")


def test_what_is_no_event_of_the_cli_s_is_never_shown_as_an_answer() -> None:
    end = end_of("Office hours are on Tuesday.", '{"result": "no type"}', '{"type": "result-like"}')
    assert isinstance(end, Failed)
    assert end.cause is Cause.EMPTY


def test_what_is_said_before_a_tool_call_is_no_answer() -> None:
    assert isinstance(end_of(assistant(said("Let me look."), USED)), Failed)
    assert end_of(assistant(said("Let me look."), USED), assistant(said("Tuesday."))) == Answer("Tuesday.")


def test_text_and_tools_of_one_message_are_told_apart() -> None:
    stream = TurnStream()
    assert stream.feed(assistant(said("Let me look."), USED, said("And more."))) == [
        Step("Read", "Reading hours.md")
    ]
    assert stream.conclude("exited", exit_code=0) == Answer("And more.")


def test_the_answer_may_say_other_than_the_last_snapshot() -> None:
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x" * 60}}
    stream = TurnStream()
    assert stream.feed(json.dumps({"type": "stream_event", "event": delta})) == [Snapshot("x" * 60)]
    stream.feed(json.dumps({"type": "result", "result": "What was meant."}))
    assert stream.conclude("exited", exit_code=0) == Answer("What was meant.")


def test_a_line_of_exactly_the_limit_is_read() -> None:
    def line(padding: int) -> str:
        return json.dumps({"type": "result", "result": "Read.", "padding": "x" * padding})

    exact = line(LINE_MAX_BYTES - len(line(0)))
    assert len(exact) == LINE_MAX_BYTES == 1024 * 1024
    assert end_of(exact) == Answer("Read.")
