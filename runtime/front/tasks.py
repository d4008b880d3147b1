"""The tasks that visitors can read back: bounded in number, bytes and age, readable by whoever holds the id.

Why not the SDK's own store: it keeps every task for ever, and lists all anonymous visitors' tasks to any of
them, because they are one owner to it (seen). Here the task id is the right to read and cancel (122 random
bits), and there is no list.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from a2a.server.tasks import TaskStore
from a2a.types import ListTasksRequest, ListTasksResponse, Task
from a2a.utils.errors import UnsupportedOperationError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from a2a.server.context import ServerCallContext

MAX_TASKS = 1000
MAX_BYTES = 64 * 1024 * 1024
OVERHEAD_BYTES = 512  # what holding a task costs beside its own bytes
MAX_AGE_SECONDS = 24 * 3600.0
FORGOTTEN_MAX = 10_000  # ids alone


@dataclass(frozen=True, slots=True)
class _Kept:
    saved: float
    serialized: bytes
    context: str

    @property
    def size(self) -> int:
        return len(self.serialized) + OVERHEAD_BYTES


class BoundedTaskStore(TaskStore):
    """Keeps the tasks saved last: `max_tasks`, `max_bytes` in all, none older than `max_age_seconds`.

    They are kept serialized: so nobody's change reaches them, and their size is what they take.
    """

    def __init__(
        self,
        max_tasks: int = MAX_TASKS,
        max_age_seconds: float = MAX_AGE_SECONDS,
        *,
        max_bytes: int = MAX_BYTES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_tasks = max_tasks
        self._max_bytes = max_bytes
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._tasks: OrderedDict[str, _Kept] = OrderedDict()
        self._forgotten: OrderedDict[str, None] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        """Count the tasks that are held."""
        return len(self._tasks)

    async def save(self, task: Task, context: ServerCallContext) -> None:
        """Keep a task as it is now, unless it has been forgotten: the SDK may save it once more."""
        del context
        if task.id in self._forgotten:
            return
        self._forget(task.id)
        kept = _Kept(self._clock(), task.SerializeToString(), task.context_id)
        self._tasks[task.id] = kept
        self.size_bytes += kept.size
        self._evict()

    async def get(self, task_id: str, context: ServerCallContext) -> Task | None:
        """Return a copy of a task, or None."""
        del context
        self._evict()
        kept = self._tasks.get(task_id)
        return Task.FromString(kept.serialized) if kept else None

    async def list(self, params: ListTasksRequest, context: ServerCallContext) -> ListTasksResponse:
        """Refuse: there is nobody here who may see more than one task."""
        del params, context
        raise UnsupportedOperationError

    async def delete(self, task_id: str, context: ServerCallContext) -> None:
        """Forget a task."""
        del context
        self._forget(task_id)

    def context_of(self, task_id: str) -> str | None:
        """Return the context of a task that is held, else None."""
        kept = self._tasks.get(task_id)
        return kept.context if kept else None

    def chosen(self, wanted: Callable[[str, str], bool]) -> set[str]:
        """Return the ids of the tasks that `wanted` chooses by task and context id."""
        return {task_id for task_id, kept in self._tasks.items() if wanted(task_id, kept.context)}

    def forget(self, task_ids: Iterable[str]) -> int:
        """Forget tasks, whatever is saved of them later, and count those that were held."""
        before = len(self._tasks)
        for task_id in task_ids:
            self._forget(task_id)
            self._forgotten[task_id] = None
        while len(self._forgotten) > FORGOTTEN_MAX:
            self._forgotten.popitem(last=False)
        return before - len(self._tasks)

    def sweep(self) -> None:
        """Let go of what is too old now, though nobody asks."""
        self._evict()

    def _forget(self, task_id: str) -> None:
        kept = self._tasks.pop(task_id, None)
        if kept is not None:
            self.size_bytes -= kept.size

    def _evict(self) -> None:
        oldest = self._clock() - self._max_age_seconds
        while self._tasks:
            task_id, kept = next(iter(self._tasks.items()))
            fits = len(self._tasks) <= self._max_tasks and self.size_bytes <= self._max_bytes
            if kept.saved >= oldest and fits:
                return
            self._forget(task_id)
