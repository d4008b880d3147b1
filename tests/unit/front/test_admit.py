"""Admission: pure decisions with their reason."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.agents.definition import Limits
from runtime.front.admit import WAITING_MAX, Load, Reason, admit_message, admit_turn

LIMITS = Limits(max_input_chars=10, max_concurrency=2)


def test_text_of_exactly_the_limit_passes_and_one_more_does_not() -> None:
    assert admit_message("x" * 10, LIMITS, Load()).allow
    assert admit_message("x" * 11, LIMITS, Load()).reason is Reason.TOO_LONG
    assert admit_message("é" * 10, LIMITS, Load()).allow


def test_blank_text_is_empty() -> None:
    for text in ("", " ", "\n\t\u3000"):
        assert admit_message(text, LIMITS, Load()).reason is Reason.EMPTY


def test_text_that_cannot_be_sent_to_the_spawner_is_too_long() -> None:
    wide = Limits(max_input_chars=1_000_000)
    assert admit_message("<" * 60_000, wide, Load()).reason is Reason.TOO_LONG


def test_a_turn_needs_a_slot_and_a_message_a_place_in_its_context() -> None:
    assert admit_turn(LIMITS, Load(running=1)).allow
    assert admit_turn(LIMITS, Load(running=2)).reason is Reason.BUSY
    assert admit_message("x", LIMITS, Load(running=2, waiting=WAITING_MAX - 1)).allow
    assert admit_message("x", LIMITS, Load(waiting=WAITING_MAX)).reason is Reason.BUSY


def test_a_stream_too_many_is_busy_and_the_places_of_a_context_are_a_setting() -> None:
    assert admit_message("x", LIMITS, Load(crowded=True)).reason is Reason.BUSY
    assert admit_message("x", LIMITS, Load(waiting=WAITING_MAX), waiting_max=WAITING_MAX + 1).allow
    assert admit_message("x", LIMITS, Load(), waiting_max=0).reason is Reason.BUSY


def test_nothing_is_admitted_while_the_front_stops() -> None:
    assert admit_message("x", LIMITS, Load(stopping=True)).reason is Reason.STOPPING
    assert admit_turn(LIMITS, Load(stopping=True)).reason is Reason.STOPPING


@given(st.text(max_size=30), st.integers(0, 9), st.integers(0, 9), st.booleans())
def test_a_decision_allows_exactly_when_its_reason_says_so(
    text: str, running: int, waiting: int, stopping: bool
) -> None:
    load = Load(running, waiting, stopping)
    for decision in (admit_message(text, LIMITS, load), admit_turn(LIMITS, load)):
        assert decision.allow == (decision.reason is Reason.ADMITTED)
        assert decision.control
