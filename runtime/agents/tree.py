"""The small tree that a YAML file is read into: every value and key knows its place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value as written. `kind` is what YAML takes it for: str, int, float, bool, null or another word.

    REFUSED is the kind of an alias or a tagged value, whose problem is reported already.
    """

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

    def words_of(self, key: str) -> str:
        """Return all that is written at `key`, in whatever shape, as one text; "" when there is nothing."""
        return " ".join(text for entry in self.entries if entry.key == key for text in _texts(entry.value))


Node = Scalar | Sequence | Mapping


def _texts(node: Node) -> Iterator[str]:
    match node:
        case Scalar():
            yield node.text
        case Sequence():
            for item in node.items:
                yield from _texts(item)
        case Mapping():
            for entry in node.entries:
                yield entry.key
                yield from _texts(entry.value)
