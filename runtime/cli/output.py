"""How the commands speak: results on stdout, talk on stderr, colour and progress on a terminal only.

Why text from elsewhere goes through `printable` first: an answer, a log line or a document may hold escape
sequences, and a terminal obeys them.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from typing import TYPE_CHECKING, Any, Final, Self, TextIO

import click

if TYPE_CHECKING:
    from types import TracebackType

# Controls, format signs (right-to-left overrides, zero-width), lone surrogates: none is text to read.
_UNPRINTABLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
# What joins letters and emoji in ordinary writing.
_KEPT: Final = frozenset("\n\t\u200c\u200d")
_CLEAR: Final = "\r\x1b[2K"


def printable(untrusted_text: str) -> str:
    """Return a text without what a terminal would obey or hide; line feeds and tabs stay."""
    if untrusted_text.isascii() and untrusted_text.isprintable():
        return untrusted_text
    return "".join(
        sign for sign in untrusted_text if sign in _KEPT or unicodedata.category(sign) not in _UNPRINTABLE
    )


def coloured(stream: TextIO) -> bool:
    """Say whether a stream takes colour: a terminal that is no `dumb` one, and NO_COLOR is not set."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def styled(text: str, stream: TextIO, **style: Any) -> str:
    """Return a text in click's style (`fg="red"`, `bold=True`) where the stream takes colour."""
    return click.style(text, **style) if style and coloured(stream) else text


def result(text: str, *, end: str = "\n") -> None:
    """Write a result to stdout, at once."""
    sys.stdout.write(f"{text}{end}")
    sys.stdout.flush()


def result_json(value: Any) -> None:
    """Write one line of JSON to stdout, at once. It is ASCII, so nothing in it can speak to a terminal."""
    result(json.dumps(value, separators=(", ", ": ")))


def talk(text: str = "", *, end: str = "\n", **style: Any) -> None:
    """Write what is no result to stderr, in click's style where it takes colour."""
    sys.stderr.write(styled(text, sys.stderr, **style) + end)
    sys.stderr.flush()


class Progress:
    """What is being waited for, as one line on a terminal's stderr that is gone afterwards.

    Elsewhere it writes nothing: a log of half lines helps nobody. Write results only when the line is
    cleared: `clear` does it, and so does leaving the `with` block.
    """

    __slots__ = ("_shown", "_stream")

    def __init__(self) -> None:
        self._stream = sys.stderr
        self._shown = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.clear()

    def show(self, untrusted_text: str) -> None:
        """Replace the line, cut to the terminal's width."""
        if not self._stream.isatty() or os.environ.get("TERM") == "dumb":
            return
        width = max(shutil.get_terminal_size().columns - 1, 1)
        text = printable(untrusted_text).replace("\n", " ").replace("\t", " ")
        self._stream.write(_CLEAR + styled(text[:width], self._stream, dim=True))
        self._stream.flush()
        self._shown = True

    def clear(self) -> None:
        """Take the line away."""
        if self._shown:
            self._stream.write(_CLEAR)
            self._stream.flush()
            self._shown = False
