"""Forgets conversations: those an operator names (`POST /forget` on `ops/front.sock`), and those too old.

A visitor may ask an operator to have a conversation deleted, and a restart would take everybody's. What an
operator has is an id: of the context, or of a task, which leads to its context. Turns of it that run or wait
are cancelled first, as a visitor's `tasks/cancel` would, so that nothing is written after the deletion.

A context id is a right to go on with the conversation, so none is logged, and a context that visitors can
guess may be several visitors': a task of such a one is forgotten alone.
"""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog
from a2a.server.context import ServerCallContext
from a2a.types import CancelTaskRequest, TaskState
from a2a.utils.errors import TaskNotCancelableError, TaskNotFoundError

from runtime.errors import ServiceUnreachable, UsageError
from runtime.front.memory import carries_memory
from runtime.strict_json import StrictJsonError, parse

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from runtime.front.executor import TurnExecutor
    from runtime.front.handler import FrontRequestHandler
    from runtime.front.memory import Memory
    from runtime.front.tasks import BoundedTaskStore

END_SECONDS: Final = 40.0  # more than the executor waits for a runner to clean up, twice
RETRY_SECONDS: Final = 0.02
SWEEP_SECONDS: Final = 60.0
SHAPE: Final = 'send one of {"context": ID}, {"task": ID} and {"all": true}'

log = structlog.get_logger("front")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an operator asks to be forgotten: exactly one of the three is given."""

    context: str = ""
    task: str = ""
    everything: bool = False


@dataclass(frozen=True, slots=True)
class Reach:
    """What a request takes: a whole context, or one task of a context that anybody may share, or all."""

    context: str = ""
    task: str = ""
    everything: bool = False

    def takes(self, task_id: str, context_id: str) -> bool:
        """Say whether a task of a context goes."""
        if self.everything:
            return True
        if self.context:
            return canonical(context_id) == self.context
        return task_id == self.task


def wanted(untrusted_body: bytes) -> Wanted:
    """Return what a request's body asks for. Raises UsageError, which repeats nothing of the body."""
    try:
        value = parse(untrusted_body)
    except StrictJsonError as error:
        raise UsageError(f"The body is {error}.", SHAPE) from None
    if not isinstance(value, dict) or len(value) != 1:
        raise UsageError("The body is not an object with one key.", SHAPE)
    match value:
        case {"all": True}:
            return Wanted(everything=True)
        case {"context": str(given)} if given.strip():
            return Wanted(context=canonical(given))
        case {"task": str(given)}:
            return Wanted(task=_task_id(given.strip()))
    raise UsageError("The body asks for nothing that can be forgotten.", SHAPE)


def canonical(context_id: str) -> str:
    """Return a context id as conversations are told apart: of UUIDs upper and lower case are the same."""
    return context_id.lower() if carries_memory(context_id) else context_id


def reach(what: Wanted, context_of_task: str | None) -> Reach:
    """Decide what a request takes; `context_of_task` is None where no such task is held."""
    if what.task and context_of_task is not None and carries_memory(context_of_task):
        return Reach(context=canonical(context_of_task))
    return Reach(what.context, what.task, what.everything)


class Forget:
    """Forgets in one front what its operator names."""

    def __init__(
        self,
        executor: TurnExecutor,
        handler: FrontRequestHandler,
        memory: Memory,
        store: BoundedTaskStore,
        *,
        end_seconds: float = END_SECONDS,
    ) -> None:
        self._executor = executor
        self._handler = handler
        self._memory = memory
        self._store = store
        self._end_seconds = end_seconds

    async def __call__(self, untrusted_body: bytes) -> dict[str, int]:
        """Return `{"contexts", "tasks", "cancelled"}`: how many were held, and how many turns were ended.

        What a visitor sends after the request has come is a new conversation, and stays. Raises UsageError,
        and ServiceUnreachable when a turn does not end: what it holds is there until it does.
        """
        what = wanted(untrusted_body)
        known = self._store.context_of(what.task) or self._executor.context_of(what.task)
        taken = reach(what, known)
        turns = self._executor.forget(taken.takes)
        tasks = {*turns, *self._executor.lately(taken.takes), *self._store.chosen(taken.takes)}
        if taken.everything:
            contexts = self._memory.forget_all()
        else:
            contexts = int(bool(taken.context) and self._memory.forget(taken.context))
        ends = await asyncio.gather(*(self._end(task_id, turns[task_id]) for task_id in turns))
        self._executor.lately(lambda task_id, _context_id: task_id in turns)
        counts = {"contexts": contexts, "tasks": self._store.forget(tasks), "cancelled": ends.count(True)}
        log.info("forgotten", everything=taken.everything, **counts)
        if None in ends:
            raise ServiceUnreachable(
                f"{ends.count(None)} of the turns did not end within {self._end_seconds:.0f} s.",
                "ask again; a restart of the front forgets everything",
            )
        return counts

    async def _end(self, task_id: str, settled: asyncio.Event) -> bool | None:
        """Cancel a turn and wait until nothing more is written of it.

        True when that ended it, False when it had its answer already, None when it has not ended in time.
        """
        cancelled = False
        try:
            async with asyncio.timeout(self._end_seconds):
                while True:
                    try:
                        request = CancelTaskRequest(id=task_id)
                        task = await self._handler.on_cancel_task(request, ServerCallContext())
                        cancelled = task is not None and task.status.state == TaskState.TASK_STATE_CANCELED
                    except TaskNotFoundError:
                        # A turn that has begun and whose task the SDK has not saved yet.
                        if not settled.is_set():
                            await asyncio.sleep(RETRY_SECONDS)
                            continue
                    except TaskNotCancelableError:
                        pass
                    break
                await settled.wait()
        except TimeoutError:
            return None
        return cancelled


async def sweep(
    memory: Memory, store: BoundedTaskStore, *, pause: Callable[[], Awaitable[None]] | None = None
) -> None:
    """Let go of what is too old, again and again until cancelled: a front that nobody asks forgets too."""
    while True:
        await (pause() if pause else asyncio.sleep(SWEEP_SECONDS))
        memory.sweep()
        store.sweep()


def _task_id(text: str) -> str:
    try:
        parsed = uuid.UUID(text)
    except ValueError:
        parsed = None
    if parsed is None or str(parsed) != text.lower():
        raise UsageError("That is no id of a task.", "give it as the answer has it, a UUID")
    return text.lower()
