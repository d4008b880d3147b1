"""Turn path 4/13: agent + transcript + message -> TurnPlan. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """All that the spawner is told about a turn. Everything else comes from its own disk.

    `context` and `visitor` are HMACs and match ^[A-Za-z0-9._-]{1,64}$; `prompt` is text of at most 256 KiB in UTF-8.
    """

    agent: str
    context: str
    visitor: str
    prompt: str
    timeout_seconds: float
