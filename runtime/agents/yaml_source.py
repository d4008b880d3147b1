"""Reads a YAML file into a small tree in which every value knows its place, so that mistakes have one too.

Why not `yaml.safe_load`: it drops line and column, lets the last of two equal keys win, and follows aliases
and tags, none of which a configuration of ours needs. What is refused here is refused by name: anchors,
aliases, tags, directives, a second document, keys given twice, more than 256 KiB, more than 10,000 values,
nesting deeper than 16. The tree is built from the parser's events in one pass, which ends at the first bound:
256 KiB of `[1,1,1,…` took the parser 11 seconds before values were counted, and half a second since.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import yaml

from runtime.agents.mends import NO_BREAK_MEND, NO_BREAK_SPACE, syntax_mend
from runtime.agents.places import Lines, undecodable
from runtime.agents.quoting import shown
from runtime.agents.tree import REFUSED, Entry, Mapping, Node, Scalar, Sequence
from runtime.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_BYTES = 256 * 1024
MAX_VALUES = 10_000  # the largest file that every bound of the settings allows has about 2,000
MAX_DEPTH = 16
MAX_PROBLEMS = 50  # past this many a reader is no longer helped by more of them


_TAG_PREFIX = "tag:yaml.org,2002:"


@dataclass(slots=True)
class Report:
    """Collects the problems of one file; `file` is its path relative to the root, as printed."""

    file: str
    problems: list[Problem] = field(default_factory=list)
    dropped: int = 0

    @property
    def is_full(self) -> bool:
        """Whether one more problem would only be counted."""
        return len(self.problems) >= MAX_PROBLEMS

    def add(self, line: int, col: int, path: str, message: str, mend: str) -> None:
        """Record one problem; beyond MAX_PROBLEMS the rest is counted."""
        if self.is_full:
            self.dropped += 1
        else:
            self.problems.append(Problem(self.file, line, col, path, message, mend))

    def all(self) -> tuple[Problem, ...]:
        """Return the problems, with a last one that says how many more there are."""
        if not self.dropped:
            return tuple(self.problems)
        message = f"has {self.dropped} more mistakes than are shown"
        return (*self.problems, Problem(self.file, 0, 0, "", message, "mend these and check again"))


class _TooManyError(Exception):
    """A bound is passed, and the problem is reported."""


def read_mapping(raw: bytes, report: Report) -> Mapping | None:
    """Return the file's top-level mapping, or None when the text as a whole is unusable.

    Problems go to `report`; a mapping may be returned beside problems (a key given twice keeps its first
    value), so that the caller's own checks are reported in the same run.
    """
    text = _decode(raw, report)
    if text is None:
        return None
    node: Node | None = None
    before = len(report.problems)
    try:
        node = _Builder(_events(text), report).document()
    except _TooManyError:
        return None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, col = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        what = shown(error.problem or error.context or "the text cannot be read")
        report.add(line, col, "", f"is not valid YAML: {what}", syntax_mend(error, text))
        return None
    except yaml.reader.ReaderError as error:
        line, col = Lines(text).place(error.position)
        report.add(
            line, col, "", "holds a character that YAML does not allow", "remove the control character"
        )
        return None
    if isinstance(node, Mapping):
        return node
    if len(report.problems) == before:
        mend = "write `key: value` lines, as in instances/_template/agent.yaml"
        report.add(1, 1, "", "holds no settings", NO_BREAK_MEND if NO_BREAK_SPACE in text else mend)
    return None


def _decode(raw: bytes, report: Report) -> str | None:
    if len(raw) > MAX_BYTES:
        report.add(
            0, 0, "", f"is larger than {MAX_BYTES} bytes", "move long texts into the prompt or grounding"
        )
        return None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        report.add(*undecodable(raw, error), "", "is not UTF-8", "save the file as UTF-8")
        return None


def _events(text: str) -> Iterator[tuple[yaml.Event, str]]:
    """Yield the parser's events, each with what YAML takes an untagged scalar for."""
    loader = yaml.SafeLoader(text)
    try:
        while loader.check_event():
            event: yaml.Event = loader.get_event()  # type: ignore[no-untyped-call]  # untyped in types-PyYAML
            tag = REFUSED
            if isinstance(event, yaml.ScalarEvent) and not event.tag:
                tag = str(loader.resolve(yaml.ScalarNode, event.value, event.implicit))  # type: ignore[no-untyped-call]
            yield event, tag.removeprefix(_TAG_PREFIX)
    finally:
        loader.dispose()


@dataclass(slots=True)
class _Builder:
    """Makes the tree of one document from events, within the bounds; reports what a tree has no place for."""

    events: Iterator[tuple[yaml.Event, str]]
    report: Report
    values: int = 0

    def document(self) -> Node | None:
        """Return the root of the only document."""
        root: Node | None = None
        documents = 0
        for event, kind in self.events:
            if isinstance(event, yaml.StreamStartEvent | yaml.StreamEndEvent | yaml.DocumentEndEvent):
                continue
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    mend = "keep one document: no `---` line"
                    self._stop(*_place(event), "is not valid YAML: holds a second document", mend)
                self._check(event)
                continue
            root = self._node(event, kind, "", 1)
        return root

    def _node(self, event: yaml.Event, kind: str, path: str, depth: int) -> Node:
        self._check(event)
        line, col = _place(event)
        self.values += 1
        if self.values > MAX_VALUES:
            self._stop(line, col, f"holds more than {MAX_VALUES} values", "take out what is not a setting")
        if isinstance(event, yaml.CollectionStartEvent) and depth > MAX_DEPTH:
            self._stop(line, col, f"is nested deeper than {MAX_DEPTH}", "flatten it")
        if isinstance(event, yaml.MappingStartEvent):
            return Mapping(tuple(self._entries(path, depth)), line, col)
        if isinstance(event, yaml.SequenceStartEvent):
            return Sequence(tuple(self._items(path, depth)), line, col)
        return Scalar(str(getattr(event, "value", "")), kind, line, col)

    def _entries(self, path: str, depth: int) -> Iterator[Entry]:
        first: dict[str, int] = {}
        for event, kind in self.events:
            if isinstance(event, yaml.MappingEndEvent):
                return
            line, col = _place(event)
            key_node = self._node(event, kind, path, depth + 1)
            key = key_node.text if isinstance(key_node, Scalar) else ""
            inner = f"{path}.{shown(key)}" if path else shown(key)
            value_event, value_kind = next(self.events)
            value = self._node(value_event, value_kind, inner, depth + 1)
            if not isinstance(key_node, Scalar):
                self.report.add(line, col, path, "has a key that is not a word", "write `key: value`")
            elif key in first:
                message = f"is given twice (first in line {first[key]})"
                self.report.add(line, col, inner, message, "keep one")
            else:
                first[key] = line
                yield Entry(key, value, line, col)

    def _items(self, path: str, depth: int) -> Iterator[Node]:
        for number, (event, kind) in enumerate(self.events):
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._node(event, kind, f"{path}[{number}]", depth + 1)

    def _check(self, event: yaml.Event) -> None:
        refused = _refuse(event)
        if refused:
            line, col = _place(event)
            self.report.add(line, col, "", refused, "write the value out, or put it in quotes")
            if self.report.is_full:
                raise _TooManyError

    def _stop(self, line: int, col: int, message: str, mend: str) -> None:
        self.report.add(line, col, "", message, mend)
        raise _TooManyError


def _place(event: yaml.Event) -> tuple[int, int]:
    mark = event.start_mark
    return (mark.line + 1, mark.column + 1) if mark else (1, 1)


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
