"""How every command speaks: plain where nobody looks, and nothing of what others wrote obeys itself."""

from __future__ import annotations

import io
import json
import unicodedata
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.cli import output

if TYPE_CHECKING:
    from collections.abc import Callable


class Tty(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def stderr(monkeypatch: pytest.MonkeyPatch) -> Callable[[io.StringIO], io.StringIO]:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")

    def put(stream: io.StringIO) -> io.StringIO:
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return put


@given(st.text())
def test_printable_text_has_no_sign_that_a_terminal_obeys_or_hides(text: str) -> None:
    shown = output.printable(text)
    assert {
        sign for sign in shown if unicodedata.category(sign) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}
    } <= set("\n\t\u200c\u200d")
    assert output.printable(shown) == shown


@pytest.mark.parametrize("text", ["plain", "two\nlines\tand a tab", "مرحبا שלום", "👩‍🚀 é", ""])
def test_ordinary_writing_is_left_as_it_is(text: str) -> None:
    assert output.printable(text) == text


def test_escape_sequences_lose_what_makes_them_work() -> None:
    assert output.printable("\x1b[31mred\x1b]0;title\x07\x9b2J\u202e") == "[31mred]0;title2J"


@given(st.dictionaries(st.text(), st.text(), max_size=3))
def test_a_line_of_json_is_one_line_of_ascii(value: dict[str, str]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        stream = io.StringIO()
        patch.setattr("sys.stdout", stream)
        output.result_json(value)
    assert stream.getvalue().isascii()
    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue()) == value


def test_progress_is_one_line_of_the_terminals_width_that_is_gone_afterwards(
    stderr: Callable[[io.StringIO], io.StringIO],
) -> None:
    stream = stderr(Tty())
    with output.Progress() as progress:
        progress.show("reading \x1b[2J something that is much longer\nthan the line")
    drawn, cleared = stream.getvalue().split("\x1b[2m")[1].split("\x1b[0m")
    assert drawn == "reading [2J somethi"
    assert len(drawn) == 19
    assert cleared == "\r\x1b[2K"


@pytest.mark.parametrize("kind", ["a pipe", "a dumb terminal"])
def test_progress_elsewhere_writes_nothing(
    stderr: Callable[[io.StringIO], io.StringIO], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    stream = stderr(io.StringIO() if kind == "a pipe" else Tty())
    monkeypatch.setenv("TERM", "xterm" if kind == "a pipe" else "dumb")
    with output.Progress() as progress:
        progress.show("reading")
    assert stream.getvalue() == ""


def test_talk_takes_a_style_on_a_terminal_only(
    stderr: Callable[[io.StringIO], io.StringIO], monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stderr(Tty())
    output.talk("red", fg="red")
    output.talk("as it is")
    monkeypatch.setenv("NO_COLOR", "1")
    output.talk("red", fg="red")
    assert stream.getvalue() == "\x1b[31mred\x1b[0m\nas it is\nred\n"
