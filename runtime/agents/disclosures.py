"""Finds secrets in what visitors can get to read: keys, tokens, credentials in addresses. Repeats none.

Everything an instance names is public: documents, prompt, tools, settings. A key in there is published with
the first question, and no boundary of a turn is about it. So what has the unmistakable form of a secret keeps
an instance from starting, and what only looks like one (`password: ...`) is a warning.

The forms are those that the issuers document for secret scanning. A table of our own, because the library
for it pulls an HTTP client into services that have no network (docs/explanation/dependencies.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.agents.places import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_SPANS = 100  # of one text; whoever has that many is helped by no more of them
MEND = "take it out, and change it where it is used: whatever stands here is published"
NAME_MEND = "take the file out of what visitors can read"

# Every repeat that something has to follow is bounded, so that hostile text costs linear time.
# What it is, a piece of text without which it cannot be there (so that most texts are read once), its form.
_FORMS: tuple[tuple[str, str, str], ...] = (
    (
        "a private key",
        "PRIVATE KEY",
        (
            r"-----BEGIN (?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
            r"(?:[\s\S]*?-----END [A-Z0-9 ]{0,60}-----|[\s\S]*)"
        ),  # its body is masked too
    ),
    ("a PuTTY private key", "PuTTY-User-Key-File-", r"PuTTY-User-Key-File-[0-9]"),
    ("an age private key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("a model API key", "sk-", r"\bsk-(?=[A-Za-z_-]{0,80}[0-9])[A-Za-z0-9_-]{20,}"),
    ("an AWS access key", "AKIA", r"\bAKIA[0-9A-Z]{16}\b"),
    ("an AWS access key", "ASIA", r"\bASIA[0-9A-Z]{16}\b"),
    ("a GitHub token", "gh", r"\bgh[pousr]_[A-Za-z0-9]{30,}"),
    ("a GitHub token", "github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
    ("a GitLab token", "glpat-", r"\bglpat-[A-Za-z0-9_-]{20,}"),
    ("a Slack token", "xox", r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("a Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/services/[A-Za-z0-9/]{20,}"),
    ("a Google API key", "AIza", r"\bAIza[0-9A-Za-z_-]{30,}"),
    ("a Google client secret", "GOCSPX-", r"\bGOCSPX-[0-9A-Za-z_-]{20,}"),
    ("a Stripe key", "k_live_", r"\b[rs]k_live_[0-9A-Za-z]{16,}"),
    ("a Stripe key", "k_test_", r"\b[rs]k_test_[0-9A-Za-z]{16,}"),
    ("an npm token", "npm_", r"\bnpm_[A-Za-z0-9]{30,}"),
    ("a PyPI token", "pypi-", r"\bpypi-[A-Za-z0-9_-]{50,}"),
    ("a Hugging Face token", "hf_", r"\bhf_[A-Za-z0-9]{30,}"),
    ("a SendGrid key", "SG.", r"\bSG\.[A-Za-z0-9_-]{20,100}\.[A-Za-z0-9_-]{20,}"),
    ("a Telegram bot token", ":AA", r"\b[0-9]{8,10}:AA[A-Za-z0-9_-]{30,}"),
    ("a DigitalOcean token", "dop_v1_", r"\bdop_v1_[a-f0-9]{40,}"),
    ("an Azure account key", "AccountKey=", r"AccountKey=[A-Za-z0-9+/=]{40,}"),
    ("a tunnel token", "eyJhIjoi", r"\beyJhIjoi[A-Za-z0-9+/=_-]{60,}"),
    ("a signed token (JWT)", "eyJ", r"\beyJ[\w-]{8,300}\.eyJ[\w-]{8,4999}\.[\w-]{10,}"),
    ("a Bearer token", "Bearer ", r"\bBearer [A-Za-z0-9._~+/-]{32,}"),
)
_STRONG = tuple((kind, hint, re.compile(form)) for kind, hint, form in _FORMS)
_ADDRESS = re.compile(r"://[^\s/:@'\"<>`]{0,100}:([^\s/@'\"<>`]{1,200})@[A-Za-z0-9\[]")
_BLANK = r"[ \t\u00a0\u202f]{0,4}"  # French writes a no-break one before a colon
_WEAK_WORDS = (
    "password|passwd|passphrase|pwd|secret|token|api[ _-]?key|access[ _-]?key|passwort|kennwort|contrase[nñ]a"
    "|senha|mot de passe|wachtwoord|has[lł]o|пароль|密码|パスワード|(?<!palabra )(?<!palabras )clave"
)
_WEAK = re.compile(
    rf"(?i)(?<![^\W\d_])({_WEAK_WORDS})[\"'`*]{{0,3}}{_BLANK}[:=\uff1a]{_BLANK}[\"'`*«]{{0,3}}{_BLANK}"
    rf"([^\s\"'`*,;]{{4,200}})({_BLANK}[\"'`*.,;»]{{0,3}}{_BLANK}$)?",
    re.MULTILINE,
)
_WEAK_HINTS = (
    *("pass", "pwd", "secret", "token", "key", "kennwort", "contrase", "senha", "clave", "wachtwoord"),
    *("haslo", "hasło", "пароль", "密码", "パスワード"),
)
_WORD_OF_PROSE = "clave"  # and "key", "clef": a password only with a digit
_EXAMPLE = re.compile(
    r"(?i)^(?:pass(?:word|wd)?|pwd|secret|token|key|changeme|example|redacted|x+|\*+|\.+|…|\$.*|<.*|\{.*|%.*"
    r"|your[_-].*|\[.*|none|null|true|false)$"
)

_NAMES = re.compile(
    r"(?i)(?:id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.*\.(?:p12|pfx|kdbx?|jks|keystore|ppk|ovpn|key)"
    r"|.*[._-]private\.pem|(?:[^/]*service[_-]?account|credentials|client_secret)[^/]*\.json|htpasswd|shadow|netrc"
    r"|secring\.gpg|wallet\.dat|logins\.json|key[34]\.db)"
)


@dataclass(frozen=True, slots=True)
class Secret:
    """One place that holds, or may hold, a secret. `kind` is ours; nothing of the text is kept."""

    line: int
    col: int
    kind: str
    certain: bool


def secrets(text: str) -> Iterator[Secret]:
    """Yield what looks like a secret, in no order of places; `certain` ones first."""
    lines: Lines | None = None
    for start, _, kind, certain in _spans(text):
        lines = lines or Lines(text)
        line, col = lines.place(start)
        yield Secret(line, col, kind, certain)


def masked(text: str) -> str:
    """Return a text that a message is to repeat, with each certain secret replaced by an ellipsis."""
    for start, end, _, certain in sorted(_spans(text), reverse=True):
        if certain:
            text = text[:start] + "…" + text[end:]
    return text


def is_secret_name(name: str) -> bool:
    """Say whether a file of this base name holds a key or a password store by its convention."""
    return _NAMES.fullmatch(name) is not None


def _spans(text: str) -> Iterator[tuple[int, int, str, bool]]:
    """Yield (start, end, kind, certain) of at most MAX_SPANS places that do not overlap."""
    taken: list[tuple[int, int]] = []
    for match, kind, certain in _matches(text):
        start, end = match.span()
        if any(other < end and start < other_end for other, other_end in taken):
            continue
        taken.append((start, end))
        yield start, end, kind, certain
        if len(taken) >= MAX_SPANS:
            return


def _matches(text: str) -> Iterator[tuple[re.Match[str], str, bool]]:
    for kind, hint, form in _STRONG:
        if hint in text:
            yield from ((match, kind, True) for match in form.finditer(text))
    if "://" in text:
        for match in _ADDRESS.finditer(text):
            yield match, "a password in an address", _EXAMPLE.match(match[1]) is None
    lowered = text.lower()
    if any(hint in lowered for hint in _WEAK_HINTS):
        for match in _WEAK.finditer(text):
            alone = match[3] is not None and match[1].lower() != _WORD_OF_PROSE
            if (alone or re.search(r"[0-9]", match[2])) and not _EXAMPLE.match(match[2]):
                yield match, "a password or key", False
