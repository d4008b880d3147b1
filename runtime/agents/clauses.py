"""Says whether a place in a text claims something or denies it: "You cannot book a time" promises no booking.

A matter of words and not of grammar: the clause round the place, its heading, and the line that leads a list
in are looked at for words of denial, in English. What it cannot decide counts as denied where an alarm would
be false more often than right.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_DENIAL = re.compile(
    r"(?i)\b(?:no|not|never|nothing|nobody|none|neither|nor|cannot|without|instead of|rather than)\b"
    r"|n['\u2019]t\b|^\W*how\b"
)
_END = re.compile(r"[.;!?](?=\s|$)|\n[ \t]*(?=[-*#\n]|[0-9]+\.)|\bbut\b")
_HEADING = re.compile(r"^#{1,6} .*$", re.MULTILINE)
_LEAD_IN = re.compile(r"^[^\n#*-][^\n]*:[ \t]*$", re.MULTILINE)
_REACH = 2000  # characters on each side that can belong to the same clause


def claims(pattern: re.Pattern[str], text: str) -> Iterator[re.Match[str]]:
    """Yield the matches of `pattern` that stand in no clause, list or section of denial."""
    return (match for match in pattern.finditer(text) if not is_denied(text, match.start()))


def is_denied(text: str, offset: int) -> bool:
    """Say whether what stands at `offset` is denied by the words round it."""
    before = text[max(0, offset - _REACH) : offset]
    ends = list(_END.finditer(before))
    start = ends[-1].end() if ends else 0
    after = text[offset : offset + _REACH]
    end = _END.search(after)
    clause = before[start:] + (after[: end.start()] if end else after)
    if _DENIAL.search(clause.strip()):
        return True
    headings = list(_HEADING.finditer(before))
    if headings and _DENIAL.search(headings[-1][0]):
        return True
    line = before.rpartition("\n")[2]
    if not re.match(r"[ \t]*(?:[-*]|[0-9]+\.) ", line):
        return False
    leads = [lead for lead in _LEAD_IN.finditer(before) if "\n\n#" not in before[lead.end() :]]
    return bool(leads) and _DENIAL.search(leads[-1][0]) is not None
