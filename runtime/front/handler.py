"""What the A2A SDK's request handler may be asked: our refusals stand before it.

The SDK drops a second message to a task that runs and answers it with the first one's result (seen), takes
any role, and lets anybody read one task over as many streams as they like. Each of those is one typed A2A
error here, with a fixed sentence.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from a2a.server.request_handlers import DefaultRequestHandler
from a2a.types import Role, Task
from a2a.utils.errors import (
    InvalidParamsError,
    TaskNotFoundError,
    UnsupportedOperationError,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from a2a.server.context import ServerCallContext
    from a2a.server.events import Event
    from a2a.types import CancelTaskRequest, Message, SendMessageRequest, SubscribeToTaskRequest

TASK_CLOSED: Final = (
    "This task takes no further message; send a new one with the same contextId and without taskId"
)
USER_ONLY: Final = "A message to the agent has the role user"
TOO_MANY_READERS: Final = "Too many streams read this task already"
FIXED_SENTENCES: Final = frozenset({TASK_CLOSED, TOO_MANY_READERS, USER_ONLY})

READERS_MAX: Final = 4  # beside the sender's own; every event is made into text once for each


class FrontRequestHandler(DefaultRequestHandler):
    """The SDK's handler, asked only what it answers rightly."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._cancels: dict[str, asyncio.Task[Task | None]] = {}
        self._readers: Counter[str] = Counter()

    async def on_cancel_task(self, params: CancelTaskRequest, context: ServerCallContext) -> Task | None:
        """End a task; those who ask for the same task meanwhile get the same answer.

        Why: each cancel that the SDK sees interrupts the cleanup that the one before it began, and the
        task's streams never end (seen with five at once, a2a-sdk 1.3.0).
        """
        ending = self._cancels.get(params.id)
        if ending is None:
            ending = asyncio.create_task(super().on_cancel_task(params, context))
            self._cancels[params.id] = ending
            ending.add_done_callback(partial(self._cancel_ended, params.id))
        task = await asyncio.shield(ending)
        if task is None:
            return None
        copy = Task()
        copy.CopyFrom(task)
        return copy

    def _cancel_ended(self, task_id: str, ended: asyncio.Task[Task | None]) -> None:
        del self._cancels[task_id]
        if not ended.cancelled():
            ended.exception()  # read, because all who asked may have gone; who is there gets it by `shield`

    async def on_message_send(self, params: SendMessageRequest, context: ServerCallContext) -> Message | Task:
        """Answer a message with its finished task, or at once with the submitted one."""
        await self._check(params, context)
        answer: Message | Task = await super().on_message_send(params, context)
        return answer

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Answer a message with its task's events as they happen."""
        await self._check(params, context)
        async with aclosing(super().on_message_send_stream(params, context)) as events:
            async for event in events:
                yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Answer with a running task and its events as they happen, to READERS_MAX at a time."""
        if self._readers[params.id] >= READERS_MAX:
            raise UnsupportedOperationError(message=TOO_MANY_READERS)
        self._readers[params.id] += 1
        try:
            async with aclosing(super().on_subscribe_to_task(params, context)) as events:
                async for event in events:
                    yield event
        finally:
            self._readers[params.id] -= 1
            if not self._readers[params.id]:
                del self._readers[params.id]

    async def _check(self, params: SendMessageRequest, context: ServerCallContext) -> None:
        message = params.message
        if message.role != Role.ROLE_USER:
            raise InvalidParamsError(message=USER_ONLY)
        if message.task_id:
            if await self.task_store.get(message.task_id, context) is None:
                raise TaskNotFoundError
            raise UnsupportedOperationError(message=TASK_CLOSED)
