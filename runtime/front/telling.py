"""What the visitor reads of one turn: steps, the growing text, and at the end one answer, failure or refusal.

The turn's receipt is filled in here too, from the same values, so that log and visitor are told one story.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a.types import TaskState

from runtime.front.admit import Decision, Reason
from runtime.front.updates import Ending, Updates
from runtime.turn import receipt as fields
from runtime.turn.events import Answer, Cause, Failed, Step
from runtime.turn.messages import failure_text
from runtime.turn.screen import is_blank, screen, screen_line, screen_partial
from runtime.turn.stream import GRANT_PREFIX, OTHER_TOOL

if TYPE_CHECKING:
    from runtime.agents.definition import AgentDefinition
    from runtime.turn.receipt import Receipt

SNAPSHOT_SECONDS: Final = 0.1
SNAPSHOTS_MAX: Final = (
    500  # with STEPS_MAX steps a turn stays below the SDK's 1024 events, past which it drops a slow reader
)
GROWTH_CHARS: Final = 48
GROWTH_PART: Final = (
    10  # a snapshot is at least a tenth longer: all together are a fixed multiple of the answer
)
# A text that begins anew is shown whole too, but a turn tells no more than a multiple of its longest text.
TOLD_PART: Final = 16
TOLD_CHARS: Final = 64 * 1024

ENDED_BY_US: Final = frozenset({Cause.CANCELLED, Cause.ABANDONED, Cause.STOPPING})
CANCELED: Final = frozenset({Cause.CANCELLED, Cause.ABANDONED})
TRY_AGAIN: Final = frozenset({Cause.BUSY, Cause.STOPPING})


@dataclass(slots=True)
class Telling:
    """Tells one turn to its visitor and to its receipt.

    `canaries` are strings that nothing told may hold. `pause_seconds` lie between two snapshots.
    `retry_seconds` is what a client is told to wait when the spawner is full or the front stops.
    """

    agent: AgentDefinition
    updates: Updates
    receipt: Receipt
    canaries: tuple[str, ...]
    pause_seconds: float
    retry_seconds: int = 0
    shown: str = ""
    shown_at: float = 0.0
    snapshots: int = 0
    untrusted_seen: str = ""
    longest_chars: int = 0
    told_chars: int = 0

    @property
    def finished(self) -> bool:
        """Whether the one text has been told."""
        return self.updates.finished

    async def working(self) -> None:
        """Say that the turn has begun."""
        await self.updates.working(self.agent.messages.working)

    async def step(self, event: Step) -> None:
        """Say which tool the model uses."""
        tools = {*self.agent.tools.builtin, *(GRANT_PREFIX + name for name in self.agent.tools.granted)}
        self.receipt.steps[event.tool if event.tool in tools else OTHER_TOOL] += 1
        await self.updates.working(screen_line(event.label, self.canaries) or self.agent.messages.working)

    async def show(self, untrusted_text: str, started: float) -> None:
        """Show the answer so far, if it is time, it has grown enough and not too much has been told already.

        Whether it has grown is asked before it is screened, which costs more than all else that is done here.
        """
        now = time.monotonic()
        if now - self.shown_at < self.pause_seconds or self.snapshots >= SNAPSHOTS_MAX:
            return
        if not has_grown(self.untrusted_seen, untrusted_text):
            return
        self.untrusted_seen = untrusted_text
        text = screen_partial(untrusted_text, self.canaries).strip()
        if not text or not has_grown(self.shown, text):
            return
        longest = max(self.longest_chars, len(text))
        if self.told_chars + len(text) > TOLD_PART * longest + TOLD_CHARS:
            return
        self.longest_chars, self.told_chars = longest, self.told_chars + len(text)
        self.shown, self.shown_at = text, now
        self.snapshots += 1
        if self.receipt.first_text_seconds is None:
            self.receipt.first_text_seconds = now - started
        await self.updates.snapshot(text)

    async def answer(self, event: Answer, *, first: bool) -> str:
        """Tell the model's answer and return it as told, "" when nothing of it could be.

        The `first` answer of a conversation is followed by the notice.
        """
        if self.finished:
            return ""
        screened = screen(event.text, self.canaries)
        text = screened.text.strip()
        self.receipt.screened = screened.decisions
        if is_blank(text):
            await self.fail(Failed(Cause.EMPTY, "nothing was left to show", event.usage))
            return ""
        self.receipt.outcome, self.receipt.cause, self.receipt.answer = fields.ANSWERED, "", text
        self.receipt.usage = event.usage
        await self.updates.finish(Ending(text, notice=self.agent.messages.notice if first else ""))
        return text

    async def fail(self, event: Failed) -> None:
        """Tell the configured message of a failure, unless something has been told already."""
        if self.finished:
            return
        text = failure_text(event.cause, self.agent.messages)
        self.receipt.outcome = fields.CANCELLED if event.cause in ENDED_BY_US else fields.FAILED
        self.receipt.cause, self.receipt.detail, self.receipt.answer, self.receipt.usage = (
            event.cause.value,
            event.detail,
            text,
            event.usage,
        )
        canceled = event.cause in CANCELED
        retry = self.retry_seconds if event.cause in TRY_AGAIN else 0
        await self.updates.finish(
            Ending(text, event.cause.value, retry_seconds=retry),
            TaskState.TASK_STATE_CANCELED if canceled else TaskState.TASK_STATE_COMPLETED,
        )

    async def refuse(self, decision: Decision, length: int) -> None:
        """Tell the configured message of a refusal; `length` is what the visitor sent, in characters."""
        text = refusal_text(decision.reason, self.agent, length)
        self.receipt.outcome, self.receipt.cause, self.receipt.detail = (
            fields.REFUSED_OUTCOME,
            decision.reason.value,
            decision.control,
        )
        self.receipt.answer = text
        empty = decision.reason is Reason.EMPTY
        retry = self.retry_seconds if decision.reason in {Reason.BUSY, Reason.STOPPING} else 0
        await self.updates.finish(
            Ending(text, decision.reason.value, retry_seconds=retry),
            TaskState.TASK_STATE_FAILED if empty else TaskState.TASK_STATE_COMPLETED,
        )


def has_grown(shown: str, text: str) -> bool:
    """Say whether `text` is worth a further snapshot after `shown`; one that begins anew always is.

    Each snapshot holds the whole text, so their number has to go with the logarithm of its length: then the
    bytes on the wire go with the length itself.
    """
    if not shown or not text.startswith(shown):
        return text != shown
    return len(text) - len(shown) >= max(GROWTH_CHARS, len(shown) // GROWTH_PART)


def refusal_text(reason: Reason, agent: AgentDefinition, length: int) -> str:
    """Return the configured message of a refusal; `length` is what the visitor sent, in characters."""
    if reason is Reason.EMPTY:
        return agent.messages.empty
    if reason is Reason.TOO_LONG:
        # Not str.format: a configured text may hold other braces, and must never fail.
        text = agent.messages.too_long.replace("{n}", str(length))
        return text.replace("{max}", str(agent.limits.max_input_chars))
    return agent.messages.stopping if reason is Reason.STOPPING else agent.messages.busy


def pause_seconds(agent: AgentDefinition) -> float:
    """Return how long lies between two snapshots, so that SNAPSHOTS_MAX of them last for the whole turn."""
    return max(SNAPSHOT_SECONDS, agent.limits.timeout_seconds / SNAPSHOTS_MAX)
