"""Quotes an owner's text in a message: short, printable, on one line, without a secret that it may hold."""

from __future__ import annotations

from runtime.agents.disclosures import masked

MAX_CHARACTERS = 60
_LOOKED_AT = 4096  # a longer text is cut before it is looked at; what is shown is far shorter


def shown(text: str) -> str:
    """Return at most 60 printable characters of `text`; secrets are masked before it is cut."""
    whole = masked(text[:_LOOKED_AT])
    clean = "".join(char if char.isprintable() else "?" for char in whole)
    return clean if len(clean) <= MAX_CHARACTERS else clean[: MAX_CHARACTERS - 3] + "..."
