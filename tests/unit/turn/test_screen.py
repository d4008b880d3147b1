"""What may leave: no control of a terminal, nothing hidden, nothing shaped like a key."""

from __future__ import annotations

import json
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.turn.screen import HELD_BACK_CHARS, LINE_MAX_CHARS, is_blank, screen, screen_line, screen_partial

CANARY = "canary-5150-abcdef"
KEYS = {
    "anthropic-key": "sk-ant-test-0000",
    "api-key": "sk-proj-0123456789abcdefghij",
    "aws-key": "AKIA0123456789ABCDEF",
    "github-token": "ghp_0123456789abcdefghij",
    "slack-token": "xoxb-0123456789",
    "google-key": "AIza" + "0" * 35,
    "jwt": "eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK",
    "bearer-token": "Bearer 0123456789abcdefghij",
    "private-key": "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    "canary": CANARY,
}
PIECES = st.lists(
    st.one_of(
        st.text(max_size=20),
        st.sampled_from(
            [
                *KEYS.values(),
                "\x1b[31m",
                "\x1b]0;t\x07",
                "\x1b",
                "[31m",
                "\u200b",
                "\u200d",
                "\u202e",
                "\r",
                " ",
                "sk-",
            ]
        ),
        st.sampled_from(
            ["-----BEGIN PRIVATE KEY-----", "AKIA", "0123456789ABCDEF", "eyJ", "x" * 900, "Bearer "]
        ),
    ),
    max_size=12,
).map("".join)
BENIGN = st.lists(st.text("abcdefghij ,.äöü中文é\n", max_size=60), max_size=30).map("".join)


@given(PIECES)
@example("AKIA0123456789ABCDEFsk-proj-0123456789abcdefghij")
@example("ta" + "x" * (LINE_MAX_CHARS - 2) + "sk-proj-0123456789abcdefghij")
@example("s\u200bk-ant-test-0000")
def test_screening_twice_changes_nothing(text: str) -> None:
    once = screen(text, (CANARY,)).text
    assert screen(once, (CANARY,)).text == once
    assert screen(once, (CANARY,)).decisions == ()


@pytest.mark.control("SCREEN-01")
@given(PIECES)
def test_nothing_hidden_and_no_key_is_left(text: str) -> None:
    out = screen(text, (CANARY,)).text
    assert all(unicodedata.category(character) != "Cc" or character in "\n\t" for character in out)
    assert not set("\x1b\u200b\u202e\u2066\ufeff\u00ad") & set(out)
    assert "sk-ant-test-0000" not in out
    assert CANARY not in out
    assert max(len(line) for line in out.split("\n")) <= LINE_MAX_CHARS
    out.encode()


@pytest.mark.parametrize("reason", list(KEYS))
def test_each_kind_of_key_is_withheld_and_counted(reason: str) -> None:
    screened = screen(f"before {KEYS[reason]} after", (CANARY,))
    assert screened.text == "before [withheld] after"
    assert [(finding.reason, finding.count) for finding in screened.decisions] == [(reason, 1)]


@pytest.mark.parametrize(
    "text",
    [
        "task-oriented-conversation-systems and risk-management-frameworks",
        "The bearer of this letter, sk- and AKIA are words.",
        "👩\u200d👩\u200d👧 \u0645\u06cc\u200c\u062e\u0648 नमस्ते é",
        "| a | b |\n|---|---|\n\tcode <b>&amp;</b>",
        "sk-learn-is-a-nice-library-to-use",
    ],
)
def test_ordinary_text_passes_unchanged(text: str) -> None:
    assert screen(text).text == text
    assert screen(text).decisions == ()


def test_hidden_characters_do_not_hide_a_key() -> None:
    assert screen("sk-\u200bant-\u2060test\x00-0000").text == "[withheld]"
    assert screen("\x1b[1msk-ant-\x1b[0mtest-0000").text == "[withheld]"


def test_tag_and_variation_characters_go() -> None:
    assert screen("a\U000e0041\U000e0100b\u202e").text == "ab"


