"""Turn path 3/13: the A2A AgentExecutor: message -> turn, turn events -> task updates.

Every message ends in exactly one non-empty text within the agent's timeout, whatever the runner does
(architecture §6); it is written before the runner cleans up, while the slot is held until it has. Nothing is
raised to the SDK, because it would show the exception's text to the client (seen); what a visitor reads is
the model's screened answer or one of the configured messages (telling.py), and the reason goes into the
receipt. A turn that nobody watches any more (audience.py), that is cancelled, or that the front's stop
overtakes is ended from here too.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import traceback
from pathlib import PurePath
from typing import TYPE_CHECKING

import structlog
from a2a.helpers import get_message_text
from a2a.server.agent_execution import AgentExecutor, RequestContext

from runtime.front.admit import WAITING_MAX, Load, Pace, admit_message, admit_turn, within
from runtime.front.presence import GONE
from runtime.front.telling import Telling, pause_seconds
from runtime.front.turns import Turn, Turns
from runtime.front.updates import Updates
from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step, ToolFailed
from runtime.turn.plan import Exchange, plan_turn
from runtime.turn.receipt import Receipt, Receipts

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from a2a.server.events import EventQueue

    from runtime.agents.definition import AgentDefinition
    from runtime.front.current import Current
    from runtime.front.identity import Identity
    from runtime.front.memory import Memory
    from runtime.front.presence import Gone
    from runtime.turn.runner import Runner

VISITOR_STATE = "visitor"  # the key under which server.py puts the visitor's HMAC into the call's state
CROWDED_STATE = "crowded"  # and handler.py, that no further stream may be held open
METHOD_STATE = "method"  # and the SDK, which method was called
SEND_METHODS = frozenset({"message/send", "SendMessage"})
WATCHDOG_SLACK_SECONDS = 1.0  # a runner answers within the turn's own time: only one with a bug meets this
CANCEL_WAIT_SECONDS = 15.0  # for a runner to clean up
STOP_GRACE_SECONDS = 20.0  # for the turns that run when the front is stopped
RESTART_SECONDS = 10.0  # until another front answers, once this one has ended
SDK_CANCEL_SECONDS = 5.0

log = structlog.get_logger("front")


class TurnExecutor(AgentExecutor):
    """Runs turns of the agent in `current` for the A2A SDK, each to its end on what it began with.

    `canaries` are planted strings that no answer may contain; `snapshot_seconds` lie between two snapshots
    (default: as the agent's timeout allows). `waiting_max` messages of one context may wait;
    `stop_grace_seconds` are what `drain` gives the turns that run.
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
        waiting_max: int = WAITING_MAX,
        stop_grace_seconds: float = STOP_GRACE_SECONDS,
    ) -> None:
        self._current = current
        self._runner = runner
        self._memory = memory
        self._identity = identity
        self._receipts = receipts
        self._canaries = canaries
        self._watchdog_slack_seconds = watchdog_slack_seconds
        self._snapshot_seconds = snapshot_seconds
        self._waiting_max = waiting_max
        self._stop_grace_seconds = stop_grace_seconds
        self._turns = Turns()
        self._running = 0
        self._pace = Pace()
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
        text = get_message_text(context.message).strip() if context.message else ""
        turn = self._turn(context, event_queue, context_id, text)
        self._turns[task_id] = turn
        try:
            if task is None:
                message_id = context.message.message_id if context.message else ""
                await turn.telling.updates.submitted(message_id, text[: turn.agent.limits.max_input_chars])
            self.watch(task_id, context.call_context.state.get(GONE))
            crowded = bool(context.call_context.state.get(CROWDED_STATE))
            turn.work = asyncio.create_task(self._answer(turn, text, crowded=crowded))
            if turn.ended is not None:
                turn.work.cancel()
            await self._settle(turn)
        finally:
            turn.audience.close()
            self._turns.leave(task_id)
            turn.telling.receipt.total_seconds = time.monotonic() - turn.started
            self._receipts.write(turn.telling.receipt)
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
        turn.end(Cause.CANCELLED)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_WAIT_SECONDS):
                await turn.settled.wait()

    def context_of(self, task_id: str) -> str | None:
        """Return the context of a task whose turn runs or waits, else None."""
        return self._turns.context_of(task_id)

    def watch(self, task_id: str, gone: Gone | None) -> None:
        """Count a reader of a task's turn until `gone` is set."""
        self._turns.watch(task_id, gone)

    def forget(self, wanted: Callable[[str, str], bool]) -> dict[str, asyncio.Event]:
        """Let no turn that `wanted` chooses be remembered (see Turns.forget)."""
        return self._turns.forget(wanted)

    def lately(self, wanted: Callable[[str, str], bool]) -> set[str]:
        """Return the chosen tasks that may be saved once more though their turns have ended."""
        return self._turns.lately(wanted)

    async def drain(self, hurry: asyncio.Event | None = None) -> None:
        """Take no new turn, let those that run finish, and return when each has its terminal event.

        Turns that wait for another of their context are ended at once, those that run when the grace is over
        or `hurry` is set.
        """
        self._stopping = True
        self._turns.end(Cause.STOPPING, waiting=True)
        await self._turns.settled(self._stop_grace_seconds, hurry)
        self._turns.end(Cause.STOPPING)
        await self._turns.settled(CANCEL_WAIT_SECONDS)

    def _turn(self, context: RequestContext, event_queue: EventQueue, context_id: str, text: str) -> Turn:
        """Return the turn of a message that has just come, on what is served now."""
        now = time.monotonic()
        served = self._current.now
        agent = served.agent
        receipt = Receipt(
            context=self._identity.context(context_id),
            visitor=str(context.call_context.state.get(VISITOR_STATE, "")),
            question=text,
        )
        telling = Telling(
            agent,
            Updates(event_queue, context.task_id or "", context_id),
            receipt,
            self._canaries,
            pause_seconds(agent) if self._snapshot_seconds is None else self._snapshot_seconds,
        )
        return Turn(
            agent,
            served.digest,
            started=now,
            deadline=now + agent.limits.timeout_seconds,
            telling=telling,
            context_id=context_id,
            grace_seconds=_grace_seconds(context, agent),
        )

    async def _settle(self, turn: Turn) -> None:
        """Wait for the work and write the terminal event that it has not written."""
        work, telling = turn.work, turn.telling
        if work is None:
            return
        limit = turn.agent.limits.timeout_seconds + self._watchdog_slack_seconds
        try:
            done, _ = await asyncio.wait({work}, timeout=limit)
            if not done and telling.finished:
                # The visitor has the answer; the slot is free when the runner has cleaned up.
                done, _ = await asyncio.wait({work}, timeout=CANCEL_WAIT_SECONDS)
        except asyncio.CancelledError:
            await _ended(work)
            raise
        telling.retry_seconds = self._retry_seconds(turn)
        if not done:
            # The visitor's answer first, where there is none yet: the work may take its time to clean up.
            await telling.fail(Failed(turn.ended or Cause.TIMEOUT, "the watchdog ended the turn"))
            await _ended(work)
        elif turn.ended is not None and not telling.finished:
            await telling.fail(Failed(turn.ended, turn.ended.value))
        elif not telling.finished:
            await telling.fail(Failed(Cause.INTERNAL, f"the work ended with {_why(work)}"))
        elif not work.cancelled() and work.exception() is not None:
            log.error("turn-cleanup-failed", error=_why(work))

    def _retry_seconds(self, turn: Turn) -> int:
        """Return after how many seconds a client may ask again, when it is told that this is worth it."""
        if self._stopping:
            return within(self._stop_grace_seconds + RESTART_SECONDS)
        return self._pace.retry_seconds(turn.agent.limits.max_concurrency)

    async def _answer(self, turn: Turn, text: str, *, crowded: bool) -> None:
        telling = turn.telling
        telling.retry_seconds = self._retry_seconds(turn)
        load = Load(self._running, self._memory.waiting(turn.context_id), self._stopping, crowded)
        decision = admit_message(text, turn.agent.limits, load, waiting_max=self._waiting_max)
        if not decision.allow:
            await telling.refuse(decision, len(text))
            return
        await telling.working()
        async with contextlib.AsyncExitStack() as stack:
            try:
                async with asyncio.timeout(turn.deadline - time.monotonic()):
                    transcript = await stack.enter_async_context(self._memory.turn(turn.context_id))
            except TimeoutError:
                await telling.fail(Failed(Cause.TIMEOUT, "waited for the turn before it"))
                return
            telling.receipt.waited_seconds = time.monotonic() - turn.started
            decision = admit_turn(turn.agent.limits, Load(self._running, stopping=self._stopping))
            if not decision.allow:
                telling.retry_seconds = self._retry_seconds(turn)
                await telling.refuse(decision, len(text))
                return
            stack.enter_context(self._slot(turn))
            answer = await self._run(turn, text, transcript)
            if answer and not turn.forgotten:
                self._memory.remember(turn.context_id, Exchange(text, answer))

    @contextlib.contextmanager
    def _slot(self, turn: Turn) -> Generator[None]:
        since = time.monotonic()
        turn.running = True
        self._running += 1
        self._receipts.running.set(self._running)
        try:
            yield
        finally:
            self._running -= 1
            self._receipts.running.set(self._running)
            self._pace.held(time.monotonic() - since)

    async def _run(self, turn: Turn, text: str, transcript: tuple[Exchange, ...]) -> str:
        """Run the turn and return the answer as the visitor got it, "" when it is a configured message."""
        telling = turn.telling
        plan = plan_turn(
            turn.agent,
            transcript,
            text,
            self._identity.context(turn.context_id),
            telling.receipt.visitor,
            definition=turn.definition,
            timeout_seconds=max(0.0, turn.deadline - time.monotonic()),
        )
        answer = ""
        async with contextlib.aclosing(self._runner.run(plan)) as events:
            async for event in events:
                match event:
                    case Step():
                        await telling.step(event)
                    case ToolFailed():
                        pass  # for the agent's author alone, in `gatehouse turn`
                    case Snapshot():
                        await telling.show(event.text, turn.started)
                    case Answer():
                        answer = await telling.answer(event, first=not transcript)
                        break
                    case Failed():
                        telling.retry_seconds = self._retry_seconds(turn)
                        await telling.fail(event)
                        break
        if not telling.finished:
            await telling.fail(Failed(Cause.INTERNAL, "the runner gave no terminal event"))
        return answer


def _grace_seconds(context: RequestContext, agent: AgentDefinition) -> float | None:
    """Return how long a turn may go unwatched, None for as long as it takes."""
    configuration = context.configuration
    alone = configuration is not None and configuration.return_immediately
    if agent.limits.on_disconnect == "finish":
        return None
    if alone and context.call_context.state.get(METHOD_STATE) in SEND_METHODS:
        return None
    return agent.limits.disconnect_grace_seconds


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
