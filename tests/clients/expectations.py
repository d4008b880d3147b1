"""What every client sees of the fixed course, in one table, and where a client differs, with the reason.

A client program prints one JSON object for each step. `compared` leaves of it what the table speaks of.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Final

SENTENCE: Final = "The office is open on Tuesdays and Thursdays from two until four. "
GROWN: Final = SENTENCE * 8
TEXT: Final = "grüße 🦉 مرحبا"
ANSWERED: Final = {"state": "completed", "answer": f"echo: {TEXT}", "notice": True}
STATES: Final = ["submitted", "working", "completed"]

EXPECTED: Final[dict[str, dict[str, Any]]] = {
    "card": {"name": "Ada Lovelace", "skills": ["hours"], "streams": True},
    "send": ANSWERED,
    "again": {"state": "completed", "answer": f"before: {TEXT}", "notice": False},
    "get": ANSWERED,
    "stream": {"states": STATES, "grows": True, "answer": GROWN.strip(), "notice": True},
    "quiet": {"states": STATES, "answer": SENTENCE.strip(), "notice": True},
    "cancel": {"state": "canceled"},
    "cancelled": {"states": ["submitted", "working", "canceled"]},
    "unknown task": {"code": -32001, "error": "TaskNotFoundError"},
    "unknown task, streamed": {"code": -32001, "error": "TaskNotFoundError"},
    "ended task": {"code": -32002, "error": "TaskNotCancelableError"},
    "picture": {"code": -32005, "error": "ContentTypeNotSupportedError"},
    "version": {"code": -32009, "error": "VersionNotSupportedError"},
}

ONE_CLASS: Final = "A2AClientJSONRPCError"
DIFFERENCES: Final[dict[tuple[str, str], tuple[dict[str, Any] | None, str]]] = {
    **{
        ("python-0.3", step): (
            seen | {"error": ONE_CLASS},
            "the SDK has one class for every error of a server",
        )
        for step, seen in EXPECTED.items()
        if "error" in seen
    },
    ("js-0.3", "unknown task, streamed"): (
        {"code": -32001, "error": "Error"},
        "in a stream the SDK puts code and sentence into the text of an Error",
    ),
    ("js-0.3", "version"): (
        {"code": -32009, "error": "Error"},
        "the dialect 0.3 has no version error, and so no class for it",
    ),
    ("js-1.3", "version"): (None, "the SDK writes A2A-Version itself, over what its caller gives"),
}

CLIENTS: Final = ("python-1.3", "python-0.3", "js-1.3", "js-0.3")


def expected(client: str, step: str) -> dict[str, Any] | None:
    """Return what the client sees at the step, None where it does not take it."""
    return DIFFERENCES.get((client, step), (EXPECTED[step], ""))[0]


def compared(step: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a record that the table speaks of; `grows` sums up a stream's texts."""
    texts = record.get("texts", [])
    grows = len(texts) >= 3 and all(new.startswith(old) and new != old for old, new in pairwise(texts))
    facts = record | {"grows": grows}
    return {name: facts.get(name) for name in EXPECTED[step]}
