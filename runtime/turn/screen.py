"""Turn path 12/13: pure: what may leave. Text of the model's in, text for the visitor out.

It takes out what could act on a reader's terminal, hide from a reader's eyes, or be somebody's key. It is a
tripwire and not the control: there is no key in a turn to be found (architecture §2), and whoever means to
encode one can. What it finds is counted in the receipt, so that an operator learns that something tried.

Streaming: `screen_partial` holds back the end of a growing text, so that no snapshot shows what the final
text withholds.
"""

from __future__ import annotations

import re
import string
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

WITHHELD = "[withheld]"
LINE_MAX_CHARS = 4000
HELD_BACK_CHARS = 64
CANARY = re.compile(r"[A-Za-z0-9-]{12,200}")

_ANSI = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"  # CSI: colours, cursor
    r"|\x1b[\]P^_X][^\x07\x1b\x9c]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC and its like: titles, clipboards
    r"|\x1b[ -/]{0,8}[0-~]"  # two-character escapes
)
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control, save tab and newline
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"  # soft hyphen, fillers, Mongolian selectors
    "\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb"  # zero width, bidirectional
    "\ud800-\udfff\ufffe\uffff\ufe00-\ufe0d"  # lone surrogates, no characters, variation selectors
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"  # format, tags
    # One selector may choose the look of a sign; a run of them, or one behind a letter, is a code.
    "|(?<![0-9#*\u00a9\u00ae\u203c-\u32ff\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)
# Joiners are letters' business in Persian, Indic scripts and emoji: one of a run stays between two
# non-ASCII characters.
_JOINERS = re.compile(
    "(?P<before>[^\x00-\x7f\u200c\u200d])?[\u200c\u200d]+(?=(?P<after>[^\x00-\x7f\u200c\u200d])?)"
)

_KEYS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "private-key",
        re.compile(
            r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
            r"[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----|\Z)"
        ),
    ),
    ("anthropic-key", re.compile(r"sk-ant-[A-Za-z0-9_-]{4,}")),
    ("api-key", re.compile(r"(?<![A-Za-z0-9_-])sk-(?=[A-Za-z_-]{0,200}[0-9])[A-Za-z0-9_-]{20,}")),
    ("aws-key", re.compile(r"(?:AKIA|ASIA)[A-Z0-9]{16}")),
    ("github-token", re.compile(r"(?:gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,})")),
    ("slack-token", re.compile(r"xox[abeprs]-[A-Za-z0-9-]{10,}")),
    ("google-key", re.compile(r"AIza[A-Za-z0-9_-]{35}")),
    ("jwt", re.compile(r"(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}")),
    ("bearer-token", re.compile(r"[Bb]earer[ \t]{1,8}[A-Za-z0-9._~+/-]{20,}={0,2}")),
)
_DRAWN_EMPTY = "\u2800\u3164\uffa0"
_TOKEN = string.ascii_letters + string.digits + "._~+/=-"
_HARD_WINDOW = 200  # how far before the limit a space is looked for to break a line at


@dataclass(frozen=True, slots=True)
class Finding:
    """What was taken out, as a fixed word, and how often: `hidden`, `canary`, `anthropic-key` and so on."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True)
class Screened:
    """Text that may leave, and what had to be taken out of it."""

    text: str
    decisions: tuple[Finding, ...] = ()


def screen(untrusted_text: str, canaries: Sequence[str] = ()) -> Screened:
    """Return what may leave of a whole text.

    `canaries` are planted strings (12 to 200 letters, digits and dashes) that must never appear. The result
    is a fixed point: screening it again changes nothing. Raises ValueError for a canary of another shape.
    """
    counts: dict[str, int] = {}
    rules = (*_canary_rules(canaries), *_KEYS)
    text = untrusted_text.replace("\r\n", "\n").replace("\r", "\n")
    while True:
        before = text
        text = _strip(text, counts)
        for reason, pattern in rules:
            text, found = pattern.subn(WITHHELD, text)
            _count(counts, reason, found)
        text = "\n".join(_broken(line) for line in text.split("\n"))
        if text == before:
            return Screened(text, tuple(Finding(reason, count) for reason, count in counts.items()))


def is_blank(text: str) -> bool:
    """Return whether a reader sees nothing of a text: only spaces, marks and signs that are drawn empty."""
    return not any(unicodedata.category(c)[0] in "LNPS" and c not in _DRAWN_EMPTY for c in text)


def screen_partial(untrusted_text: str, canaries: Sequence[str] = ()) -> str:
    """Return what may be shown of a text that still grows: a beginning of what `screen` will return.

    Held back are the last 64 characters (more for a longer canary) and the word that they begin in.
    """
    text = screen(untrusted_text, canaries).text
    held = max([HELD_BACK_CHARS, *(len(canary) for canary in canaries)])
    text = text[: max(0, len(text) - held)]
    last = text.rfind("\n") + 1
    text = text[: last + LINE_MAX_CHARS - _HARD_WINDOW]  # where this line will be broken is not known yet
    return text.rstrip(_TOKEN)


def screen_line(untrusted_text: str, canaries: Sequence[str] = (), *, max_chars: int = 120) -> str:
    """Return a label that may leave: one line of at most `max_chars` characters."""
    line = " ".join(screen(untrusted_text, canaries).text.split())
    return line if len(line) <= max_chars else line[: max_chars - 1] + "…"


def _canary_rules(canaries: Sequence[str]) -> list[tuple[str, re.Pattern[str]]]:
    for canary in canaries:
        if not CANARY.fullmatch(canary):
            raise ValueError("a canary is 12 to 200 letters, digits and dashes")
    return [("canary", re.compile(re.escape(canary), re.IGNORECASE)) for canary in canaries]


def _strip(text: str, counts: dict[str, int]) -> str:
    for reason, pattern in (("ansi", _ANSI), ("hidden", _HIDDEN)):
        text, found = pattern.subn("", text)
        _count(counts, reason, found)
    return _JOINERS.sub(_joiner, text)


def _joiner(match: re.Match[str]) -> str:
    before, after = match.group("before") or "", match.group("after")
    return before + (match.group()[len(before)] if before and after else "")


def _count(counts: dict[str, int], reason: str, found: int) -> None:
    if found:
        counts[reason] = counts.get(reason, 0) + found


def _broken(line: str) -> str:
    """Break a line that is longer than a reader or a log should meet, at a space where one is near."""
    pieces: list[str] = []
    while len(line) > LINE_MAX_CHARS:
        at = line.rfind(" ", LINE_MAX_CHARS - _HARD_WINDOW, LINE_MAX_CHARS)
        cut = LINE_MAX_CHARS if at < 0 else at + 1
        pieces.append(line[:cut])
        line = line[cut:]
    return "\n".join((*pieces, line))
