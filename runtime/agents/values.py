"""Turns the marked YAML tree into checked values by the table, and reports all mistakes at once.

Everything here is the same for every field of a kind; what joins several settings (directories that must
exist, scripts that grants name) is `instance.py`'s. A value that is wrong is left out of the result, beside
its problem.
"""

from __future__ import annotations

import difflib
import math
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from runtime.agents import forms
from runtime.agents.fields import MANY_LINES, MESSAGES, Field, Kind
from runtime.agents.mends import (
    EXAMPLES,
    INTEGER,
    NO_BREAK_MEND,
    NO_BREAK_SPACE,
    NUMBER,
    article,
    example,
    null_mend,
    number_mend,
)
from runtime.agents.quoting import shown
from runtime.agents.tree import REFUSED, Entry, Mapping, Node, Scalar, Sequence

if TYPE_CHECKING:
    from runtime.agents.yaml_source import Report

_CONTROL = re.compile(forms.CONTROL)
_URL = re.compile(forms.URL)
_ORIGIN = re.compile(forms.ORIGIN)
_KEY_LENGTH = 64  # of a key that is compared with known ones: the comparison is slow for long words
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


@dataclass(slots=True)
class Values:
    """Checked values by key, and the place of each value that was given, also inside: `skills[0].tags[1]`.

    Numbers count what was taken: an item that is wrong is left out of `found` and of the places.
    """

    found: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)


def read_fields(
    source: Mapping,
    fields: tuple[Field, ...],
    report: Report,
    prefix: str = "",
    given: frozenset[str] = frozenset(),
) -> Values:
    """Read one mapping by its table. `given` names required keys that another source provides.

    Defaults are filled in for keys that are absent; a key whose value is wrong is absent from `found` and
    reported.
    """
    values = Values()
    entries = {entry.key: entry for entry in source.entries}
    known = {item.key: item for item in fields}
    unknown = [entry for entry in source.entries if entry.key not in known]
    meant = {_report_unknown(entry, known, report, prefix) for entry in unknown}
    for item in fields:
        path = prefix + item.key
        present = entries.get(item.key)
        if present is None:
            if item.key in meant:
                continue
            if item.required and item.key not in given:
                report.add(
                    source.line, source.col, path, "is missing", f"add `{item.key}:`; {_summary(item)}"
                )
            elif item.default is not None:
                values.found[item.key] = item.default
            continue
        values.places[item.key] = Place(report, present.value.line, present.value.col, path)
        value = _read(present.value, item, path, report, values)
        if value is not None:
            values.found[item.key] = value
    return values


def read_text(raw: str, item: Field, place: Place) -> Any:
    """Check one value given as bare text (a variable of the environment); None when wrong, and reported."""
    if item.kind is Kind.ORIGIN_LIST:
        parts = [part.strip() for part in raw.split(",")]
        checked = [_check_item(part, item, place) for part in parts if part]
        return tuple(text for text in checked if text is not None)
    return _check(raw.strip(), item, place)


def _report_unknown(entry: Entry, known: dict[str, Field], report: Report, prefix: str) -> str:
    """Report a key that there is not, and return the one that it was most likely meant to be, or ""."""
    written = entry.key.replace(NO_BREAK_SPACE, " ").strip()[:_KEY_LENGTH]
    close = () if report.is_full else difflib.get_close_matches(written, known, n=1)
    mend = f"did you mean `{close[0]}`?" if close else "known keys: " + ", ".join(sorted(known))
    if NO_BREAK_SPACE in entry.key:
        mend = NO_BREAK_MEND
    report.add(entry.line, entry.col, prefix + shown(entry.key), "is not a known key", mend)
    return close[0] if close else ""


def _read(node: Node, item: Field, path: str, report: Report, values: Values) -> Any:
    place = Place(report, node.line, node.col, path)
    if isinstance(node, Scalar) and node.kind == REFUSED:
        return None
    if isinstance(node, Scalar) and node.kind == "null":
        place.add("has no value", null_mend(node, item))
        return None
    match item.kind:
        case Kind.MAPPING:
            return _read_mapping(node, item, path, place, values, item.key)
        case Kind.MAPPING_LIST:
            return _read_mapping_list(node, item, path, place, values)
        case Kind.TEXT_LIST | Kind.PATH_LIST | Kind.PATTERN_LIST | Kind.ORIGIN_LIST:
            return _read_list(node, item, path, place, values)
        case _:
            pass
    if not isinstance(node, Scalar):
        place.add(f"must be {article(item.kind)}", example(item, node))
        return None
    accepted = {
        Kind.INTEGER: {"int"},
        Kind.NUMBER: {"int", "float"},
        Kind.VERSION: {"str", "int", "float", "timestamp"},
    }.get(item.kind, {"str"})
    if node.kind not in accepted:
        place.add(f"must be {article(item.kind)}, not {shown(node.text)!r}", example(item, node))
        return None
    return _check(node.text.strip(), item, place)


