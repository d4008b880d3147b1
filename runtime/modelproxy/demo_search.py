"""What a question is searched by: its words with their weights, and the pairs that must stand as they are.

Pure. A word about the talk itself ("ignore", "print") is not searched for, so that a request to do something
is answered like any other question that the documents say nothing on. The persona's own name is on every
page and counts only where nothing else is asked; then a biography is the place to look.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runtime.modelproxy import demo_words

if TYPE_CHECKING:
    from runtime.modelproxy.demo_conversation import Conversation

MEMORY_WEIGHT: Final = 0.4
NAME_WEIGHT: Final = 0.3
HINT_WEIGHT: Final = 0.8
POINTING_TERMS: Final = 2
MIN_COVERAGE: Final = 1 / 3

_NAMED: Final = re.compile(r"representative of ((?:[A-Z][\w.'-]*[ ,]?)+)")


@dataclass(frozen=True, slots=True)
class Term:
    """One word of the question: the stems it is found by, and whether finding it says anything."""

    stems: tuple[str, ...]
    weight: float = 1.0
    salient: bool = True


@dataclass(frozen=True, slots=True)
class Search:
    """All that is searched for."""

    terms: tuple[Term, ...] = ()
    phrases: tuple[tuple[str, str], ...] = ()

    @property
    def stems(self) -> tuple[str, ...]:
        """Every stem once, in the question's order."""
        return tuple(dict.fromkeys(stem for term in self.terms for stem in term.stems))

    def covered(self, stems: frozenset[str]) -> float:
        """Return which part of the salient words the stems hold, 0 to 1."""
        salient = [term for term in self.terms if term.salient]
        return sum(not stems.isdisjoint(term.stems) for term in salient) / (len(salient) or 1)

    def answered_by(self, stems: frozenset[str]) -> bool:
        """Whether enough of the salient words is there for a quotation to be an answer."""
        return 0 < self.covered(stems) >= MIN_COVERAGE


def search_for(conversation: Conversation) -> Search:
    """Return what the question is searched by; one that points back borrows from one before."""
    names = _names(conversation.system)
    own = _terms(conversation.question, names)
    salient = sum(term.salient for term in own)
    named = bool(own) and not salient
    hint: tuple[Term, ...] = ()
    borrowed: tuple[Term, ...] = ()
    if named:
        own = tuple(Term(term.stems, term.weight) for term in own)
    elif salient <= 1 or (demo_words.points_back(conversation.question) and salient <= POINTING_TERMS):
        borrowed = _borrowed(conversation, names, salient=not salient)
    if named or demo_words.asks_who(conversation.question):
        hint = (Term(demo_words.forms("biography"), HINT_WEIGHT, salient=named),)
    return Search(_merged((*own, *borrowed, *hint)), _phrases(conversation.question, names))


def _terms(question: str, names: frozenset[str]) -> tuple[Term, ...]:
    found = (demo_words.forms(word) for word in demo_words.topics(question))
    return tuple(
        Term(stems, NAME_WEIGHT, salient=False) if stems[0] in names else Term(stems) for stems in found
    )


def _phrases(question: str, names: frozenset[str]) -> tuple[tuple[str, str], ...]:
    pairs = demo_words.phrases(question)
    return tuple(pair for pair in pairs if not demo_words.stems(pair) <= names)


def _borrowed(conversation: Conversation, names: frozenset[str], *, salient: bool) -> tuple[Term, ...]:
    for said in reversed(conversation.memory):
        terms = [term for term in _terms(said, names) if term.salient]
        if terms:
            return tuple(Term(term.stems, MEMORY_WEIGHT, salient=salient) for term in terms)
    return ()


def _merged(terms: tuple[Term, ...]) -> tuple[Term, ...]:
    seen: dict[tuple[str, ...], Term] = {}
    for term in terms:
        seen.setdefault(term.stems, term)
    return tuple(seen.values())


def _names(system: str) -> frozenset[str]:
    """Return the stems of the persona's name, as the prompt gives it."""
    match = _NAMED.search(system)
    return demo_words.stems((match[1],)) if match else frozenset()
