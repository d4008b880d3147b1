"""Turns the marked YAML tree into checked values by the table, and reports all mistakes at once.

Everything here is the same for every field of a kind; what joins several settings (directories that must
exist, scripts that grants name) is `instance.py`'s. A value that is wrong is left out of the result, beside
its problem.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from runtime.agents.fields import Field, Kind
from runtime.agents.mends import (
    EXAMPLES,
    NO_BREAK_MEND,
    NO_BREAK_SPACE,
    article,
    example,
    null_mend,
)
from runtime.agents.quoting import shown
from runtime.agents.scalars import Place, check, check_item, in_bounds
from runtime.agents.tree import REFUSED, Entry, Mapping, Node, Scalar, Sequence

if TYPE_CHECKING:
    from runtime.agents.yaml_source import Report

_KEY_LENGTH = 64  # of a key that is compared with known ones: the comparison is slow for long words


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
    return check(node.text.strip(), item, place)


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
    if not in_bounds(len(node.items), item, place, "items"):
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
    if not in_bounds(len(node.items), item, place, "items"):
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
        text = check_item(element.text.strip(), item, at)
        if text is not None:
            values.places[f"{item.key}[{len(texts)}]"] = at
            texts.append(text)
    return tuple(texts)


def _summary(item: Field) -> str:
    return item.description[0].lower() + item.description[1:].rstrip(".")
