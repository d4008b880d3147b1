"""Turn path 2/13: pure: message + limits + load -> Decision(allow, reason, control).

What is refused here costs no container and no model request, and is never remembered.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from runtime.turn.plan import fits

if TYPE_CHECKING:
    from runtime.agents.definition import Limits

WAITING_MAX = 4  # turns of one context that may wait for the one that runs


class Reason(StrEnum):
    """Why a message is or is not admitted."""

    ADMITTED = "admitted"
    EMPTY = "empty"
    TOO_LONG = "too-long"
    BUSY = "busy"
    STOPPING = "stopping"


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether something may happen, why, and the id of the control that says so."""

    allow: bool
    reason: Reason
    control: str


@dataclass(frozen=True, slots=True)
class Load:
    """How busy the front is; `waiting` counts the turns that wait in the message's own context."""

    running: int = 0
    waiting: int = 0
    stopping: bool = False


def admit_message(untrusted_text: str, limits: Limits, load: Load) -> Decision:
    """Decide on a trimmed message before it waits for its context.

    A message of exactly `max_input_chars` characters passes (seed S1 §4).
    """
    if not untrusted_text.strip():
        return Decision(allow=False, reason=Reason.EMPTY, control="IN-01")
    if len(untrusted_text) > limits.max_input_chars or not fits(untrusted_text):
        return Decision(allow=False, reason=Reason.TOO_LONG, control="IN-02")
    if load.stopping:
        return Decision(allow=False, reason=Reason.STOPPING, control="LOAD-03")
    if load.waiting >= WAITING_MAX:
        return Decision(allow=False, reason=Reason.BUSY, control="LOAD-02")
    return Decision(allow=True, reason=Reason.ADMITTED, control="LOAD-02")


def admit_turn(limits: Limits, load: Load) -> Decision:
    """Decide on a message whose turn it is in its context: it runs now or is refused (S1 §3: no queue)."""
    if load.stopping:
        return Decision(allow=False, reason=Reason.STOPPING, control="LOAD-03")
    if load.running >= limits.max_concurrency:
        return Decision(allow=False, reason=Reason.BUSY, control="LOAD-01")
    return Decision(allow=True, reason=Reason.ADMITTED, control="LOAD-01")
