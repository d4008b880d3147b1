"""A service's log line, made short: the canonical turn line, any other, and hostile ones."""

from __future__ import annotations

import json
import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.cli.log_lines import Line, as_json, parse, plain

TURN = {
    "agent": "ada",
    "context": "10f51f8922b152876cc34acb52a19f77",
    "visitor": "19ef0de2d99bc3f8c3059fb3257aa845",
    "outcome": "answered",
    "cause": "",
    "detail": "",
    "question": "9ed8",
    "answer": "81f6",
    "waited_ms": 0,
    "first_text_ms": 974,
    "total_ms": 1150,
    "steps": {"Grep": 1, "Read": 2, "mcp__grants__opening_hours": 1},
    "screened": {},
    "requests": 3,
    "input_tokens": 13716,
    "output_tokens": 243,
    "request_bytes": 84512,
    "refused": 0,
    "event": "turn",
    "service": "front",
    "level": "info",
}


def words(fields: dict[str, Any]) -> str:
    return plain(Line(0, "front", json.dumps(fields))).words


def test_the_turn_line_is_read_at_a_glance() -> None:
    assert words(TURN) == (
        "turn answered in 1.15 s; first text 0.97 s; steps Grep, Read 2, opening_hours; "
        "3 requests, 13,716 + 243 tokens, 82.5 KB; context 10f51f89; visitor 19ef0de2"
    )


def test_a_failed_turn_says_why() -> None:
    failed = {
        **TURN,
        "outcome": "failed",
        "cause": "model",
        "detail": "403 from the door",
        "first_text_ms": None,
    }
    assert words(failed).startswith("turn failed (model) in 1.15 s; steps")
    assert words(failed).endswith("because 403 from the door")


def test_what_was_taken_out_of_an_answer_and_a_wait_stand_in_the_line() -> None:
    told = words({**TURN, "screened": {"hidden": 2}, "waited_ms": 1500})
    assert "taken out hidden 2" in told
    assert "waited 1.50 s" in told


def test_another_line_begins_with_its_event_and_keeps_its_fields() -> None:
    line = {
        "engine": "26.1",
        "reason": "no such file",
        "seconds": 0.123456,
        "event": "spawner-ready",
        "level": "info",
    }
    assert words(line) == 'spawner-ready engine=26.1 reason="no such file" seconds=0.123'


def test_a_warning_says_so_and_a_traceback_is_its_last_line() -> None:
    line = {"event": "failed", "level": "error", "exception": "Traceback …\n  File x\nOSError: gone"}
    shown = plain(Line(0, "spawner", json.dumps(line)))
    assert (shown.level, shown.words) == ("error", "failed (OSError: gone)")


@pytest.mark.parametrize(
    ("stamp", "nanoseconds"),
    [
        ("2026-05-01T12:00:00.1Z", 1777636800_100000000),
        ("2026-05-01T12:00:00.000000001Z", 1777636800_000000001),
        ("2026-05-01T12:00:00Z", 1777636800_000000000),
    ],
)
def test_the_engines_time_is_read_to_the_nanosecond(stamp: str, nanoseconds: int) -> None:
    assert parse("front", f"{stamp} text") == Line(nanoseconds, "front", "text")


@pytest.mark.parametrize(
    "line", ["", "no time here", "2026-99-01T12:00:00Z x", "2026-05-01 x", "0001-01-01T00:00:00Z x"]
)
def test_a_line_without_a_time_is_none(line: str) -> None:
    assert parse("front", line) is None


@pytest.mark.parametrize(
    "text",
    [
        "[" * 50_000,
        '{"event": ' * 20_000,
        '{"event": 5, "steps": 7}',
        '{"event": "turn", "steps": 7}',
        "{}",
        '"x"',
    ],
)
def test_a_line_of_another_shape_is_shown_all_the_same(text: str) -> None:
    assert len(plain(Line(0, "front", text)).words) <= 2000
    json.loads(as_json(Line(0, "front", text)))


@pytest.mark.parametrize("number", ["Infinity", "-Infinity", "NaN", "1e999", "9" * 400, "9" * 5000, "true"])
@pytest.mark.parametrize("key", ["total_ms", "requests", "request_bytes", "input_tokens", "seconds"])
def test_a_broken_number_is_shown_as_no_number_and_printed_as_json(key: str, number: str) -> None:
    for event in ("turn", "other"):
        line = Line(0, "front", f'{{"event": "{event}", "requests": 1, "{key}": {number}}}')
        assert plain(line).words
        assert "Infinity" not in as_json(line).replace("\\", "").split('"text"')[0]


def test_an_exception_without_words_is_none() -> None:
    assert words({"event": "failed", "exception": " "}) == "failed"


@pytest.mark.control("TERM-01")
@given(st.text())
def test_nothing_that_a_terminal_obeys_gets_through(text: str) -> None:
    for line in (Line(0, "front", text), Line(0, "front", json.dumps({"event": text, text: text}))):
        shown = plain(line).words
        found = {unicodedata.category(sign) for sign in shown if sign not in "\u200c\u200d"}
        assert found.isdisjoint({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
        assert as_json(line).isascii()
        assert as_json(line).isprintable()


def test_a_json_line_that_is_not_ascii_says_the_same_in_ascii() -> None:
    shown = as_json(Line(0, "front", '{"event": "grüße\u202e"}'))
    assert shown.isascii()
    assert json.loads(shown) == {"event": "grüße\u202e"}
