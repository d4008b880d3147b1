from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING, Any

import pytest
from a2a.server.context import ServerCallContext
from a2a.types import Task
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import ServiceUnreachable, UsageError
from runtime.front.forget import Forget, Reach, Wanted, reach, sweep, wanted
from runtime.front.memory import Memory
from runtime.front.tasks import BoundedTaskStore
from runtime.turn.plan import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable

CONTEXT = "7D0C1A52-6A0E-4D55-9C3E-0D3F6F1F2F61"
TASK = "0b0f4f7e-5e58-4b4e-8a0e-3d9f0a1b2c3d"


@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ('{"all": true}', Wanted(everything=True)),
        (f'{{"context": "{CONTEXT}"}}', Wanted(context=CONTEXT.lower())),
        ('{"context": "Shop"}', Wanted(context="Shop")),
        (f'{{"task": " {TASK.upper()} "}}', Wanted(task=TASK)),
    ],
)
def test_one_thing_is_asked_for_and_uuids_in_any_case(body: str, asked: Wanted) -> None:
    assert wanted(body.encode()) == asked


@pytest.mark.parametrize(
    "body",
    [
        *("", "{}", "[]", "null", '"x"', '{"context": 1}', '{"context": " "}', '{"task": ""}', "\xff"),
        *('{"all": false}', '{"all": 1}', '{"all": "true"}', '{"all": true, "task": "x"}', '{"tasks": "x"}'),
        *('{"all": true, "all": true}', '{"task": "7"}', f'{{"task": "{{{TASK}}}"}}'),
        f'{{"task": "{TASK.replace("-", "")}"}}',
    ],
)
def test_anything_else_is_refused_without_repeating_it(body: str) -> None:
    with pytest.raises(UsageError) as caught:
        wanted(body.encode("latin-1"))
    assert TASK not in str(caught.value)
    assert caught.value.hint


@given(st.binary(max_size=200))
def test_no_body_is_anything_but_asked_for_or_refused(body: bytes) -> None:
    try:
        asked = wanted(body)
    except UsageError:
        return
    assert [bool(asked.context), bool(asked.task), asked.everything].count(True) == 1


def test_a_task_takes_its_whole_conversation_and_alone_where_anybody_may_share_the_context() -> None:
    assert reach(Wanted(task=TASK), CONTEXT) == Reach(context=CONTEXT.lower())
    shared = reach(Wanted(task=TASK), "shop")
    assert shared == Reach(task=TASK)
    assert shared.takes(TASK, "shop")
    assert not shared.takes("another", "shop")


def test_a_context_takes_all_its_tasks_and_nobody_else_s() -> None:
    mine = reach(Wanted(context=CONTEXT.lower()), None)
    assert mine.takes("any", CONTEXT)
    assert not mine.takes("any", str(uuid.uuid4()))
    named = reach(Wanted(context="Shop"), None)
    assert named.takes("any", "Shop")
    assert not named.takes("any", "shop")


def test_all_takes_all() -> None:
    assert reach(Wanted(everything=True), None).takes("any", "")


class Executor:
    """Holds turns by task id, none of which ends by itself; it leaves out everything else."""

    def __init__(self, **turns: asyncio.Event) -> None:
        self.turns = turns

    def context_of(self, _task_id: str) -> str | None:
        return None

    def forget(self, _wanted: Callable[[str, str], bool]) -> dict[str, asyncio.Event]:
        return self.turns

    def lately(self, _wanted: Callable[[str, str], bool]) -> set[str]:
        return set()


class Handler:
    """Says that a task was cancelled; it leaves out everything else."""

    async def on_cancel_task(self, *_: Any) -> None:
        return None


async def test_a_turn_that_does_not_end_is_told_and_what_is_held_beside_it_goes() -> None:
    memory, store = Memory(5, 5), BoundedTaskStore()
    async with memory.turn(CONTEXT):
        memory.remember(CONTEXT, Exchange("q", "a"))
    for name in ("hangs", "done"):
        await store.save(Task(id=name, context_id=CONTEXT), ServerCallContext())
    executor: Any = Executor(hangs=asyncio.Event())
    handler: Any = Handler()
    forget = Forget(executor, handler, memory, store, end_seconds=0.01)
    with pytest.raises(ServiceUnreachable, match="1 of the turns did not end"):
        await forget(b'{"all": true}')
    assert (len(memory), len(store)) == (0, 0)


@pytest.mark.control("MEM-03")
async def test_a_front_that_nobody_asks_forgets_what_is_too_old() -> None:
    now, rounds = 0.0, asyncio.Queue[None]()
    memory = Memory(5, 5, clock=lambda: now)
    store = BoundedTaskStore(clock=lambda: now)
    async with memory.turn(CONTEXT):
        memory.remember(CONTEXT, Exchange("q", "a"))
    await store.save(Task(id=TASK, context_id=CONTEXT), ServerCallContext())
    sweeping = asyncio.create_task(sweep(memory, store, pause=rounds.get))
    held = []
    for hours in (23.9, 24.1):
        now = hours * 3600
        rounds.put_nowait(None)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        held.append((len(memory), len(store)))
    sweeping.cancel()
    assert held == [(1, 1), (0, 0)]
