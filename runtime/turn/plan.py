r"""Turn path 4/13: agent + transcript + message -> TurnPlan. Pure.

The prompt is one JSON object a line (docs/reference/protocols.md, "The front's prompt"), because a
transcript of `Visitor: …` lines can be forged by a visitor who writes one. Inside a JSON string there is no
line break, and no character that closes a tag, turns the reading direction or hides text: those are written
as `\uXXXX`.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.agents.definition import AgentDefinition

PROMPT_MAX_BYTES = 256 * 1024

# Markup (<, >, &), control characters beyond what JSON itself escapes, line and paragraph separators,
# bidirectional controls, tag characters, and lone surrogates (which UTF-8 cannot carry).
_ESCAPED = re.compile(
    "[<>&\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\U000e0000-\U000e007f]"
)


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """All that the spawner is told about a turn. Everything else comes from its own disk.

    `definition` is the digest of the definition that the turn began with: the spawner runs that one or none.
    `context` and `visitor` are HMACs and match ^[A-Za-z0-9._-]{1,64}$; `prompt` is text of at most 256 KiB
    in UTF-8.
    """

    agent: str
    definition: str
    context: str
    visitor: str
    prompt: str
    timeout_seconds: float


@dataclass(frozen=True, slots=True)
class Exchange:
    """One remembered turn: what the visitor asked and what the agent answered."""

    visitor: str
    agent: str


def plan_turn(
    agent: AgentDefinition,
    transcript: Sequence[Exchange],
    message: str,
    context: str,
    visitor: str,
    *,
    definition: str | None = None,
    timeout_seconds: float | None = None,
) -> TurnPlan:
    """Return what to ask the spawner for.

    `transcript` is oldest first; its oldest exchanges are left out as far as the prompt would pass 256 KiB.
    `message` must fit by itself (`fits` says so; `front/admit.py` asks). `definition` is the digest as it was
    loaded, where this process gave the agent an address of its own; `timeout_seconds` is what is left of the
    agent's own.
    """
    return TurnPlan(
        agent=agent.id,
        definition=agent.digest if definition is None else definition,
        context=context,
        visitor=visitor,
        prompt=render_prompt(transcript, message),
        timeout_seconds=agent.limits.timeout_seconds if timeout_seconds is None else timeout_seconds,
    )


def render_prompt(transcript: Sequence[Exchange], message: str) -> str:
    """Return the prompt: as many of the latest exchanges as fit, then the message, one JSON object a line."""
    lines = [_line("visitor", message, now=True)]
    room = PROMPT_MAX_BYTES - len(lines[0].encode())
    for exchange in reversed(transcript):
        pair = [_line("visitor", exchange.visitor), _line("agent", exchange.agent)]
        room -= sum(len(line.encode()) + 1 for line in pair)
        if room < 0:
            break
        lines[:0] = pair
    return "\n".join(lines)


def fits(message: str) -> bool:
    """Say whether a message, escaped, leaves the prompt within 256 KiB."""
    return len(_line("visitor", message, now=True).encode()) <= PROMPT_MAX_BYTES


def _line(speaker: str, text: str, *, now: bool = False) -> str:
    value: dict[str, str | bool] = {"from": speaker, "text": text}
    if now:
        value["now"] = True
    return _ESCAPED.sub(_escape, json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def _escape(match: re.Match[str]) -> str:
    units = match.group().encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
