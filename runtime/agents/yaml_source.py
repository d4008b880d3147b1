"""Reads a YAML file into a small tree in which every value knows its place, so that mistakes have one too.

Why not `yaml.safe_load`: it drops line and column, lets the last of two equal keys win, and follows aliases
and tags, none of which a configuration of ours needs. What is refused here is refused by name: anchors,
aliases, tags, directives, a second document, keys given twice, more than 256 KiB, nesting deeper than 16.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import yaml

from runtime.errors import Problem

MAX_BYTES = 256 * 1024
MAX_DEPTH = 16
MAX_PROBLEMS = 50  # past this many a reader is no longer helped by more of them

_TAG_PREFIX = "tag:yaml.org,2002:"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value as written. `kind` is what YAML takes it for: str, int, float, bool, null or another word."""

    text: str
    kind: str
    line: int
    col: int


@dataclass(frozen=True, slots=True)
class Sequence:
    """A list."""

    items: tuple[Node, ...]
    line: int
    col: int


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of a mapping, with the place of the key itself."""

    key: str
    value: Node
    line: int
    col: int


@dataclass(frozen=True, slots=True)
class Mapping:
    """Keys and values in the file's order; each key once."""

    entries: tuple[Entry, ...]
    line: int
    col: int


Node = Scalar | Sequence | Mapping


@dataclass(slots=True)
class Report:
    """Collects the problems of one file; `file` is its path relative to the root, as printed."""

    file: str
    problems: list[Problem] = field(default_factory=list)

    def add(self, line: int, col: int, path: str, message: str, mend: str) -> None:
        """Record one problem; beyond MAX_PROBLEMS the rest is dropped."""
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(Problem(self.file, line, col, path, message, mend))


def read_mapping(raw: bytes, report: Report) -> Mapping | None:
    """Return the file's top-level mapping, or None when the text as a whole is unusable.

    Problems go to `report`; a mapping may be returned beside problems (a key given twice keeps its first
    value), so that the caller's own checks are reported in the same run.
    """
    text = _decode(raw, report)
    if text is None:
        return None
    try:
        if not _is_plain(text, report):
            return None
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, col = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        what = error.problem or error.context or "the text cannot be read"
        report.add(line, col, "", f"is not valid YAML: {what}", _syntax_mend(error))
        return None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        report.add(
            before.count("\n") + 1,
            error.position - before.rfind("\n"),
            "",
            "holds a character that YAML does not allow",
            "remove the control character",
        )
        return None
    if not isinstance(root, yaml.MappingNode):
        report.add(
            1, 1, "", "holds no settings", "write `key: value` lines, as in instances/_template/agent.yaml"
        )
        return None
    node = _convert(root, "", report)
    return node if isinstance(node, Mapping) else None


def _syntax_mend(error: yaml.MarkedYAMLError) -> str:
    """Say how to mend what the parser stumbled over; most often it is a text with a sign that YAML reads."""
    words = f"{error.context or ''} {error.problem or ''}"
    if any(part in words for part in ("flow", "mapping values are not allowed", "cannot start any token")):
        return "put the text in quotes, or mend the syntax at or just before this place"
    return "mend the syntax at or just before this place"


def _decode(raw: bytes, report: Report) -> str | None:
    if len(raw) > MAX_BYTES:
        report.add(
            0, 0, "", f"is larger than {MAX_BYTES} bytes", "move long texts into the prompt or grounding"
        )
        return None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line = before.count(b"\n") + 1
        report.add(line, error.start - before.rfind(b"\n"), "", "is not UTF-8", "save the file as UTF-8")
        return None


def _is_plain(text: str, report: Report) -> bool:
    """Walk the event stream (which does not recurse) and refuse what a plain tree has no place for."""
    depth = 0
    before = len(report.problems)
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        if event.start_mark is None:
            continue
        line, col = event.start_mark.line + 1, event.start_mark.column + 1
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            report.add(line, col, "", f"is nested deeper than {MAX_DEPTH}", "flatten it")
            return False
        refused = _refuse(event)
        if refused:
            report.add(line, col, "", refused, "write the value out, or put it in quotes")
    return len(report.problems) == before


def _refuse(event: yaml.Event) -> str:
    """Name what of YAML an event uses beyond plain values, or return ""."""
    if isinstance(event, yaml.DocumentStartEvent) and (event.version or event.tags):
        return "uses a % directive"
    if isinstance(event, yaml.AliasEvent):
        return "uses an alias (*name)"
    if isinstance(event, yaml.NodeEvent) and event.anchor:
        return "uses an anchor (&name)"
    if isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent) and event.tag:
        return "uses a tag (!name)"
    return ""


def _convert(node: yaml.Node, path: str, report: Report) -> Node:
    line, col = node.start_mark.line + 1, node.start_mark.column + 1
    if isinstance(node, yaml.MappingNode):
        entries: dict[str, Entry] = {}
        for key_node, value_node in node.value:
            key_line, key_col = key_node.start_mark.line + 1, key_node.start_mark.column + 1
            if not isinstance(key_node, yaml.ScalarNode):
                report.add(key_line, key_col, path, "has a key that is not a word", "write `key: value`")
                continue
            key = str(key_node.value)
            inner = f"{path}.{key}" if path else key
            value = _convert(value_node, inner, report)
            if key in entries:
                first = entries[key].line
                report.add(key_line, key_col, inner, f"is given twice (first in line {first})", "keep one")
                continue
            entries[key] = Entry(key, value, key_line, key_col)
        return Mapping(tuple(entries.values()), line, col)
    if isinstance(node, yaml.SequenceNode):
        items = tuple(_convert(item, f"{path}[{index}]", report) for index, item in enumerate(node.value))
        return Sequence(items, line, col)
    return Scalar(str(node.value), str(node.tag).removeprefix(_TAG_PREFIX), line, col)
