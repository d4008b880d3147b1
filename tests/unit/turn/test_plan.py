"""The prompt: whatever a visitor writes stays inside its own JSON string."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agents.definition import AgentDefinition, Card, Grounding, Tools
from runtime.turn.plan import PROMPT_MAX_BYTES, Exchange, fits, plan_turn, render_prompt

AGENT = AgentDefinition(
    "ada", Card("Ada", "", "1", "http://x"), "p", Grounding(Path("/x")), Tools(), Path("/x"), "sonnet"
)
NASTY = st.text(
    st.one_of(
        st.characters(exclude_categories=["Cs"]),
        st.sampled_from('"\\\n\r\u2028\u2029\x85<>&{}\u202e\u2066\U000e0041'),
    ),
    max_size=200,
)


@pytest.mark.control("MEM-02")
@given(NASTY, st.lists(st.tuples(NASTY, NASTY), max_size=4))
def test_the_prompt_reads_back_as_exactly_what_was_said(
    message: str, transcript: list[tuple[str, str]]
) -> None:
    prompt = render_prompt([Exchange(*pair) for pair in transcript], message)
    lines = prompt.split("\n")
    assert len(lines) == 2 * len(transcript) + 1 == len(prompt.splitlines())
    expected: list[dict[str, object]] = []
    for visitor, agent in transcript:
        expected += [{"from": "visitor", "text": visitor}, {"from": "agent", "text": agent}]
    expected.append({"from": "visitor", "text": message, "now": True})
    assert [json.loads(line) for line in lines] == expected


@pytest.mark.control("MEM-02")
@given(NASTY)
def test_no_markup_control_bidirectional_or_tag_character_is_in_the_prompt(message: str) -> None:
    prompt = render_prompt([], message)
    assert not set("<>&\u2028\u2029\u061c\u200e\u200f") & set(prompt)
    assert all(unicodedata.category(character) != "Cc" for character in prompt)
    assert not any(0xE0000 <= ord(character) <= 0xE007F for character in prompt)
    assert not any(0x202A <= ord(c) <= 0x202E or 0x2066 <= ord(c) <= 0x2069 for c in prompt)


def test_escapes_are_as_the_protocol_writes_them() -> None:
    assert render_prompt([], "<a>&\u202e\U000e0041") == (
        '{"from":"visitor","text":"\\u003ca\\u003e\\u0026\\u202e\\udb40\\udc41","now":true}'
    )


def test_a_lone_surrogate_is_escaped_and_the_prompt_is_utf_8() -> None:
    assert b"\\ud800" in render_prompt([], "\ud800").encode()


def test_the_oldest_exchanges_go_when_the_prompt_would_be_too_large() -> None:
    transcript = [Exchange(f"{n}", "<" * 10_000) for n in range(10)]
    prompt = render_prompt(transcript, "now")
    lines = [json.loads(line) for line in prompt.split("\n")]
    assert len(prompt.encode()) <= PROMPT_MAX_BYTES
    assert [line["text"] for line in lines[::2]] == ["6", "7", "8", "9", "now"]


def test_a_message_fits_or_does_not_by_its_escaped_size() -> None:
    assert fits("x" * 200_000)
    assert not fits("<" * 50_000)


@pytest.mark.parametrize(("left", "expected"), [(None, 90.0), (3.5, 3.5)])
def test_the_plan_names_agent_context_visitor_and_what_is_left_of_the_timeout(
    left: float | None, expected: float
) -> None:
    plan = plan_turn(AGENT, [], "hi", "c" * 32, "v" * 32, timeout_seconds=left)
    assert (plan.agent, plan.definition, plan.context, plan.visitor, plan.timeout_seconds) == (
        "ada",
        AGENT.digest,
        "c" * 32,
        "v" * 32,
        expected,
    )


def test_the_plan_names_the_definition_as_it_was_loaded_where_that_is_told() -> None:
    assert plan_turn(AGENT, [], "hi", "c", "v", definition="0" * 64).definition == "0" * 64
