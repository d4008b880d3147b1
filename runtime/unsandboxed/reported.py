"""What the CLI itself says that a turn used, for turns whose model we do not stand before. Pure.

In the stack the model's door counts, because nothing inside a turn is believed. Here the CLI talks to the
model directly, so its own events are all there is: good enough for a person who tries something out.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from runtime.turn.events import Usage
from runtime.turn.stream import LINE_MAX_BYTES

MAX_COUNT: Final = 10**12
TELLING: Final = (b"message_start", b"result")  # a line without one of these says nothing of use
INPUT: Final = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


@dataclass(slots=True)
class Reported:
    """Reads the lines of one turn; `usage` is what they said so far. What nobody says stays zero."""

    usage: Usage = field(default_factory=Usage)
    answers: int = 0

    def feed(self, untrusted_line: bytes) -> None:
        """Take one line of the CLI's output; none raises."""
        if len(untrusted_line) > LINE_MAX_BYTES or not any(word in untrusted_line for word in TELLING):
            return
        try:
            event = json.loads(untrusted_line)
        except (ValueError, RecursionError):
            return
        if not isinstance(event, dict):
            return
        inner, usage = event.get("event"), event.get("usage")
        if isinstance(inner, dict) and inner.get("type") == "message_start":
            self.answers += 1  # of the model: `num_turns` in a result counts something else (seen)
        if event.get("type") == "result" and isinstance(usage, dict):
            self.usage = Usage(
                requests=self.answers,
                input_tokens=sum(_count(usage, name) for name in INPUT),
                output_tokens=_count(usage, "output_tokens"),
            )


def _count(values: dict[str, Any], name: str) -> int:
    found = values.get(name)
    if not isinstance(found, int) or isinstance(found, bool):
        return 0
    return max(0, min(found, MAX_COUNT))
