"""What the A2A SDK's request handler may be asked: our refusals stand before it.

The SDK drops a second message to a task that runs and answers it with the first one's result (seen): here it
becomes a new task of the same context, which waits for its turn like any other. The SDK also takes any role,
and lets anybody hold as many event streams as they like; each of those is one typed A2A error here, with a
fixed sentence, save the stream of a new message too many, which is answered with the busy text.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import aclosing, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from a2a.server.request_handlers import DefaultRequestHandler
from a2a.types import Role, Task, TaskState
from a2a.utils.errors import InvalidParamsError, TaskNotFoundError, UnsupportedOperationError

from runtime.front.executor import CROWDED_STATE
from runtime.front.presence import GONE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from a2a.server.context import ServerCallContext
    from a2a.server.events import Event
    from a2a.server.tasks import TaskStore
    from a2a.types import AgentCard, CancelTaskRequest, Message, SendMessageRequest, SubscribeToTaskRequest

    from runtime.front.executor import TurnExecutor

TASK_CLOSED: Final = (
    "This task takes no further message; send a new one with the same contextId and without taskId"
)
OTHER_CONTEXT: Final = "The task that the message names is of another context"
USER_ONLY: Final = "A message to the agent has the role user"
TOO_MANY_READERS: Final = "Too many streams read this task already"
TOO_MANY_STREAMS: Final = "Too many streams are open"
FIXED_SENTENCES: Final = frozenset(
    {TASK_CLOSED, OTHER_CONTEXT, TOO_MANY_READERS, TOO_MANY_STREAMS, USER_ONLY}
)

READERS_MAX: Final = 4  # beside the sender's own; every event is made into text once for each
STREAMS_MAX: Final = 256
TERMINAL: Final = frozenset(
    {
        TaskState.TASK_STATE_COMPLETED,
        TaskState.TASK_STATE_FAILED,
        TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED,
    }
)


class FrontRequestHandler(DefaultRequestHandler):
    """The SDK's handler, asked only what it answers rightly.

    `readers_max` streams read one task beside its sender's own, `streams_max` are open in all.
    """

    def __init__(
        self,
        *,
        agent_executor: TurnExecutor,
        task_store: TaskStore,
        agent_card: AgentCard,
        readers_max: int = READERS_MAX,
        streams_max: int = STREAMS_MAX,
    ) -> None:
        super().__init__(agent_executor=agent_executor, task_store=task_store, agent_card=agent_card)
        self._executor = agent_executor
        self._store = task_store
        self._cancels: dict[str, asyncio.Task[Task | None]] = {}
        self._readers: Counter[str] = Counter()
        self._readers_max = readers_max
        self._streams_max = streams_max
        self.streams = 0

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
        context.state[CROWDED_STATE] = self.streams >= self._streams_max
        with self._stream():
            async with aclosing(super().on_message_send_stream(params, context)) as events:
                async for event in events:
                    yield event

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Event, None]:
        """Answer with a running task as it is, and its events as they happen from there on."""
        if self._readers[params.id] >= self._readers_max:
            raise UnsupportedOperationError(message=TOO_MANY_READERS)
        if self.streams >= self._streams_max:
            raise UnsupportedOperationError(message=TOO_MANY_STREAMS)
        self._executor.watch(params.id, context.state.get(GONE))
        self._readers[params.id] += 1
        try:
            with self._stream():
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
            task = await self._store.get(message.task_id, context)
            if task is None:
                raise TaskNotFoundError
            if message.context_id and message.context_id != task.context_id:
                raise InvalidParamsError(message=OTHER_CONTEXT)
            if task.status.state in TERMINAL:
                raise UnsupportedOperationError(message=TASK_CLOSED)
            message.context_id = task.context_id
            message.ClearField("task_id")

    @contextmanager
    def _stream(self) -> Generator[None]:
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1
