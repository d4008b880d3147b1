"""What a client sees of a task: the events of one turn, in the shapes that both A2A dialects share.

One artifact id per turn, named `answer`; each snapshot replaces it whole (`append` false), and so does the
final text, which the last status message repeats (seed S1 §3). A text that is not the model's answer
carries `{"gatehouse": {"outcome": …}}` in its metadata, so that a program can tell it from one, and
`retryAfterSeconds` there where asking again helps. The notice of a first answer is a part of its own, marked
`{"gatehouse": {"kind": "notice"}}`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from a2a.types import (
    Artifact,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)

if TYPE_CHECKING:
    from a2a.server.events import EventQueue

ARTIFACT_NAME: Final = "answer"
METADATA: Final = "gatehouse"
NOTICE: Final = {METADATA: {"kind": "notice"}}


@dataclass(frozen=True, slots=True)
class Ending:
    """The one text that a task ends with, and what a program may read beside it.

    `outcome` is empty for the model's answer. `notice` follows the text as a second part. `retry_seconds` is
    0 where asking again soon is of no use.
    """

    text: str
    outcome: str = ""
    notice: str = ""
    retry_seconds: int = 0

    @property
    def parts(self) -> list[Part]:
        """The text, and the notice where there is one."""
        parts = [_part(self.text)]
        if self.notice:
            parts.append(_part(self.notice))
            parts[-1].metadata.update(NOTICE)
        return parts

    @property
    def metadata(self) -> dict[str, Any]:
        """What artifact and status message carry; {} for the model's answer."""
        if not self.outcome:
            return {}
        told: dict[str, Any] = {"outcome": self.outcome}
        if self.retry_seconds:
            told["retryAfterSeconds"] = self.retry_seconds
        return {METADATA: told}


class Updates:
    """Writes one turn's events to the SDK's queue; nothing follows the terminal one, not even another."""

    def __init__(self, queue: EventQueue, task_id: str, context_id: str) -> None:
        self._queue = queue
        self._task_id = task_id
        self._context_id = context_id
        self._artifact_id = str(uuid.uuid4())
        self.finished = False

    async def submitted(self, untrusted_message_id: str, untrusted_text: str) -> None:
        """Write the task itself, first: the SDK takes no other event before it.

        Its history is the visitor's text alone, in a message of our making: whatever else came with it would
        be kept for as long as the task.
        """
        task = Task(
            id=self._task_id,
            context_id=self._context_id,
            status=_task_status(TaskState.TASK_STATE_SUBMITTED),
        )
        task.history.append(
            Message(
                role=Role.ROLE_USER,
                message_id=untrusted_message_id,
                task_id=self._task_id,
                context_id=self._context_id,
                parts=[_part(untrusted_text)],
            )
        )
        await self._queue.enqueue_event(task)

    async def working(self, text: str) -> None:
        """Say what is being done."""
        if not self.finished:
            await self._status(TaskState.TASK_STATE_WORKING, Ending(text))

    async def snapshot(self, text: str) -> None:
        """Show the answer so far."""
        if not self.finished:
            await self._artifact(Ending(text), last=False)

    async def finish(self, ending: Ending, state: TaskState = TaskState.TASK_STATE_COMPLETED) -> None:
        """End the task with its one text."""
        if self.finished:
            return
        self.finished = True
        if state == TaskState.TASK_STATE_COMPLETED:
            await self._artifact(ending, last=True)
        await self._status(state, ending)

    async def _artifact(self, shown: Ending, *, last: bool) -> None:
        artifact = Artifact(artifact_id=self._artifact_id, name=ARTIFACT_NAME, parts=shown.parts)
        if shown.metadata:
            artifact.metadata.update(shown.metadata)
        await self._queue.enqueue_event(
            TaskArtifactUpdateEvent(
                task_id=self._task_id,
                context_id=self._context_id,
                artifact=artifact,
                append=False,
                last_chunk=last,
            )
        )

    async def _status(self, state: TaskState, shown: Ending) -> None:
        message = Message(
            role=Role.ROLE_AGENT,
            message_id=str(uuid.uuid4()),
            task_id=self._task_id,
            context_id=self._context_id,
            parts=shown.parts,
        )
        if shown.metadata:
            message.metadata.update(shown.metadata)
        await self._queue.enqueue_event(
            TaskStatusUpdateEvent(
                task_id=self._task_id,
                context_id=self._context_id,
                status=_task_status(state, message),
            )
        )


def _part(text: str) -> Part:
    return Part(text=text)


def _task_status(state: TaskState, message: Message | None = None) -> TaskStatus:
    status = TaskStatus(state=state, message=message)
    status.timestamp.GetCurrentTime()
    return status
