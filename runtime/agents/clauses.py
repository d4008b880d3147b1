"""Says whether a place in a text claims something or denies it: "You cannot book a time" promises no booking.

A matter of words and not of grammar. Denied is what a word of denial comes before in the same clause, what is
said to be switched off, and what stands under a heading or in a list that denies. A comma ends the reach of a
denial, unless a list goes on behind it; so does a clause that begins with `if` or `when`: it says only when
the rest holds. The words are those of the languages in `_WORDS`; who writes in another is not understood, so
nothing that is found in this way may keep an instance from starting.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# English; German, French, Spanish, Portuguese, Italian, Dutch, Polish, Russian, Arabic.
_WORDS = (
    (
        r"no|not|never|nothing|nobody|none|neither|nor|cannot|without|instead of|rather than|avoid(?:s|ing)?"
        r"|refus(?:e|es|ing)|declin(?:e|es|ing)|ignor(?:e|es|ing)|reject(?:s|ing)?|forbid(?:s|den)?|lacks?"
        r"|unavailable|disabled|prohibited"
    ),
    r"nicht|nie|niemals|kein(?:e|en|em|er|es)?|ohne|weder",
    r"ne|pas|jamais|aucune?|sans|ni",
    r"nunca|jam[aá]s|sin|ning[uú]n[ao]?|tampoco",
    r"n[aã]o|jamais|sem|nem|nenhum[a]?",
    r"non|mai|senza|n[eé]|nessun[ao]?",
    r"niet|nooit|geen|zonder|noch",
    r"nie|nigdy|bez|żaden|żadnych",
    r"не|нет|никогда|нельзя|без|ни",
    r"لا|لن|لم|ليس|ليست|بدون|ممنوع|تجنب",
)
# Chinese, Japanese and Korean have no blanks between words, and the last two deny at the end.
_SIGNS = "不|勿|别|別|没有|沒有|禁止|なし|ない|ません|않|마세요|말고|없"
_DENIAL = re.compile(rf"(?i)(?<![\w-])(?:{'|'.join(_WORDS)})(?!\w)|n['\u2019]t\b|\bn['\u2019](?=\w)")
_SIGN = re.compile(_SIGNS)
_SAID_OF_IT = re.compile(
    r"(?i)\b(?:is|are|was|were|do|does|can|could|will|would|must|may|should|has|have)"
    r"(?: \w+)? (?:not|never)\b|n['\u2019]t\b|\b(?:cannot|no longer|unavailable|(?:switched|turned|taken) off"
    r"|off limits|out of reach|disabled|forbidden|prohibited|missing|refused|declined|ignored)\b"
)
_SAID_ENDS = re.compile(
    r"(?i),|\b(?:if|when|where|unless|until|because|since|that|which|who|what|for|to|so)\b"
)
_CONDITION = re.compile(
    r"(?i)\W*(?:(?:and|or|but|only|even|also|then)\s+)?(?:if|when|whenever|where|wherever|should|unless|once"
    r"|while|as (?:long|soon) as|in case|wenn|falls|sobald|wo|si|quand|lorsque|cuando|se|quando|als|wanneer"
    r"|jeśli|gdy|если|когда|إذا|عندما)\b"
)
_END = re.compile(r"[.;!?](?=\s|$)|[\u3002\uff01\uff1f\uff1b؟؛]|\n[ \t]*(?=[-*#\n]|[0-9]+\.)|\bbut\b")
_PART = re.compile(
    r"[,\uff0c\u3001،]|\s[-\u2013\u2014]{1,2}\s|:(?=\s+(?:use|call|run|try|ask)\b)"
    r"|\s(?=(?:if|when|whenever|where|unless|wenn|falls|cuando|quand|lorsque|quando)\s)"
)
_AND = r"\b(?:and|or|nor|und|oder|noch|et|ou|ni|y|o|e|of|en|i|lub|ani|и|или)\b"
_LIGHT = rf"(?:\W|{_AND}|\b(?:the|an?|any|your)\b)*"
_ITEM = re.compile(rf"(?i){_LIGHT}\w*\W*(?:tools?)?\W*")
_GOES_ON = re.compile(rf"(?i)(?:{_LIGHT}\w+\W+(?:tools?\W+)?{_AND})?{_LIGHT}")
_LISTS = re.compile(r"(?i)\b(?:or|nor|oder|noch|ou|ni|o|nem|né|of|lub|ani|или)\b")
_SUBJECT = re.compile(r"(?i)\W*(?:and |then |so )*(?:it|i|you|we|they|he|she|this|the)\b")
_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_LEAD_IN = re.compile(r"^[^\n#*-][^\n]*:[ \t]*$", re.MULTILINE)
MAX_PLACES = 50  # looked at in one text: each costs up to milliseconds where a text was made to
_REACH = 2000  # characters on each side that can belong to the same sentence


@dataclass(frozen=True, slots=True)
class Clause:
    """What stands round a place: the parts of its sentence before it, the last one its own, and the rest."""

    parts: tuple[str, ...]
    rest: str

    @property
    def own(self) -> str:
        """The words of its own clause that come before it."""
        return self.parts[-1]


def clause_at(text: str, offset: int) -> Clause:
    """Return what stands round `offset`, as far as it belongs to the same sentence."""
    before = text[max(0, offset - _REACH) : offset]
    ends = list(_END.finditer(before))
    before = before[ends[-1].end() if ends else 0 :]
    after = text[offset : offset + _REACH]
    end = _END.search(after)
    return Clause(tuple(_PART.split(before)), after[: end.start()] if end else after)


def claims(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern` that stand in no clause, list or section of denial, of the first 50."""
    places = itertools.islice(pattern.finditer(text), MAX_PLACES)
    return (match for match in places if not is_denied(text, match.start()))


def is_denied(text: str, offset: int) -> bool:
    """Say whether what stands at `offset` is denied by the words round it."""
    clause = clause_at(text, offset)
    if _is_denied_in(clause):
        return True
    before = text[max(0, offset - _REACH) : offset]
    headings = list(_HEADING.finditer(before))
    if headings and _denies(headings[-1][0]):
        return True
    line = before.rpartition("\n")[2]
    if not re.match(r"[ \t]*(?:[-*]|[0-9]+\.) ", line):
        return False
    leads = [lead for lead in _LEAD_IN.finditer(before) if "\n\n#" not in before[lead.end() :]]
    return bool(leads) and _denies(leads[-1][0])


def _is_denied_in(clause: Clause) -> bool:
    if _CONDITION.match(clause.own):
        return _denies(clause.rest)
    if _denies(clause.own) or _SIGN.search(_PART.split(clause.rest)[0]):
        return True
    end = _SAID_ENDS.search(clause.rest)
    if _SAID_OF_IT.search(clause.rest[: end.start()] if end else clause.rest):
        return True
    own, listed = clause.own, _LISTS.search(f"{clause.own} {clause.rest}") is not None
    if not _GOES_ON.fullmatch(own) and (not listed or _SUBJECT.match(own)):
        return False
    for part in reversed(clause.parts[:-1]):
        if _CONDITION.match(part):
            return False
        if _denies(part):
            return True
        if not listed and not _ITEM.fullmatch(part):
            return False
    return False


def _denies(part: str) -> bool:
    words = part.lstrip("# \t")
    return not _CONDITION.match(words) and bool(_DENIAL.search(words) or _SIGN.search(words))
