"""Turn path 3/13: the A2A AgentExecutor: message -> turn, turn events -> task updates.

Every message ends in exactly one non-empty text within the agent's timeout, whatever the runner does
(architecture §6); it is written before the runner cleans up, while the slot is held until it has. Nothing is
raised to the SDK, because it would show the exception's text to the client (seen); what a visitor reads is
the model's screened answer or one of the configured messages, and the reason goes into the receipt.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING

import structlog
from a2a.helpers import get_message_text
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.types import TaskState

from runtime.front.admit import Decision, Load, Reason, admit_message, admit_turn
from runtime.front.updates import Updates
from runtime.turn import receipt as fields
from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step, ToolFailed
from runtime.turn.messages import failure_text
from runtime.turn.plan import Exchange, plan_turn
from runtime.turn.receipt import Receipt, Receipts
from runtime.turn.screen import is_blank, screen, screen_line, screen_partial
from runtime.turn.stream import GRANT_PREFIX, OTHER_TOOL

if TYPE_CHECKING:
    from collections.abc import Generator

    from a2a.server.events import EventQueue

    from runtime.agents.definition import AgentDefinition
    from runtime.front.current import Current
    from runtime.front.identity import Identity
    from runtime.front.memory import Memory
    from runtime.turn.runner import Runner

VISITOR_STATE = "visitor"  # the key under which server.py puts the visitor's HMAC into the call's state
WATCHDOG_SLACK_SECONDS = 1.0  # a runner answers within the turn's own time: only one with a bug meets this
SNAPSHOT_SECONDS = 0.1
SNAPSHOTS_MAX = (
    500  # with STEPS_MAX steps a turn stays below the SDK's 1024 events, past which it drops a slow reader
)
CANCEL_WAIT_SECONDS = 15.0  # for a runner to clean up
SDK_CANCEL_SECONDS = 5.0

log = structlog.get_logger("front")


@dataclass(slots=True)
class _Turn:
    """One message on its way: the definition that it began with, and what `cancel` and `drain` need.

    `definition` is that definition's digest as loaded: what the spawner is asked to run.
    """

    agent: AgentDefinition
    definition: str
    started: float
    deadline: float
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    work: asyncio.Task[None] | None = None
    cancelled: bool = False
    sdk_cancels: bool = False
    shown_at: float = 0.0
    snapshots: int = 0
    shown: str = ""

    def cancel(self) -> None:
        """End the work; `execute` then writes the one terminal event."""
        self.cancelled = True
        if self.work is not None:
            self.work.cancel()


class TurnExecutor(AgentExecutor):
    """Runs turns of the agent in `current` for the A2A SDK, each to its end on what it began with.

    `canaries` are planted strings that no answer may contain; `snapshot_seconds` lie between two snapshots
    (default: as the agent's timeout allows).
    """

    def __init__(
        self,
        current: Current,
        runner: Runner,
        memory: Memory,
        identity: Identity,
        receipts: Receipts,
        *,
        canaries: tuple[str, ...] = (),
        watchdog_slack_seconds: float = WATCHDOG_SLACK_SECONDS,
        snapshot_seconds: float | None = None,
    ) -> None:
        self._current = current
        self._runner = runner
        self._memory = memory
        self._identity = identity
        self._receipts = receipts
        self._canaries = canaries
        self._watchdog_slack_seconds = watchdog_slack_seconds
        self._snapshot_seconds = snapshot_seconds
        self._turns: dict[str, _Turn] = {}
        self._running = 0
        self._stopping = False

    @property
    def running(self) -> int:
        """Turns that hold a slot now."""
        return self._running

    @property
    def stopping(self) -> bool:
        """Whether `drain` has begun."""
        return self._stopping

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        """Answer one message; every path writes one terminal event."""
        task = context.current_task
        task_id = context.task_id or ""
        context_id = (task.context_id if task else context.context_id) or ""
        now = time.monotonic()
        served = self._current.now
        agent = served.agent
        turn = _Turn(agent, served.digest, started=now, deadline=now + agent.limits.timeout_seconds)
        text = get_message_text(context.message).strip() if context.message else ""
        receipt = Receipt(
            context=self._identity.context(context_id),
            visitor=str(context.call_context.state.get(VISITOR_STATE, "")),
            question=text,
        )
        updates = Updates(event_queue, task_id, context_id)
        self._turns[task_id] = turn
        try:
            if task is None:
                message_id = context.message.message_id if context.message else ""
                await updates.submitted(message_id, text[: agent.limits.max_input_chars])
            turn.work = asyncio.create_task(self._answer(turn, updates, receipt, context_id, text))
            if turn.cancelled:
                turn.work.cancel()
            await self._settle(turn, updates, receipt)
        finally:
            self._turns.pop(task_id, None)
            receipt.total_seconds = time.monotonic() - turn.started
            self._receipts.write(receipt)
            turn.settled.set()
        if turn.sdk_cancels:
            # The SDK cancels the caller of `execute` right after `cancel` has returned. Were `execute` over
            # by then, that would hit the caller's own cleanup, and the task's streams would never end
            # (seen, a2a-sdk 1.3.0).
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(SDK_CANCEL_SECONDS):
                    await asyncio.Event().wait()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        """End the task's turn and return when its runner has cleaned up and CANCELED is written, once."""
        del event_queue  # `execute` has the same one, and writes the one terminal event
        turn = self._turns.get(context.task_id or "")
        if turn is None:
            return
        turn.sdk_cancels = True
        if not turn.cancelled:
            turn.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_WAIT_SECONDS):
                await turn.settled.wait()

    async def drain(self) -> None:
        """Take no new turn, end those that run and wait until each has its terminal event."""
        self._stopping = True
        turns = list(self._turns.values())
        for turn in turns:
            turn.cancel()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_WAIT_SECONDS):
                for turn in turns:
                    await turn.settled.wait()

    async def _settle(self, turn: _Turn, updates: Updates, receipt: Receipt) -> None:
        """Wait for the work and write the terminal event that it has not written."""
        work = turn.work
        if work is None:
            return
        limit = turn.agent.limits.timeout_seconds + self._watchdog_slack_seconds
        try:
            done, _ = await asyncio.wait({work}, timeout=limit)
            if not done and updates.finished:
                # The visitor has the answer; the slot is free when the runner has cleaned up.
                done, _ = await asyncio.wait({work}, timeout=CANCEL_WAIT_SECONDS)
        except asyncio.CancelledError:
            await _ended(work)
            raise
        if not done:
            # The visitor's answer first, where there is none yet: the work may take its time to clean up.
            cause = Cause.CANCELLED if turn.cancelled else Cause.TIMEOUT
            await self._fail(turn, updates, receipt, Failed(cause, "the watchdog ended the turn"))
            await _ended(work)
        elif turn.cancelled and not updates.finished:
            await self._fail(turn, updates, receipt, Failed(Cause.CANCELLED, "cancelled"))
        elif not updates.finished:
            await self._fail(
                turn, updates, receipt, Failed(Cause.INTERNAL, f"the work ended with {_why(work)}")
            )
        elif not work.cancelled() and work.exception() is not None:
            log.error("turn-cleanup-failed", error=_why(work))

    async def _answer(
        self, turn: _Turn, updates: Updates, receipt: Receipt, context_id: str, text: str
    ) -> None:
        load = Load(self._running, self._memory.waiting(context_id), self._stopping)
        decision = admit_message(text, turn.agent.limits, load)
        if not decision.allow:
            await self._refuse(turn, updates, receipt, decision, text)
            return
        await updates.working(turn.agent.messages.working)
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(turn.deadline - time.monotonic()):
                    transcript = await stack.enter_async_context(self._memory.turn(context_id))
            except TimeoutError:
                await self._fail(
                    turn, updates, receipt, Failed(Cause.TIMEOUT, "waited for the turn before it")
                )
                return
            receipt.waited_seconds = time.monotonic() - turn.started
            decision = admit_turn(turn.agent.limits, Load(self._running, stopping=self._stopping))
            if not decision.allow:
                await self._refuse(turn, updates, receipt, decision, text)
                return
            stack.enter_context(self._slot())
            answer = await self._run(turn, updates, receipt, context_id, text, transcript)
            if answer:
                self._memory.remember(context_id, Exchange(text, answer))

    @contextlib.contextmanager
    def _slot(self) -> Generator[None]:
        self._running += 1
        self._receipts.running.set(self._running)
        try:
            yield
        finally:
            self._running -= 1
            self._receipts.running.set(self._running)

    async def _run(
        self,
        turn: _Turn,
        updates: Updates,
        receipt: Receipt,
        context_id: str,
        text: str,
        transcript: tuple[Exchange, ...],
    ) -> str:
        """Run the turn and return the answer as the visitor got it, "" when it is a configured message."""
        plan = plan_turn(
            turn.agent,
            transcript,
            text,
            self._identity.context(context_id),
            receipt.visitor,
            definition=turn.definition,
            timeout_seconds=max(0.0, turn.deadline - time.monotonic()),
        )
        tools = {*turn.agent.tools.builtin, *(GRANT_PREFIX + name for name in turn.agent.tools.granted)}
        answer = ""
        async with contextlib.aclosing(self._runner.run(plan)) as events:
            async for event in events:
                match event:
                    case Step():
                        receipt.steps[event.tool if event.tool in tools else OTHER_TOOL] += 1
                        await updates.working(
                            screen_line(event.label, self._canaries) or turn.agent.messages.working
                        )
                    case ToolFailed():
                        pass  # for the agent's author alone, in `gatehouse turn`
                    case Snapshot():
                        await self._show(turn, updates, receipt, event.text)
                    case Answer():
                        answer = await self._finish(turn, updates, receipt, event)
                        break
                    case Failed():
                        await self._fail(turn, updates, receipt, event)
                        break
        if not updates.finished:
            await self._fail(
                turn, updates, receipt, Failed(Cause.INTERNAL, "the runner gave no terminal event")
            )
        return answer

    async def _show(self, turn: _Turn, updates: Updates, receipt: Receipt, untrusted_text: str) -> None:
        now = time.monotonic()
        if now - turn.shown_at < self._pause_seconds(turn.agent) or turn.snapshots >= SNAPSHOTS_MAX:
            return
        text = screen_partial(untrusted_text, self._canaries).strip()
        if not text or text == turn.shown:
            return
        turn.shown, turn.shown_at = text, now
        turn.snapshots += 1
        if receipt.first_text_seconds is None:
            receipt.first_text_seconds = now - turn.started
        await updates.snapshot(text)

    def _pause_seconds(self, agent: AgentDefinition) -> float:
        if self._snapshot_seconds is not None:
            return self._snapshot_seconds
        return max(SNAPSHOT_SECONDS, agent.limits.timeout_seconds / SNAPSHOTS_MAX)

    async def _finish(self, turn: _Turn, updates: Updates, receipt: Receipt, event: Answer) -> str:
        screened = screen(event.text, self._canaries)
        text = screened.text.strip()
        receipt.screened = screened.decisions
        if is_blank(text):
            await self._fail(
                turn, updates, receipt, Failed(Cause.EMPTY, "nothing was left to show", event.usage)
            )
            return ""
        receipt.outcome, receipt.cause, receipt.answer = fields.ANSWERED, "", text
        receipt.usage = event.usage
        await updates.finish(text)
        return text

    async def _fail(self, turn: _Turn, updates: Updates, receipt: Receipt, event: Failed) -> None:
        if updates.finished:
            return
        text = failure_text(event.cause, turn.agent.messages)
        receipt.outcome = fields.CANCELLED if event.cause is Cause.CANCELLED else fields.FAILED
        receipt.cause, receipt.detail, receipt.answer, receipt.usage = (
            event.cause.value,
            event.detail,
            text,
            event.usage,
        )
        cancelled = event.cause is Cause.CANCELLED
        state = TaskState.TASK_STATE_CANCELED if cancelled else TaskState.TASK_STATE_COMPLETED
        await updates.finish(text, state=state, outcome=event.cause.value)

    async def _refuse(
        self, turn: _Turn, updates: Updates, receipt: Receipt, decision: Decision, text: str
    ) -> None:
        answer = refusal_text(decision.reason, turn.agent, len(text))
        receipt.outcome, receipt.cause, receipt.detail = (
            fields.REFUSED_OUTCOME,
            decision.reason.value,
            decision.control,
        )
        receipt.answer = answer
        empty = decision.reason is Reason.EMPTY
        state = TaskState.TASK_STATE_FAILED if empty else TaskState.TASK_STATE_COMPLETED
        await updates.finish(answer, state=state, outcome=decision.reason.value)


def refusal_text(reason: Reason, agent: AgentDefinition, length: int) -> str:
    """Return the configured message of a refusal; `length` is what the visitor sent, in characters."""
    if reason is Reason.EMPTY:
        return agent.messages.empty
    if reason is Reason.TOO_LONG:
        # Not str.format: a configured text may hold other braces, and must never fail.
        text = agent.messages.too_long.replace("{n}", str(length))
        return text.replace("{max}", str(agent.limits.max_input_chars))
    return agent.messages.busy


def _why(work: asyncio.Task[None]) -> str:
    """Name the exception of ended work and the line that raised it; its text may hold a visitor's words."""
    error = None if work.cancelled() else work.exception()
    if error is None:
        return "no terminal event"
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {PurePath(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return type(error).__name__ + place


async def _ended(work: asyncio.Task[None]) -> None:
    """Cancel and wait until the work's own cleanup has run, however often the waiting itself is cancelled."""
    work.cancel()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CANCEL_WAIT_SECONDS):
            await asyncio.wait({work})
