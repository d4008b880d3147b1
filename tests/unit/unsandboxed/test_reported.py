"""What a CLI's own events say that a turn used."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.turn.events import Usage
from runtime.unsandboxed.reported import MAX_COUNT, Reported


def read(*events: Any) -> Usage:
    reported = Reported()
    for event in events:
        reported.feed(json.dumps(event).encode())
    return reported.usage


START = {"type": "stream_event", "event": {"type": "message_start"}}


def test_answers_of_the_model_are_counted_and_all_input_added_up() -> None:
    usage = {
        "input_tokens": 1,
        "cache_creation_input_tokens": 20,
        "cache_read_input_tokens": 300,
        "output_tokens": 4,
    }
    end = {"type": "result", "num_turns": 9, "usage": usage}
    assert read(START, START, end) == Usage(requests=2, input_tokens=321, output_tokens=4)


@pytest.mark.parametrize(
    "usage", [None, 7, [], {"input_tokens": "9"}, {"input_tokens": -5}, {"output_tokens": True}]
)
def test_what_is_no_number_counts_as_nothing(usage: Any) -> None:
    assert read({"type": "result", "usage": usage}) == Usage()


def test_a_number_without_sense_is_capped() -> None:
    assert read({"type": "result", "usage": {"input_tokens": 10**40}}).input_tokens == MAX_COUNT


def test_other_events_and_results_inside_of_them_say_nothing() -> None:
    assert read({"type": "user", "usage": {"input_tokens": 9}, "text": "result"}) == Usage()


@given(st.binary(max_size=200))
def test_no_line_makes_it_raise(line: bytes) -> None:
    reported = Reported()
    reported.feed(b"result" + line)
    reported.feed(line + b"message_start")
    assert reported.usage == Usage()


def test_a_deeply_nested_line_is_passed_over() -> None:
    reported = Reported()
    reported.feed(b'{"result":' + b"[" * 200_000)
    assert reported.usage == Usage()
