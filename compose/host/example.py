# ruff: noqa: INP001  (no package: `up` sends this file to the ingress's Python, for a bare host has none)
"""Prints the first plain question of the agent's own card, to be pasted for ./gatehouse ask and for curl.

    python - <compose/host/example.py

Two lines: the question quoted for a shell, and a JSON-RPC body that may stand between single quotes. The
question is data: whatever an owner wrote there, pasting it runs nothing but the command that it is given to.
"""

from __future__ import annotations

import json
import shlex
import sys
import urllib.request
from typing import Any

CARD = "http://127.0.0.1:8011/.well-known/agent-card.json"
FALLBACK = "Who are you?"
# Special to some shell inside double quotes; `!` to an interactive one.
SPECIAL = frozenset('"$`\\!')
# No two shells agree on what these do between quotes (fish reads \' inside single ones): such a question is
# not for pasting.
QUOTES = frozenset("\\'\"`\u00b4\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f")


def question_of(card: Any) -> str:
    """Return the first example without a quote or backslash, on one line and without control characters."""
    skills = card.get("skills") if isinstance(card, dict) else None
    for skill in skills if isinstance(skills, list) else []:
        examples = skill.get("examples") if isinstance(skill, dict) else None
        for example in examples if isinstance(examples, list) else []:
            if isinstance(example, str):
                shown = "".join(one if one.isprintable() else " " for one in example)
                words = " ".join(shown.split())
                if words and not QUOTES & set(words):
                    return words
    return FALLBACK


def as_argument(question: str) -> str:
    """Return the question as one argument for a POSIX shell; in double quotes where that is safe."""
    quoted = shlex.quote(question) if SPECIAL & set(question) else f'"{question}"'
    return f"-- {quoted}" if question.startswith("-") else quoted


def as_body(question: str) -> str:
    """Return the body of a `message/send` that asks it, as JSON without a single quote."""
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {
            "message": {
                "kind": "message",
                "messageId": "m1",
                "role": "user",
                "parts": [{"kind": "text", "text": question}],
            }
        },
    }
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).replace("'", "\\u0027")


def main() -> None:
    """Ask for the card and print the two lines."""
    with urllib.request.urlopen(CARD, timeout=5) as reply:
        question = question_of(json.load(reply))
    sys.stdout.buffer.write(f"{as_argument(question)}\n{as_body(question)}\n".encode())


if __name__ == "__main__":
    main()