def _read_mapping(
    node: Node, item: Field, path: str, place: Place, values: Values, key: str
) -> dict[str, Any] | None:
    """Read one mapping as far as it is right; what is wrong in it is reported, so that nothing loads."""
    if isinstance(node, Scalar) and node.kind == REFUSED:
        return None
    if not isinstance(node, Mapping):
        place.add(
            "must be a mapping", "write its keys indented below it: " + ", ".join(f.key for f in item.fields)
        )
        return None
    inner = read_fields(node, item.fields, place.report, prefix=f"{path}.")
    values.places[key] = place
    values.places.update({f"{key}.{name}": at for name, at in inner.places.items()})
    return inner.found


def _read_mapping_list(
    node: Node, item: Field, path: str, place: Place, values: Values
) -> tuple[dict[str, Any], ...] | None:
    if not isinstance(node, Sequence):
        place.add("must be a list", EXAMPLES[item.kind])
        return None
    if not _in_bounds(len(node.items), item, place, "items"):
        return None
    mappings: list[dict[str, Any]] = []
    for index, element in enumerate(node.items):
        at = f"{path}[{index}]"
        here = Place(place.report, element.line, element.col, at)
        value = _read_mapping(element, item, at, here, values, f"{item.key}[{len(mappings)}]")
        if value is not None:
            mappings.append(value)
    return tuple(mappings)


def _read_list(node: Node, item: Field, path: str, place: Place, values: Values) -> tuple[str, ...] | None:
    if not isinstance(node, Sequence):
        one = shown(node.text) if isinstance(node, Scalar) else "first, second"
        place.add("must be a list", f"write `{item.key}: [{one}]`")
        return None
    if not _in_bounds(len(node.items), item, place, "items"):
        return None
    texts: list[str] = []
    for index, element in enumerate(node.items):
        at = Place(place.report, element.line, element.col, f"{path}[{index}]")
        if isinstance(element, Scalar) and element.kind == REFUSED:
            continue
        if isinstance(element, Scalar) and element.kind == "null":
            at.add("has no value", null_mend(element, item))
            continue
        if not isinstance(element, Scalar) or element.kind != "str":
            at.add("must be text", "put it in quotes")
            continue
        text = _check_item(element.text.strip(), item, at)
        if text is not None:
            values.places[f"{item.key}[{len(texts)}]"] = at
            texts.append(text)
    return tuple(texts)


def _check_item(text: str, item: Field, place: Place) -> str | None:
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


def _check(text: str, item: Field, place: Place) -> Any:
    if item.kind in {Kind.INTEGER, Kind.NUMBER}:
        return _check_number(text, item, place)
    if _CONTROL.search(text):
        place.add("holds a control character", "remove it")
        return None
    if "\n" in text and item.key not in MANY_LINES and item not in MESSAGES:
        place.add("must be one line", "join the lines")
        return None
    if not _in_bounds(len(text), item, place, "characters"):
        return None
    if item.pattern and not re.fullmatch(item.pattern, text):
        place.add(f"{shown(text)!r} has a character that is not allowed", f"use {item.shape}")
        return None
    if item.kind is Kind.URL and not _is_address(_URL, text):
        place.add(f"{_address(text)} is no http or https address", EXAMPLES[Kind.URL])
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
    if not math.isfinite(number) or not _in_bounds(number, item, place, item.unit):
        return None
    return number


def _check_placeholders(text: str, item: Field, place: Place) -> str | None:
    if re.fullmatch(forms.message(item.placeholders), text):
        return text
    allowed = ", ".join(f"{{{name}}}" for name in item.placeholders)
    mend = f"only {allowed} may stand in braces" if allowed else "write it without braces"
    place.add("has a placeholder that is never filled in", mend)
    return None


def _in_bounds(number: float, item: Field, place: Place, unit: str) -> bool:
    low, high = item.minimum, item.maximum
    if (low is None or number >= low) and (high is None or number <= high):
        return True
    bounds = f"{low or 0:g} to {high:g}" if high is not None else f"at least {low:g}"
    place.add(f"is {number:g}, outside the bounds", f"use {bounds} {unit}".rstrip())
    return False


def _summary(item: Field) -> str:
    return item.description[0].lower() + item.description[1:].rstrip(".")


def _is_address(form: re.Pattern[str], text: str) -> bool:
    """Say whether an address has the form, and a host that the rest of the program can read from it."""
    if not form.fullmatch(text):
        return False
    try:
        return bool(urlsplit(text).hostname)
    except ValueError:  # brackets without an IPv6 address in them, letters that become a delimiter
        return False


def _address(text: str) -> str:
    """Quote an address for a message, unless it may hold a name and a password."""
    return "what stands here" if "@" in text else repr(shown(text))
