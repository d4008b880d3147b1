"""Find the passages that answer a question. Pure: documents and stems in, the best passages out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runtime.modelproxy.demo_words import stems

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MAX_PASSAGE_CHARS: Final = 700
MAX_PASSAGES: Final = 3
CLOSE_TO_BEST: Final = 0.7

_GREP_LINE: Final = re.compile(r"^(?P<file>[^\n:]+?):(?P<line>\d+):(?P<text>.*)$")
_READ_LINE: Final = re.compile(r"^ *\d+(?:\t|\u2192)(?P<text>.*)$")
_REMINDER: Final = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_INLINE: Final = "# Grounding documents\n"
_INLINE_FILE: Final = re.compile(r"^## (\S+\.\w{1,8})$", re.MULTILINE)
_BOLD: Final = re.compile(r"^\*\*[^*]+\*\*$")  # a line that is a heading in all but name
_LIST_ITEM: Final = re.compile(r"^\s*(?:[-*+|]|\d+[.)])\s?")


@dataclass(frozen=True, slots=True)
class Passage:
    """A paragraph, where it stands, and the headings above it."""

    file: str
    position: int
    heading: str
    text: str


def grep_lines(result: str) -> list[tuple[str, str]]:
    """Return (file, text) for every line of a Grep result in content mode."""
    found = (_GREP_LINE.match(line) for line in result.splitlines())
    return [(match["file"], match["text"]) for match in found if match]


def read_text(result: str) -> str:
    """Return a file's text from a Read result, without line numbers and reminders."""
    lines = (_READ_LINE.match(line) for line in _REMINDER.sub("", result).splitlines())
    return "\n".join(match["text"] for match in lines if match)


def inline_documents(system: str) -> dict[str, str]:
    """Return the files told up front, as `agents/inline.py` appends them to the persona."""
    _before, found, told = system.partition(_INLINE)
    parts = _INLINE_FILE.split(told) if found else []
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def rank_files(lines: Iterable[tuple[str, str]], wanted: Sequence[str]) -> list[str]:
    """Return the files of Grep's lines, best first: by how many of the stems they hold, then by name."""
    held: dict[str, set[str]] = {}
    for file, text in lines:
        here = stems((text,))
        held.setdefault(file, set()).update(stem for stem in wanted if stem in here)
    spread = {stem: sum(stem in have for have in held.values()) or 1 for stem in wanted}

    def score(file: str) -> float:
        name = stems((file,))
        return sum((1 / spread[stem]) * ((stem in held[file]) + 1.5 * (stem in name)) for stem in wanted)

    return sorted(held, key=lambda file: (-score(file), file))


def passages(file: str, text: str) -> list[Passage]:
    """Cut a Markdown text into paragraphs, each with the headings above it; front matter is left out."""
    if text.startswith("---\n"):
        text = text.partition("\n---\n")[2] or text
    found: list[Passage] = []
    headings: list[str] = []
    for paragraph in re.split(r"\n\s*\n", text):
        body: list[str] = []
        for line in paragraph.strip("\n").splitlines():
            mark = re.match(r"^(#{1,6})\s+(.*)$", line)
            if mark and not body:
                headings[len(mark[1]) - 1 :] = [mark[2].strip()]
            elif line.strip():
                body.append(line.rstrip())
        if len(body) == 1 and _BOLD.match(body[0]):
            headings[5:] = [body[0].strip(" *")]
        elif body:
            found.append(Passage(file, len(found), " / ".join(headings), _joined(body)))
    return found


def _joined(lines: Sequence[str]) -> str:
    if any(_LIST_ITEM.match(line) for line in lines):
        return _cut("\n".join(lines))
    return _cut(" ".join(line.strip() for line in lines))


def _cut(text: str) -> str:
    if len(text) <= MAX_PASSAGE_CHARS:
        return text
    head = text[:MAX_PASSAGE_CHARS]
    end = max(head.rfind(". "), head.rfind("\n"))
    return (head[: end + 1] if end > MAX_PASSAGE_CHARS // 2 else head).rstrip() + " …"


def best(candidates: Sequence[Passage], wanted: Mapping[str, float]) -> list[Passage]:
    """Return at most MAX_PASSAGES, best first: those that hold the most and the rarest of the weighed stems.

    A passage counts only when a stem stands in its text or in the headings above it.
    """
    texts = {passage: stems((passage.text,)) for passage in candidates}
    heads = {passage: stems((passage.heading,)) for passage in candidates}
    names = {passage: stems((passage.file,)) for passage in candidates}
    spread = {stem: sum(stem in texts[passage] for passage in candidates) or 1 for stem in wanted}

    def score(passage: Passage) -> float:
        total = 0.0
        for stem, weight in wanted.items():
            places = (
                (stem in texts[passage]) + 0.8 * (stem in heads[passage]) + 0.5 * (stem in names[passage])
            )
            total += weight * places / spread[stem] ** 0.5
        return total

    def touched(passage: Passage) -> bool:
        return any(stem in texts[passage] or stem in heads[passage] for stem in wanted)

    ranked = sorted(
        (passage for passage in candidates if touched(passage)),
        key=lambda passage: (-score(passage), passage.file, passage.position),
    )
    return [passage for passage in ranked if score(passage) >= CLOSE_TO_BEST * score(ranked[0])][
        :MAX_PASSAGES
    ]
