"""Checks one text by the field of the table that it was given for, and reports what is wrong with it.

Pure but for the report. Whatever the text is, a message quotes no more of it than its beginning, and nothing
of what may be a password.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runtime.agents import forms
from runtime.agents.fields import MANY_LINES, MESSAGES, Field, Kind
from runtime.agents.mends import EXAMPLES, INTEGER, NUMBER, article, number_mend
from runtime.agents.quoting import shown

if TYPE_CHECKING:
    from runtime.agents.yaml_source import Report

_CONTROL = re.compile(forms.CONTROL)
_URL = re.compile(forms.URL)
_ORIGIN = re.compile(forms.ORIGIN)
_URIS = {Kind.HTTPS: re.compile(forms.HTTPS), Kind.CONTACT: re.compile(forms.CONTACT)}
_INNER_PATTERN = re.compile(forms.INNER_PATTERN)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value was written: line and column from 1, or 0 for a variable of the environment."""

    report: Report
    line: int
    col: int
    path: str

    def add(self, message: str, mend: str) -> None:
        """Report a problem of this value."""
        self.report.add(self.line, self.col, self.path, message, mend)


def read_text(raw: str, item: Field, place: Place) -> Any:
    """Check one value given as bare text (a variable of the environment); None when wrong, and reported."""
    if item.kind is Kind.ORIGIN_LIST:
        parts = [part.strip() for part in raw.split(",")]
        checked = [check_item(part, item, place) for part in parts if part]
        return tuple(text for text in checked if text is not None)
    return check(raw.strip(), item, place)


def check_item(text: str, item: Field, place: Place) -> str | None:
    """Return one item of a list, or None when it is wrong, and reported."""
    if not text or len(text) > forms.ITEM_LENGTH or _CONTROL.search(text) or "\n" in text:
        place.add(f"must be one line of 1 to {forms.ITEM_LENGTH} characters", "shorten it, or remove it")
        return None
    if item.kind is Kind.ORIGIN_LIST and not _is_address(_ORIGIN, text):
        place.add(f"{_address(text)} is no web origin", EXAMPLES[Kind.ORIGIN_LIST])
        return None
    if item.kind is Kind.PATTERN_LIST and not _INNER_PATTERN.fullmatch(text):
        place.add(f"{shown(text)!r} leaves the grounding directory", EXAMPLES[Kind.PATTERN_LIST])
        return None
    if item.pattern and not re.fullmatch(item.pattern, text):
        place.add(f"{shown(text)!r} has a character that is not allowed", f"use {item.shape}")
        return None
    return text


def check(text: str, item: Field, place: Place) -> Any:
    """Return the value that a trimmed text stands for, or None when it is wrong, and reported."""
    if item.kind in {Kind.INTEGER, Kind.NUMBER}:
        return _check_number(text, item, place)
    if _CONTROL.search(text):
        place.add("holds a control character", "remove it")
        return None
    if "\n" in text and item.key not in MANY_LINES and item not in MESSAGES:
        place.add("must be one line", "join the lines")
        return None
    if not in_bounds(len(text), item, place, "characters"):
        return None
    if item.pattern and not re.fullmatch(item.pattern, text):
        place.add(f"{shown(text)!r} has a character that is not allowed", f"use {item.shape}")
        return None
    if item.kind is Kind.URL and not _is_address(_URL, text):
        place.add(f"{_address(text)} is no http or https address", EXAMPLES[Kind.URL])
        return None
    if item.kind in _URIS and not _is_uri(_URIS[item.kind], text):
        place.add(f"{_address(text)} is no {item.kind}", EXAMPLES[item.kind])
        return None
    if item in MESSAGES:
        return _check_placeholders(text, item, place)
    return text


def _check_number(text: str, item: Field, place: Place) -> float | None:
    shape = INTEGER if item.kind is Kind.INTEGER else NUMBER
    if not shape.fullmatch(text):
        place.add(f"must be {article(item.kind)}, not {shown(text)!r}", number_mend(text, item))
        return None
    number: float = int(text) if item.kind is Kind.INTEGER else float(text)
    if not math.isfinite(number) or not in_bounds(number, item, place, item.unit):
        return None
    return number


def _check_placeholders(text: str, item: Field, place: Place) -> str | None:
    if re.fullmatch(forms.message(item.placeholders), text):
        return text
    allowed = ", ".join(f"{{{name}}}" for name in item.placeholders)
    mend = f"only {allowed} may stand in braces" if allowed else "write it without braces"
    place.add("has a placeholder that is never filled in", mend)
    return None


def in_bounds(number: float, item: Field, place: Place, unit: str) -> bool:
    """Say whether a number of units, or a length, is within the field's bounds; reported when not."""
    low, high = item.minimum, item.maximum
    if (low is None or number >= low) and (high is None or number <= high):
        return True
    bounds = f"{low or 0:g} to {high:g}" if high is not None else f"at least {low:g}"
    place.add(f"is {number:g}, outside the bounds", f"use {bounds} {unit}".rstrip())
    return False


def _is_address(form: re.Pattern[str], text: str) -> bool:
    """Say whether an address has the form, and a host that the rest of the program can read from it."""
    if not form.fullmatch(text):
        return False
    try:
        return bool(urlsplit(text).hostname)
    except ValueError:  # brackets without an IPv6 address in them, letters that become a delimiter
        return False


def _is_uri(form: re.Pattern[str], text: str) -> bool:
    """Say whether a text has the form of its URI; that of a mailbox has no host to be read."""
    return form.fullmatch(text) is not None if text.startswith("mailto:") else _is_address(form, text)


def _address(text: str) -> str:
    """Quote an address for a message, unless it may hold a name and a password."""
    return "what stands here" if "@" in text else repr(shown(text))
