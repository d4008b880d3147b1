"""Turn path 2/13: pure: message + limits + load -> Decision(allow, reason, control).

What is refused here costs no container and no model request, and is never remembered.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from runtime.turn.plan import fits

if TYPE_CHECKING:
    from runtime.agents.definition import Limits

WAITING_MAX: Final = 4  # turns of one context that may wait for the one that runs
RETRY_MAX_SECONDS: Final = 60
FIRST_GUESS_SECONDS: Final = 10.0  # a turn's length, before any has ended
RECENT_TURNS: Final = 16


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
    """How busy the front is; `waiting` counts the turns that wait in the message's own context.

    `crowded` says that no further event stream may be held open, where the message asks for one.
    """

    running: int = 0
    waiting: int = 0
    stopping: bool = False
    crowded: bool = False


def admit_message(
    untrusted_text: str, limits: Limits, load: Load, *, waiting_max: int = WAITING_MAX
) -> Decision:
    """Decide on a trimmed message before it waits for its context.

    A message of exactly `max_input_chars` characters passes (seed S1 §4).
    """
    if not untrusted_text.strip():
        return Decision(allow=False, reason=Reason.EMPTY, control="IN-01")
    if len(untrusted_text) > limits.max_input_chars or not fits(untrusted_text):
        return Decision(allow=False, reason=Reason.TOO_LONG, control="IN-02")
    if load.stopping:
        return Decision(allow=False, reason=Reason.STOPPING, control="LOAD-03")
    if load.crowded:
        return Decision(allow=False, reason=Reason.BUSY, control="LOAD-01")
    if load.waiting >= waiting_max:
        return Decision(allow=False, reason=Reason.BUSY, control="LOAD-02")
    return Decision(allow=True, reason=Reason.ADMITTED, control="LOAD-02")


def admit_turn(limits: Limits, load: Load) -> Decision:
    """Decide on a message whose turn it is in its context: it runs now or is refused (S1 §3: no queue)."""
    if load.stopping:
        return Decision(allow=False, reason=Reason.STOPPING, control="LOAD-03")
    if load.running >= limits.max_concurrency:
        return Decision(allow=False, reason=Reason.BUSY, control="LOAD-01")
    return Decision(allow=True, reason=Reason.ADMITTED, control="LOAD-01")


class Pace:
    """Guesses when a place is free again, from how long the last turns held theirs."""

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=RECENT_TURNS)

    def held(self, seconds: float) -> None:
        """Count a turn that has given its place back."""
        self._seconds.append(seconds)

    def retry_seconds(self, places: int) -> int:
        """Return after how many whole seconds to ask again, 1 to RETRY_MAX_SECONDS, with that many places."""
        mean = sum(self._seconds) / len(self._seconds) if self._seconds else FIRST_GUESS_SECONDS
        return within(mean / max(1, places))


def within(seconds: float) -> int:
    """Return whole seconds for a client to wait: rounded up, 1 to RETRY_MAX_SECONDS."""
    return min(RETRY_MAX_SECONDS, max(1, math.ceil(seconds)))
