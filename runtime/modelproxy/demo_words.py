"""Turn a question into the stems to search for. Pure; English with a little German.

The demo model has no language model: a short list of words that carry no topic, a crude stemmer and a
handful of synonyms are what makes "Wann sind die Sprechstunden?" find the file about office hours.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

MAX_QUESTION_CHARS: Final = 4000
MAX_STEMS: Final = 12

STOP_EN: Final = frozenset(
    """
    a about after all also am an and any anything are as at be because been before being but by can
    could did do does for from get give go had has have he her here hers hi him his how i if in into is
    it its just know let like many me may more most much my no not of on or our out over please said say
    shall she should so some something tell than thank thanks that the their them then there these they
    this those to too under up us very want was we were what when where which while who whom whose why
    will with would yes you your
    """.split()  # noqa: SIM905  a paragraph of words reads better than a column of them
)
STOP_DE: Final = frozenset(
    """
    aber als am an auch auf aus bei bin bist bitte da dann das dass dein deine dem den denn der des die
    dies diese dir doch du ein eine einem einen einer er es etwas für gibt haben hast hat hier ich ihr
    ihre ihren im in ist ja kann kannst kein keine können man mein meine mich mir mit nach nein nicht
    noch nur oder schon sein sie sind so über um und uns vom von vor war waren warum was wann welche
    welcher wem wen wenn wer wie wieder will wir wird wo wurde zu zum zur
    """.split()  # noqa: SIM905  as above
)
GREETINGS: Final = frozenset(
    """
    hello hi hey greetings good morning afternoon evening day hallo guten tag morgen abend moin servus
    there ada
    """.split()  # noqa: SIM905  as above
)
HELLO: Final = frozenset({"hello", "hi", "hey", "greetings", "hallo", "moin", "servus", "good", "guten"})

SYNONYMS: Final[Mapping[str, tuple[str, ...]]] = {
    "sprechstunde": ("office", "hours"),
    "sprechstunden": ("office", "hours"),
    "sprechzeit": ("office", "hours"),
    "sprechzeiten": ("office", "hours"),
    "öffnungszeiten": ("office", "hours"),
    "geboren": ("born",),
    "gestorben": ("died",),
    "kontakt": ("contact",),
    "erreichen": ("contact",),
    "reach": ("contact",),
    "verfügbar": ("available",),
    "termin": ("appointment", "available"),
    "vortrag": ("talk", "speaking"),
    "maschine": ("engine",),
    "bücher": ("books",),
    "opening": ("office",),
}
SUFFIXES: Final = (
    "abilities", "ability", "ations", "ation", "ments", "ment", "ings", "ing", "able", "ies", "ied", "ers",
    "er", "ed", "es", "s", "y", "e",
)  # fmt: skip

_WORD: Final = re.compile(r"[^\W_]+(?:'[^\W_]+)?")


def words(text: str) -> list[str]:
    """Return the words of `text` in lower case, without possessive endings."""
    return [word.partition("'")[0] for word in _WORD.findall(text.replace("\u2019", "'").lower())]


def stem(word: str) -> str:
    """Return what a word shares with its other forms: the longest known ending cut off, 4 letters kept."""
    for suffix in SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            return word[: -len(suffix)]
    return word


def stems(texts: Iterable[str]) -> frozenset[str]:
    """Return the stems of every word in `texts`."""
    return frozenset(stem(word) for text in texts for word in words(text))


def topics(question: str) -> tuple[str, ...]:
    """Return the stems a question is about, in its order, at most MAX_STEMS."""
    found: dict[str, None] = {}
    for word in words(question[:MAX_QUESTION_CHARS]):
        if word in STOP_EN or word in STOP_DE or (len(word) < 3 and not word.isdigit()):
            continue
        for synonym in SYNONYMS.get(word, (word,)):
            found[stem(synonym)] = None
    return tuple(found)[:MAX_STEMS]


def is_german(question: str) -> bool:
    """Whether a question reads more like German than English."""
    spoken = words(question[:MAX_QUESTION_CHARS])
    german = sum(word in STOP_DE or (word in SYNONYMS and not word.isascii()) for word in spoken)
    return german > sum(word in STOP_EN for word in spoken)


def asks_who(question: str) -> bool:
    """Whether a question asks for a person, so that a biography is a good place to look."""
    return words(question[:MAX_QUESTION_CHARS])[:1] in (["who"], ["wer"])


def is_greeting(question: str) -> bool:
    """Whether a question only says hello."""
    spoken = words(question[:MAX_QUESTION_CHARS])
    return bool(spoken) and set(spoken) <= GREETINGS and bool(set(spoken) & HELLO)
