r"""The forms of texts in an agent file, as patterns that the loader and the editors' schema both apply.

Written in what Python's `re` and JavaScript's regular expressions understand alike, and always matched
against a whole text: no `\Z`, no named groups, no possessive repeats.
"""

from __future__ import annotations

ITEM_LENGTH = 500  # characters of one item in a list of texts

# Control characters, line separators, and what turns the direction of writing; tab and line feed are allowed.
CONTROL = r"[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]"

_PORT = r"(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}|6[0-4][0-9]{3}|65[0-4][0-9]{2}|655[0-2][0-9]|6553[0-5])"
ORIGIN = rf'https?://(?:[^\s\\<>"@/?#:\[\]]+|\[[0-9A-Fa-f:.]+\])(?::{_PORT})?'
URL = ORIGIN + r'(?:[/?#][^\s\\<>"]*)?'

# RFC 3986: what a security.txt may hold, which is ASCII with a percent sign for all else.
_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HOST = rf"(?:{_LABEL}(?:\.{_LABEL}){{0,20}}|\[[0-9A-Fa-f:.]+\])"
_PCHAR = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})"
HTTPS = rf"https://{_HOST}(?::{_PORT})?(?:/{_PCHAR}*)*(?:\?(?:{_PCHAR}|[/?])*)?(?:#(?:{_PCHAR}|[/?])*)?"
_MAILBOX = r"[A-Za-z0-9!$'*+_~-]+(?:\.[A-Za-z0-9!$'*+_~-]+)*"
CONTACT = rf"(?:mailto:{_MAILBOX}@{_LABEL}(?:\.{_LABEL}){{1,20}}|{HTTPS})"
"""How security.txt names a contact: a mailbox (RFC 6068) or a page. A bare address is none (RFC 9116)."""

INNER_PATTERN = r"(?!(?:[\s\S]*/)?\.{0,2}(?:/|$))[^\\\u0000]+"

SCRIPT_NAME = r"[a-z][a-z0-9_]{0,40}"
_SCRIPT = rf"Bash\(python3 \$\{{tools_dir\}}/{SCRIPT_NAME}\.py:\*\)"
_GRANT = rf"[ \t\r\n]*(?:Read|Glob|Grep|{_SCRIPT})[ \t\r\n]*"
_ONCE = "".join(rf"(?![\s\S]*{name}[\s\S]*{name})" for name in ("Read", "Glob", "Grep"))
_SCRIPTS_ONCE = r"(?![\s\S]*/([a-z][a-z0-9_]*)\.py[\s\S]*/\1\.py)"
_AT_MOST_32 = r"(?!(?:(?:[^B]|B(?!ash\())*Bash\(){33})"
GRANTS = rf"{_ONCE}{_SCRIPTS_ONCE}{_AT_MOST_32}{_GRANT}(?:,{_GRANT})*"
"""The grammar of `tool_grants.py` as one pattern: no grant twice, at most 32 scripts."""


def message(placeholders: tuple[str, ...]) -> str:
    """Return the form of a message: braces stand for the given placeholders only, `{n}` for one."""
    names = "|".join(placeholders)
    return rf"(?:[^{{}}]|\{{(?:{names})\}})*" if names else r"[^{}]*"
