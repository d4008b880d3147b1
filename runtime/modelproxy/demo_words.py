"""Turn a question into the stems to search for. Pure; English with a little German.

The demo model has no language model: a short list of words that carry no topic, a crude stemmer and a
handful of synonyms are what makes "Wann sind die Sprechstunden?" find the file about office hours.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from runtime.modelproxy.demo_language import reads_german

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
GENERIC: Final = frozenset(
    """
    above again answer ask command content day disregard etc execute file forget ignore instruction
    instructions output pretend previous print prompt question repeat reveal rule rules system thing time word
    ignoriere vergiss wiederhole anweisung anweisungen drucke
    """.split()  # noqa: SIM905  as above
)  # words about the talk itself, or too common to stand for a subject
POINTING: Final = frozenset(
    """
    he him his it its that their them they this these those
    dort er ihm ihn ihnen sein seine es diese dieser dieses damit dazu
    """.split()  # noqa: SIM905  as above
)  # words that stand for what was spoken of before; she and her mean the persona as often
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
FORMS: Final[Mapping[str, tuple[str, ...]]] = {
    "meet": ("met",),
    "write": ("wrote", "written"),
    "teach": ("taught",),
    "build": ("built",),
    "die": ("died",),
    "birth": ("born",),
    "free": ("available",),
    "busy": ("available",),
    "christmas": ("december",),
}  # what a word is also found by; an irregular form, or what documents call it
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
    """Return the words a question is about, in its order, synonyms put in, at most MAX_STEMS."""
    found: dict[str, None] = {}
    stop = STOP_EN | GENERIC | (STOP_DE if is_german(question) else frozenset())
    for word in words(question[:MAX_QUESTION_CHARS]):
        if word in stop or (len(word) < 3 and not word.isdigit()):
            continue
        found.update(dict.fromkeys(SYNONYMS.get(word, (word,))))
    return tuple(found)[:MAX_STEMS]


def forms(word: str) -> tuple[str, ...]:
    """Return the stems that a word is found by, its own first."""
    return tuple(dict.fromkeys(stem(form) for form in (word, *FORMS.get(word, ()))))


def phrases(question: str) -> tuple[tuple[str, str], ...]:
    """Return the pairs of words that belong together as they stand, in lower case.

    A noun with a label ("Note G", "letter 7"), or two names in a row ("Difference Engine").
    """
    spoken = _WORD.findall(question[:MAX_QUESTION_CHARS].replace("\u2019", "'"))
    found: dict[tuple[str, str], None] = {}
    for number, (first, second) in enumerate(pairwise(spoken)):
        one, two = (word.partition("'")[0] for word in (first, second))
        is_noun = len(one) > 2 and one.lower() not in STOP_EN | STOP_DE
        is_label = two.isdigit() or (len(two) == 1 and (two.lower() not in "ai" or two == "A"))
        are_names = number > 0 and one[:1].isupper() and two[:1].isupper() and len(two) > 2
        if is_noun and (is_label or are_names):
            found[one.lower(), two.lower()] = None
    return tuple(found)


def points_back(question: str) -> bool:
    """Whether a question stands for more than its own words: "And when did she meet him?"."""
    spoken = words(question[:MAX_QUESTION_CHARS])
    return spoken[:1] in (["and"], ["und"]) or bool(POINTING & set(spoken))


def asks_back(question: str) -> str:
    """Say which earlier question is asked for, "first" or "last"; "" for a question of any other kind."""
    spoken = words(question[:MAX_QUESTION_CHARS])
    asks = {"ask", "asked", "say", "said", "gefragt", "gesagt"} & set(spoken)
    if not asks or not {"i", "ich"} & set(spoken) or spoken[0] not in {"what", "which", "was", "welche"}:
        return ""
    return "first" if {"first", "zuerst", "erste", "erstes"} & set(spoken) else "last"


def is_german(question: str) -> bool:
    """Whether a question reads more like German than like English or another language known here."""
    spoken = words(question[:MAX_QUESTION_CHARS])
    german = [word for word in spoken if word in STOP_DE or (word in SYNONYMS and not word.isascii())]
    return reads_german(spoken, german, STOP_EN)


def asks_who(question: str) -> bool:
    """Whether a question asks for a person, so that a biography is a good place to look."""
    return words(question[:MAX_QUESTION_CHARS])[:1] in (["who"], ["wer"])


def is_greeting(question: str) -> bool:
    """Whether a question only says hello."""
    spoken = words(question[:MAX_QUESTION_CHARS])
    return bool(spoken) and set(spoken) <= GREETINGS and bool(set(spoken) & HELLO)
