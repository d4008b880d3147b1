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
from typing import Any

from runtime.agents import forms
from runtime.agents.fields import MANY_LINES, MESSAGES, Field, Kind
from runtime.agents.quoting import shown
from runtime.agents.yaml_source import REFUSED, Entry, Mapping, Node, Report, Scalar, Sequence

_NUMBER = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})(\.[0-9]{1,17})?")
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")
_CONTROL = re.compile(forms.CONTROL)
_URL = re.compile(forms.URL)
_ORIGIN = re.compile(forms.ORIGIN)
_KEY_LENGTH = 64  # of a key that is compared with known ones: the comparison is slow for long words
_INNER_PATTERN = re.compile(forms.INNER_PATTERN)
_EXAMPLES = {
    Kind.INTEGER: "write a whole number without a unit, such as 8011",
    Kind.NUMBER: "write a number without a unit, such as 90",
    Kind.URL: "write it whole, such as https://example.org/about",
    Kind.ORIGIN_LIST: "write scheme and host only, such as https://www.example.org",
    Kind.PATTERN_LIST: "write a pattern below grounding_dir, such as facts/*.md",
}


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
    for entry in source.entries:
        if entry.key not in known:
            _report_unknown(entry, known, report, prefix)
    for item in fields:
        path = prefix + item.key
        present = entries.get(item.key)
        if present is None:
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


def _report_unknown(entry: Entry, known: dict[str, Field], report: Report, prefix: str) -> None:
    close = () if report.is_full else difflib.get_close_matches(entry.key[:_KEY_LENGTH], known, n=1)
    mend = f"did you mean `{close[0]}`?" if close else "known keys: " + ", ".join(sorted(known))
    report.add(entry.line, entry.col, prefix + shown(entry.key), "is not a known key", mend)


def _read(node: Node, item: Field, path: str, report: Report, values: Values) -> Any:
    place = Place(report, node.line, node.col, path)
    if isinstance(node, Scalar) and node.kind == REFUSED:
        return None
    if isinstance(node, Scalar) and node.kind == "null":
        place.add("has no value", _null_mend(node, item))
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
        place.add(f"must be {_article(item.kind)}", _EXAMPLES.get(item.kind, "write one value"))
        return None
    accepted = {
        Kind.INTEGER: {"int"},
        Kind.NUMBER: {"int", "float"},
        Kind.VERSION: {"str", "int", "float", "timestamp"},
    }.get(item.kind, {"str"})
    if node.kind not in accepted:
        mend = _EXAMPLES.get(item.kind, f'put it in quotes: "{shown(node.text)}"')
        place.add(f"must be {_article(item.kind)}, not {shown(node.text)!r}", mend)
        return None
    return _check(node.text.strip(), item, place)


def _null_mend(node: Scalar, item: Field) -> str:
    """Say what to write instead of nothing; YAML reads a lone `~`, which looks like a home, as nothing."""
    if item.kind in {Kind.PATH, Kind.PATH_LIST}:
        return "YAML reads ~ as nothing; write `~/folder`, or a path" if node.text == "~" else "write a path"
    return "give it one, or remove the line"


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
        place.add("must be a list", "write each item indented below it, starting with `- id:`")
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
        place.add("must be a list", f"write `{item.key}: [first, second]`")
        return None
    if not _in_bounds(len(node.items), item, place, "items"):
        return None
    texts: list[str] = []
    for index, element in enumerate(node.items):
        at = Place(place.report, element.line, element.col, f"{path}[{index}]")
        if isinstance(element, Scalar) and element.kind == REFUSED:
            continue
        if isinstance(element, Scalar) and element.kind == "null":
            at.add("has no value", _null_mend(element, item))
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
    if item.kind is Kind.ORIGIN_LIST and not _ORIGIN.fullmatch(text):
        place.add(f"{shown(text)!r} is no web origin", _EXAMPLES[Kind.ORIGIN_LIST])
        return None
    if item.kind is Kind.PATTERN_LIST and not _INNER_PATTERN.fullmatch(text):
        place.add(f"{shown(text)!r} leaves the grounding directory", _EXAMPLES[Kind.PATTERN_LIST])
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
    if item.kind is Kind.URL and not _URL.fullmatch(text):
        place.add(f"{shown(text)!r} is no http or https address", _EXAMPLES[Kind.URL])
        return None
    if item in MESSAGES:
        return _check_placeholders(text, item, place)
    return text


def _check_number(text: str, item: Field, place: Place) -> float | None:
    shape = _INTEGER if item.kind is Kind.INTEGER else _NUMBER
    if not shape.fullmatch(text):
        place.add(f"must be {_article(item.kind)}, not {shown(text)!r}", _EXAMPLES[item.kind])
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


def _article(kind: Kind) -> str:
    return kind.value if kind in {Kind.TEXT, Kind.VERSION, Kind.TOOLS} else f"a {kind.value}"


def _summary(item: Field) -> str:
    return item.description[0].lower() + item.description[1:].rstrip(".")
