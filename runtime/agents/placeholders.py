"""Finds what an owner has not filled in: the template's `<angle brackets>`, and `${names}` that nobody fills.

Why a start is refused over it: a visitor would read "<Name of the persona>" on the card, and a model would
read a path that does not exist. Pure: texts in, places out.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from runtime.agents.places import Lines
from runtime.agents.quoting import shown
from runtime.agents.tree import Mapping as YamlMapping
from runtime.agents.tree import Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from runtime.agents.tree import Node

TEMPLATE = "_template"

# Every placeholder of instances/_template by a short word for it; a test compares.
PHRASES: Mapping[str, str] = MappingProxyType(
    {
        "name": "<Name of the persona>",
        "description": "<One or two sentences; say that it is an automated representative>",
        "organization": "<Your name or organisation>",
        "about": "<one line about the persona>",
        "facts": (
            "<Write what the world may know, in short files of one subject each. Everything in this folder is"
            " public: a visitor can get to read all of it.>"
        ),
        "contact": (
            "<Write the way that visitors should take for a question, an invitation or a correction.>"
        ),
    }
)
IDENTITY = frozenset({"name", "description", "version", "provider", "skills"})
KNOWN = ("tools_dir", "instance_dir")

_PHRASE = re.compile("|".join(map(re.escape, PHRASES.values())))
# On a card, words in angle brackets have no other use. Addresses, closing tags and Vec<T> are none.
_ANY = re.compile(r"(?<!\w)<(?=[A-Z]|[a-z][^<>@/=\n ]{0,60} )[^<>@/=\n]{1,300}>")
_VARIABLE = re.compile(r"\$\{([^{}\n]{0,60})\}")
MEND = "write your own words there"


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that is not filled in, by line and column from 1; `path` is the setting's, or ""."""

    line: int
    col: int
    text: str
    path: str = ""


def unfilled(text: str) -> Iterator[Found]:
    """Yield the template's placeholders that a prompt or a document still holds."""
    return _places(_PHRASE, text)


def unfilled_settings(source: YamlMapping) -> Iterator[Found]:
    """Yield the values of an agent file that hold a placeholder: the template's, or any on the card."""
    for entry in source.entries:
        pattern = _ANY if entry.key in IDENTITY else _PHRASE
        for path, scalar in _scalars(entry.value, shown(entry.key)):
            match = pattern.search(scalar.text) or _PHRASE.search(scalar.text)
            if match:
                yield Found(scalar.line, scalar.col, shown(match[0]), path)


def variables(text: str) -> Iterator[Found]:
    """Yield each `${name}` in a text."""
    return _places(_VARIABLE, text)


def unknown_variables(text: str) -> Iterator[Found]:
    """Yield each `${name}` that is neither of the two that are filled in."""
    return (found for found in variables(text) if found.text[2:-1] not in KNOWN)


def variable_mend(text: str) -> str:
    """Say what to write in place of an unknown `${name}`."""
    close = difflib.get_close_matches(text[2:-1], KNOWN, n=1)
    return f"did you mean `${{{close[0]}}}`?" if close else "there are `${tools_dir}` and `${instance_dir}`"


def _places(pattern: re.Pattern[str], text: str) -> Iterator[Found]:
    lines: Lines | None = None
    for match in pattern.finditer(text):
        lines = lines or Lines(text)
        yield Found(*lines.place(match.start()), match[0])


def _scalars(node: Node, path: str) -> Iterator[tuple[str, Scalar]]:
    match node:
        case Scalar():
            yield path, node
        case Sequence():
            for index, item in enumerate(node.items):
                yield from _scalars(item, f"{path}[{index}]")
        case YamlMapping():
            for entry in node.entries:
                yield from _scalars(entry.value, f"{path}.{shown(entry.key)}")
