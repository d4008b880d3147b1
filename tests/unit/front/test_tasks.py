"""The task store: bounded in number and age, copies in and out, no list."""

from __future__ import annotations

import pytest
from a2a.server.context import ServerCallContext
from a2a.types import ListTasksRequest, Task
from a2a.utils.errors import UnsupportedOperationError

from runtime.front.tasks import BoundedTaskStore

CALL = ServerCallContext()


async def test_the_oldest_task_goes_when_there_are_too_many() -> None:
    store = BoundedTaskStore(max_tasks=2)
    for name in ("a", "b"):
        await store.save(Task(id=name), CALL)
    await store.save(Task(id="a"), CALL)
    await store.save(Task(id="c"), CALL)
    assert len(store) == 2
    assert await store.get("b", CALL) is None
    assert await store.get("a", CALL) is not None


async def test_a_task_is_gone_after_its_age() -> None:
    now = 0.0
    store = BoundedTaskStore(max_age_seconds=10, clock=lambda: now)
    await store.save(Task(id="a"), CALL)
    now = 10.5
    assert await store.get("a", CALL) is None
    assert len(store) == 0


@pytest.mark.control("WIRE-03")
async def test_the_oldest_tasks_go_when_they_take_too_many_bytes() -> None:
    store = BoundedTaskStore(max_bytes=100_000)
    for number in range(50):
        task = Task(id=str(number))
        task.history.add().parts.add().text = "x" * 20_000
        await store.save(task, CALL)
        assert store.size_bytes <= 100_000
    assert len(store) == 4
    assert await store.get("49", CALL) is not None
    await store.save(Task(id="49"), CALL)
    await store.delete("48", CALL)
    assert store.size_bytes < 50_000
    for number in range(50):
        await store.delete(str(number), CALL)
    assert store.size_bytes == 0


async def test_a_caller_s_change_does_not_reach_the_store() -> None:
    store = BoundedTaskStore()
    task = Task(id="a", context_id="c")
    await store.save(task, CALL)
    task.context_id = "changed"
    found = await store.get("a", CALL)
    assert found is not None
    found.context_id = "changed too"
    again = await store.get("a", CALL)
    assert again is not None
    assert again.context_id == "c"


@pytest.mark.control("WIRE-02")
async def test_listing_is_refused_and_deleting_forgets() -> None:
    store = BoundedTaskStore()
    await store.save(Task(id="a"), CALL)
    with pytest.raises(UnsupportedOperationError):
        await store.list(ListTasksRequest(), CALL)
    await store.delete("a", CALL)
    await store.delete("a", CALL)
    assert await store.get("a", CALL) is None
