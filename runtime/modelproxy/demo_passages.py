"""Find the passages that answer a question. Pure: documents and stems in, the best passages out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from runtime.modelproxy.demo_words import stems, words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from runtime.modelproxy.demo_search import Search

MAX_PASSAGE_CHARS: Final = 700
MAX_PASSAGES: Final = 3
CLOSE_TO_BEST: Final = 0.7
EXACT_WEIGHT: Final = 12.0  # above what all words of a question can give together

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


def rank_files(lines: Iterable[tuple[str, str]], search: Search) -> list[str]:
    """Return the files of Grep's lines, best first: by how many of the stems they hold, then by name."""
    held: dict[str, set[str]] = {}
    exact: dict[str, int] = {}
    for file, text in lines:
        here = stems((text,))
        held.setdefault(file, set()).update(stem for stem in search.stems if stem in here)
        exact[file] = exact.get(file, 0) + _exact(text, search)
    spread = {stem: sum(stem in have for have in held.values()) or 1 for stem in search.stems}

    def score(file: str) -> float:
        name = stems((file,))
        found = bool(exact[file]) * EXACT_WEIGHT
        for term in search.terms:
            places = [(stem in held[file]) + 1.5 * (stem in name) for stem in term.stems]
            found += sum(
                term.weight * place / spread[stem] for place, stem in zip(places, term.stems, strict=True)
            )
        return found

    return sorted(held, key=lambda file: (-score(file), file))


def passages(file: str, text: str) -> list[Passage]:
    """Cut a Markdown text into paragraphs, each with the headings above it; front matter is left out.

    A list stays with the sentence before it that ends in a colon.
    """
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
            heading, text = " / ".join(headings), _joined(body)
            if found and found[-1].heading == heading and _introduces(found[-1].text, body[0]):
                text = f"{found.pop().text}\n{text}"
            found.append(Passage(file, len(found), heading, text))
    return found


def _introduces(sentence: str, line: str) -> bool:
    return sentence.endswith(":") and "\n" not in sentence and _LIST_ITEM.match(line) is not None


def _joined(lines: Sequence[str]) -> str:
    if any(_LIST_ITEM.match(line) for line in lines):
        return "\n".join(lines)
    return " ".join(line.strip() for line in lines)


def excerpt(passage: Passage, search: Search) -> str:
    """Return what to quote of a passage: all of it, or of a list those items that the question is about."""
    text = passage.text
    items = text.split("\n")
    exact = [item for item in items if _exact(item, search)]
    if exact and len(items) > 1:
        return _cut("\n".join(exact))
    if len(text) > MAX_PASSAGE_CHARS and len(items) > 1:
        covered = [search.covered(stems((item,))) for item in items]
        about = [item for item, part in zip(items, covered, strict=True) if part == max(covered)]
        return _cut("\n".join(about))
    return _cut(text)


def _exact(text: str, search: Search) -> int:
    """Count the question's phrases that stand in a text; one at its beginning counts twice."""
    spoken = words(text)
    pairs = list(pairwise(spoken))
    return sum((phrase in pairs) + (phrase in pairs[:1]) for phrase in search.phrases)


def _cut(text: str) -> str:
    if len(text) <= MAX_PASSAGE_CHARS:
        return text
    head = text[:MAX_PASSAGE_CHARS]
    end = max(head.rfind(". "), head.rfind("\n"))
    return (head[: end + 1] if end > MAX_PASSAGE_CHARS // 2 else head).rstrip() + " …"


def answers(passage: Passage, search: Search) -> bool:
    """Whether a passage says all that is asked: its words, and a phrase of the question as it stands."""
    here = stems((passage.text, passage.heading))
    exact = not search.phrases or _exact(f"{passage.heading}\n{passage.text}", search) > 0
    return search.covered(here | stems((passage.file,))) == 1 and search.answered_by(here) and exact


def best(candidates: Sequence[Passage], search: Search) -> list[Passage]:
    """Return at most MAX_PASSAGES, best first: those that hold the most and the rarest of the stems.

    A passage counts only when enough of the salient words stand in its text or in the headings above it. One
    that holds a phrase of the question as it stands comes before all that only hold its words.
    """
    texts = {passage: stems((passage.text,)) for passage in candidates}
    heads = {passage: stems((passage.heading,)) for passage in candidates}
    names = {passage: stems((passage.file,)) for passage in candidates}
    spread = {stem: sum(stem in texts[passage] for passage in candidates) or 1 for stem in search.stems}
    exact = {
        passage: max(_exact(item, search) for item in passage.text.split("\n")) for passage in candidates
    }

    def score(passage: Passage) -> float:
        total = EXACT_WEIGHT * exact[passage]
        for term in search.terms:
            for stem in term.stems:
                places = (
                    (stem in texts[passage]) + 0.8 * (stem in heads[passage]) + 0.5 * (stem in names[passage])
                )
                total += term.weight * places / spread[stem] ** 0.5
        return total

    ranked = sorted(
        (one for one in candidates if exact[one] or search.answered_by(texts[one] | heads[one])),
        key=lambda passage: (-score(passage), passage.file, passage.position),
    )
    return [passage for passage in ranked if score(passage) >= CLOSE_TO_BEST * score(ranked[0])][
        :MAX_PASSAGES
    ]
