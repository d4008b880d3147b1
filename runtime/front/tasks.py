"""The tasks that visitors can read back: bounded, and readable by whoever holds the id.

Why not the SDK's own store: it keeps every task for ever, and lists all anonymous visitors' tasks to any of
them, because they are one owner to it (seen). Here the task id is the right to read and cancel (122 random
bits), and there is no list.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from a2a.server.tasks import TaskStore
from a2a.types import ListTasksRequest, ListTasksResponse, Task
from a2a.utils.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a.server.context import ServerCallContext

MAX_TASKS = 1000
MAX_AGE_SECONDS = 24 * 3600.0


class BoundedTaskStore(TaskStore):
    """Keeps copies of the `max_tasks` most recently saved tasks, none older than `max_age_seconds`."""

    def __init__(
        self,
        max_tasks: int = MAX_TASKS,
        max_age_seconds: float = MAX_AGE_SECONDS,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_tasks = max_tasks
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._tasks: OrderedDict[str, tuple[float, Task]] = OrderedDict()

    def __len__(self) -> int:
        """Count the tasks that are held."""
        return len(self._tasks)

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Keep a copy of a task."""
        del context
        self._tasks[task.id] = (self._clock(), _copy(task))
        self._tasks.move_to_end(task.id)
        self._evict()

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a copy of a task, or None."""
        del context
        self._evict()
        found = self._tasks.get(task_id)
        return _copy(found[1]) if found else None

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Refuse: there is nobody here who may see more than one task."""
        del params, context
        raise UnsupportedOperationError

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Forget a task."""
        del context
        self._tasks.pop(task_id, None)

    def _evict(self) -> None:
        oldest = self._clock() - self._max_age_seconds
        while self._tasks:
            saved, _task = next(iter(self._tasks.values()))
            if saved >= oldest and len(self._tasks) <= self._max_tasks:
                return
            self._tasks.popitem(last=False)


def _copy(task: Task) -> Task:
    copy = Task()
    copy.CopyFrom(task)
    return copy
