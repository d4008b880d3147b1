"""What a program in a container, or the docker client, has said: text from elsewhere, taken to one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from runtime.cli.output import printable
from runtime.errors import EngineUnavailable

SAID_MAX_CHARS: Final = 400
OUTDATED: Final = "its image is older than this checkout"


@dataclass(frozen=True, slots=True)
class Said:
    """What a program inside a container said: its exit code, its stdout, and the last line of its stderr."""

    code: int
    untrusted_text: str
    untrusted_complaint: str = ""

    @property
    def outdated(self) -> bool:
        """Whether the program in the container is older than this checkout and does not know the question."""
        return "usage: python -m runtime.health" in self.untrusted_complaint

    def json(self) -> dict[str, Any]:
        """Return the JSON object that it printed, or an empty one."""
        try:
            value = json.loads(self.untrusted_text)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def reason(self) -> str:
        """Say in one line why it did not do what it was asked."""
        body = self.json()
        for key in ("reason", "detail", "error"):
            if isinstance(body.get(key), str) and body[key]:
                return line_of(body[key])
        return line_of(self.untrusted_complaint or self.untrusted_text) or f"exit code {self.code}"


def is_engine_gone(untrusted_complaint: str) -> bool:
    """Say whether the docker client speaks of the engine and not of what it was asked."""
    words = untrusted_complaint.lower()
    return any(
        part in words
        for part in (
            "cannot connect to the docker daemon",
            "permission denied while trying to connect",
            "error during connect",
            "failed to connect to the docker api",
        )
    )


def unavailable(said: Said) -> EngineUnavailable:
    """Return the error of an engine that did not answer."""
    complaint = line_of(said.untrusted_complaint) or f"docker ended with {said.code}"
    mend = (
        "use sudo, or join the group docker" if "permission denied" in complaint.lower() else "./gatehouse up"
    )
    return EngineUnavailable(f"the engine does not answer: {complaint}", mend)


def line_of(untrusted_text: str, most: int = SAID_MAX_CHARS) -> str:
    """Return a text as one printable line of at most `most` characters, without the full stop at its end."""
    line = " ".join(printable(untrusted_text[: most * 4]).split()).rstrip(".")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def last_line(untrusted_text: str) -> str:
    """Return the last line that says anything."""
    lines = untrusted_text.split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")
