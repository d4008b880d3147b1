"""The question that `up` prints is a card's own, and pasting it asks that question and does nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compose.host.example import FALLBACK, as_argument, as_body, question_of

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = (
    'Who said "no"?',
    "What's new?",
    "What does $(touch executed) do, or `touch executed`, or $HOME?",
    "C:\\new\\table",
    "a\\",
    "Wann hat sie Sprechstunde für Gäste? 你好 🎩",
    "hello!! !$",
    "; touch executed #",
    "'; touch executed; '",
    "--help",
    "-",
    '{"a": "b"}',
    "%s %d \\u0027",
)


def card(*examples: Any) -> dict[str, Any]:
    return {"skills": [{"id": "none"}, {"id": "facts", "examples": list(examples)}]}


def pasted(shell: str, arguments: str) -> list[str]:
    """Return the arguments that a shell makes of a pasted line."""
    done = subprocess.run(
        [shell, "-c", f"printf '%s\\0' {arguments}"], capture_output=True, check=True, timeout=20
    )
    return done.stdout.decode().split("\0")[:-1]


@pytest.mark.parametrize("shell", [name for name in ("sh", "bash") if shutil.which(name)])
@pytest.mark.parametrize("question", HOSTILE)
def test_pasting_gives_the_question_and_nothing_else(
    question: str, shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    *options, given_question = pasted(shell, as_argument(question))
    assert given_question == question
    assert options == (["--"] if question.startswith("-") else [])
    (body,) = pasted(shell, f"'{as_body(question)}'")
    assert json.loads(body)["params"]["message"]["parts"] == [{"kind": "text", "text": question}]
    assert list(tmp_path.iterdir()) == []


@given(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1))
def test_any_question_stands_between_single_quotes_as_json(question: str) -> None:
    body = as_body(question)
    assert "'" not in body
    assert json.loads(body)["params"]["message"]["parts"][0]["text"] == question


@given(st.text())
def test_what_is_printed_of_a_question_is_one_line_that_can_be_seen(text: str) -> None:
    question = question_of(card(text))
    assert question.isprintable()
    assert question == question.strip()
    assert question


def test_the_first_example_of_the_first_skill_that_has_one_is_taken() -> None:
    assert question_of(card("Who was she?", "When?")) == "Who was she?"


@pytest.mark.parametrize("sign", list("\\'\"`\u2018\u2019\u201c\u201d"))
def test_a_question_that_shells_read_in_different_ways_is_not_for_pasting(sign: str) -> None:
    assert question_of(card(f"a{sign}b", "When?")) == "When?"
    assert question_of(card(f"a{sign}b")) == FALLBACK


def test_a_line_break_or_an_escape_in_an_example_becomes_a_space() -> None:
    assert question_of(card("Who\nwas \x1b[31mshe\u202e?")) == "Who was [31mshe ?"


@pytest.mark.parametrize(
    "value",
    [
        card(),
        card(" ", ""),
        card(7, None),
        {},
        {"skills": None},
        {"skills": [None, {"examples": "no"}]},
        [],
        None,
    ],
)
def test_a_card_without_an_example_gets_a_question_that_every_agent_understands(value: Any) -> None:
    assert question_of(value) == FALLBACK


def test_a_plain_question_stands_in_double_quotes_as_people_write_it() -> None:
    assert as_argument("What's in Note G?") == '"What\'s in Note G?"'
