"""What the proxy decided about a request: one value that log, metric and test read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a request may go on, why (fixed words, no visitor text), and the control that said so."""

    allow: bool
    reason: str = "allowed"
    control: str = ""


ALLOWED = Decision(allow=True)