@pytest.mark.control("SCREEN-01")
@pytest.mark.parametrize(
    "hidden",
    ["\ufe00\ufe01\ufe0d", "\ufe0f\ufe0e\ufe0f", "\U0001bca0", "\U00013430", "\ufffe", "\uffff"],
)
def test_characters_that_are_drawn_as_nothing_carry_no_message(hidden: str) -> None:
    assert screen(f"plain{hidden * 40} text").text == "plain text"


def test_a_selector_that_belongs_to_an_emoji_stays_once() -> None:
    assert screen("\u2764\ufe0f and 1\ufe0f\u20e3").text == "\u2764\ufe0f and 1\ufe0f\u20e3"
    assert screen("\u2764" + "\ufe0f" * 30).text == "\u2764\ufe0f"


@pytest.mark.parametrize("text", ["", " \n\t", "\u2800\u2800", "\u3164", "\u0301", "\u00a0"])
def test_a_text_of_nothing_to_see_is_blank(text: str) -> None:
    assert is_blank(text)


@pytest.mark.parametrize("text", ["a", "7", "…", "é", "日本", "\U0001f642", "\u0661"])
def test_a_text_with_one_thing_to_see_is_not_blank(text: str) -> None:
    assert not is_blank(text)


def test_lines_end_as_line_feeds() -> None:
    assert screen("a\r\nb\rc").text == "a\nb\nc"


def test_an_unfinished_private_key_is_withheld_to_the_end() -> None:
    assert screen("x -----BEGIN PRIVATE KEY-----\nMIIE").text == "x [withheld]"


def test_a_long_line_is_broken_at_a_space() -> None:
    out = screen("word " * 2000).text
    assert out.replace("\n", "") == "word " * 2000
    assert all(line.endswith("word ") or not line for line in out.split("\n"))


@given(BENIGN, st.data())
def test_a_snapshot_begins_the_final_text(text: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(text)))
    shown = screen_partial(text[:cut])
    assert screen(text).text.startswith(shown)
    assert len(shown) <= max(0, cut - HELD_BACK_CHARS)


@pytest.mark.control("SCREEN-01")
@pytest.mark.parametrize("reason", list(KEYS))
def test_no_beginning_of_a_key_shows_while_it_streams(reason: str) -> None:
    text = "Some words that come before. " * 5 + KEYS[reason] + " and many words that follow. " * 5
    final = screen(text, (CANARY,)).text
    for cut in range(len(text)):
        shown = screen_partial(text[:cut], (CANARY,))
        assert KEYS[reason][:12] not in shown
        assert final.startswith(shown) or shown.rstrip().endswith("Bearer")


def test_a_canary_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="12 to 200"):
        screen("x", ("short",))


def test_a_label_is_one_short_line() -> None:
    assert screen_line("Reading a\n b\x1b[31m") == "Reading a b"
    assert len(screen_line("x" * 500)) == 120


def test_screening_hostile_input_takes_linear_work() -> None:
    for piece in ("sk-", "eyJ", "Bearer ", "AKIA", "ghp_", "\x1b]", "-----BEGIN ", "\u200d", '"'):
        text = piece * (65536 // len(piece))
        assert len(screen(text).text) <= 2 * len(text)


HOSTILE = (
    "A",
    "0123456789abcdef",
    "-",
    "a=",
    "sk-",
    "sk-a",
    "eyJ",
    "eyJaaaaaa.",
    "ghp_",
    "xoxb-",
    "AKIA",
    "AIza",
)
HOSTILE_MARKS = (
    "a\u200d",
    "\u200d",
    "\x1b[",
    "\x1b]0;",
    "\x1b[3\u200d1m",
    "Bearer ",
    "-----BEGIN ",
    " a",
    "\n",
    "\r",
    "\u202e",
)


def test_no_text_costs_more_than_its_length() -> None:
    """The limit of processor time is many times what they take; at the square of the length it was 40 s."""
    program = (
        "import resource, sys, json; resource.setrlimit(resource.RLIMIT_CPU, (20, 20));"
        "from runtime.turn.screen import screen_partial;"
        "print(sum(len(screen_partial(unit * (65536 // len(unit)))) >= 0 for unit in json.load(sys.stdin)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=json.dumps([*HOSTILE, *HOSTILE_MARKS]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout.strip()) == (0, str(len(HOSTILE) + len(HOSTILE_MARKS))), done.stderr
