"""Conversations: bounded in number, length and age, and only for ids that nobody can guess."""

from __future__ import annotations

import asyncio
import uuid
from typing import TYPE_CHECKING

import pytest

from runtime.front.memory import MAX_AGE_SECONDS, Memory, carries_memory
from runtime.turn.plan import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the object under test has no event for it."""
    async with asyncio.timeout(5):
        while not condition():  # noqa: ASYNC110  a state of the object, not an event of ours
            await asyncio.sleep(0)


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


async def say(memory: Memory, context: str, text: str) -> tuple[Exchange, ...]:
    async with memory.turn(context) as transcript:
        memory.remember(context, Exchange(text, f"re: {text}"))
        return transcript


def ids(count: int) -> list[str]:
    return [str(uuid.uuid4()) for _ in range(count)]


@pytest.mark.control("MEM-01")
@pytest.mark.parametrize(
    ("context", "expected"),
    [
        ("6d0ad0a1-6a3c-4b8e-9d9a-1f8c53b6f2aa", True),
        ("6D0AD0A1-6A3C-4B8E-9D9A-1F8C53B6F2AA", True),
        ("01890a5d-ac96-774b-bcce-b302099a8057", True),
        ("00000000-0000-0000-0000-000000000000", False),
        ("6ba7b810-9dad-11d1-80b4-00c04fd430c8", False),
        ("default", False),
        ("", False),
        ("6d0ad0a1-6a3c-4b8e-9d9a-1f8c53b6f2aa\n", False),
        ("6d0ad0a16a3c4b8e9d9a1f8c53b6f2aa", False),
    ],
)
def test_only_random_uuids_carry_memory(context: str, expected: bool) -> None:
    assert carries_memory(context) is expected


async def test_only_the_last_exchanges_are_kept() -> None:
    memory = Memory(10, 2)
    (context,) = ids(1)
    for text in "abc":
        await say(memory, context, text)
    assert await say(memory, context, "d") == (Exchange("b", "re: b"), Exchange("c", "re: c"))


async def test_the_least_recently_used_context_goes_first_and_reading_refreshes() -> None:
    memory = Memory(2, 5)
    one, two, three = ids(3)
    await say(memory, one, "1")
    await say(memory, two, "2")
    await say(memory, one, "1 again")
    await say(memory, three, "3")
    assert len(memory) == 2
    assert await say(memory, two, "x") == ()


async def test_a_context_is_forgotten_after_a_day() -> None:
    clock = Clock()
    memory = Memory(10, 5, clock=clock)
    (context,) = ids(1)
    await say(memory, context, "a")
    clock.now += MAX_AGE_SECONDS + 1
    assert await say(memory, context, "b") == ()


@pytest.mark.control("MEM-01")
async def test_a_conversation_in_which_a_turn_runs_is_not_forgotten() -> None:
    clock = Clock()
    memory = Memory(1, 5, max_bytes=1, clock=clock)
    running, *others = ids(4)
    async with memory.turn(running):
        for other in others:
            await say(memory, other, "x")
        clock.now += MAX_AGE_SECONDS + 1
        async with memory.turn(others[0]):
            assert memory.waiting(running) == 0
            waiting = asyncio.create_task(say(memory, running, "second"))
            await until(lambda: memory.waiting(running) == 1)
        memory.remember(running, Exchange("first", "answer"))
    assert await waiting == (Exchange("first", "answer"),)


async def test_a_turn_s_end_counts_as_its_conversation_s_use() -> None:
    memory = Memory(1, 5)
    long, short = ids(2)
    async with memory.turn(long):
        await say(memory, short, "x")
        memory.remember(long, Exchange("first", "answer"))
    assert await say(memory, long, "y") == (Exchange("first", "answer"),)


async def test_conversations_go_when_they_take_too_many_bytes() -> None:
    memory = Memory(1000, 50, max_bytes=200_000)
    contexts = ids(20)
    for context in contexts:
        await say(memory, context, "é" * 10_000)
        assert memory.size_bytes <= 200_000
    assert 0 < len(memory) < 20
    assert len(await say(memory, contexts[-1], "again")) == 1
    assert await say(memory, contexts[0], "again") == ()


async def test_exchanges_that_no_prompt_has_room_for_are_forgotten() -> None:
    memory = Memory(10, 200)
    (context,) = ids(1)
    for number in range(30):
        async with memory.turn(context):
            memory.remember(context, Exchange(f"{number}", "x" * 60_000))
    transcript = await say(memory, context, "now")
    assert [one.visitor for one in transcript] == ["26", "27", "28", "29"]
    assert memory.size_bytes < 300_000


async def test_what_is_forgotten_is_not_counted() -> None:
    memory = Memory(3, 5)
    for context in ids(10):
        await say(memory, context, "x" * 1000)
    async with memory.turn(ids(1)[0]):
        pass
    assert len(memory) == 3
    assert memory.size_bytes < 3 * 4000


async def test_a_turn_that_leaves_nothing_holds_no_place() -> None:
    memory = Memory(1, 5)
    kept, passing = ids(2)
    await say(memory, kept, "a")
    async with memory.turn(passing) as transcript:
        assert transcript == ()
    assert len(await say(memory, kept, "b")) == 1


async def test_the_case_of_an_id_does_not_matter() -> None:
    memory = Memory(10, 5)
    (context,) = ids(1)
    await say(memory, context.upper(), "a")
    assert len(await say(memory, context, "b")) == 1


async def test_turns_of_a_context_wait_for_each_other_and_others_do_not() -> None:
    memory = Memory(10, 5)
    one, two = ids(2)
    order: list[str] = []

    async def turn(context: str, name: str) -> None:
        async with memory.turn(context):
            order.append(name)

    async with memory.turn(one):
        waiting = asyncio.create_task(turn(one, "waited"))
        await until(lambda: memory.waiting(one) == 1)
        await turn(two, "other")
        assert order == ["other"]
    await waiting
    assert order == ["other", "waited"]
    assert memory.waiting(one) == 0


async def test_a_cancelled_waiter_leaves_no_trace() -> None:
    memory = Memory(10, 5)
    (context,) = ids(1)

    async def turn() -> None:
        async with memory.turn(context):
            raise AssertionError

    async with memory.turn(context):
        waiting = asyncio.create_task(turn())
        await until(lambda: memory.waiting(context) == 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert memory.waiting(context) == 0
    assert await say(memory, context, "a") == ()


async def test_contexts_without_memory_never_wait() -> None:
    memory = Memory(10, 5)
    async with memory.turn("default"), memory.turn("default") as transcript:
        assert transcript == ()
    assert len(memory) == 0


async def test_lower_limits_take_the_oldest_exchanges_and_the_least_recently_used_conversations() -> None:
    memory = Memory(10, 5)
    contexts = ids(4)
    for context in contexts:
        for text in "abc":
            await say(memory, context, text)
    before = memory.size_bytes
    memory.bound(2, 1)
    assert len(memory) == 2
    assert memory.size_bytes < before / 4
    assert await say(memory, contexts[3], "d") == (Exchange("c", "re: c"),)
    assert await say(memory, contexts[3], "e") == (Exchange("d", "re: d"),)
    assert await say(memory, contexts[0], "d") == ()


async def test_higher_limits_hold_for_what_comes_and_bring_nothing_back() -> None:
    memory = Memory(10, 1)
    (context,) = ids(1)
    for text in "ab":
        await say(memory, context, text)
    memory.bound(10, 3)
    await say(memory, context, "c")
    assert [one.visitor for one in await say(memory, context, "d")] == ["b", "c"]


async def test_a_turn_that_runs_while_the_limits_change_is_remembered_within_the_new_ones() -> None:
    memory = Memory(10, 5)
    running, other = ids(2)
    await say(memory, running, "a")
    await say(memory, running, "b")
    async with memory.turn(running) as transcript:
        assert len(transcript) == 2
        memory.bound(1, 2)
        assert len(memory) == 1
        memory.remember(running, Exchange("c", "re: c"))
        await say(memory, other, "x")
    assert [one.visitor for one in await say(memory, running, "d")] == ["b", "c"]


async def test_no_turns_remembered_is_a_limit_too() -> None:
    memory = Memory(10, 5)
    (context,) = ids(1)
    await say(memory, context, "a")
    memory.bound(10, 0)
    assert await say(memory, context, "b") == ()
    assert await say(memory, context, "c") == ()
