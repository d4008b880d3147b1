"""Readiness: the spawner's word, asked rarely, and a definition that both share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from runtime.errors import DefinitionMismatch, ServiceUnreachable
from runtime.front.readiness import Readiness

if TYPE_CHECKING:
    from collections.abc import Callable


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the object under test has no event for it."""
    while not condition():  # noqa: ASYNC110  a state of the object, not an event of ours
        await asyncio.sleep(0)


class Spawner:
    def __init__(self, *answers: dict[str, Any] | OSError) -> None:
        self.answers = list(answers)
        self.asked = 0

    async def agent(self, agent: str) -> dict[str, Any]:
        assert agent == "ada"
        self.asked += 1
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, OSError):
            raise answer
        return answer


GOOD = {"id": "ada", "digest": "d", "pack": "p", "demo": True}


async def test_a_start_waits_until_the_spawner_answers() -> None:
    spawner = Spawner(OSError("not yet"), OSError("not yet"), GOOD)
    readiness = Readiness(spawner, "ada", "d")
    await readiness.wait(5, poll_seconds=0)
    assert spawner.asked == 3
    assert readiness.demo is True
    assert await readiness.ask() is None
    assert spawner.asked == 3


async def test_a_spawner_that_never_answers_is_unreachable() -> None:
    with pytest.raises(ServiceUnreachable, match="not yet") as caught:
        await Readiness(Spawner(OSError("not yet")), "ada", "d").wait(0, poll_seconds=0)
    assert caught.value.exit_code == 8


async def test_another_definition_refuses_the_start() -> None:
    with pytest.raises(DefinitionMismatch) as caught:
        await Readiness(Spawner(GOOD), "ada", "other").wait(5, poll_seconds=0)
    assert caught.value.exit_code == 8


async def test_a_spawner_that_goes_away_later_is_a_reason_and_comes_back() -> None:
    now = 0.0
    spawner = Spawner(GOOD, OSError("gone"), GOOD | {"digest": "new"}, GOOD)
    readiness = Readiness(spawner, "ada", "d", clock=lambda: now)
    await readiness.wait(5, poll_seconds=0)
    reasons = []
    for moment in (1.0, 3.0, 6.0, 9.0):
        now = moment
        reasons.append(await readiness.ask())
    assert reasons == [None, "gone", "the spawner serves another definition of the agent", None]


async def test_whether_it_is_the_demo_is_kept_fresh_while_nobody_asks() -> None:
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 10
        return now

    readiness = Readiness(Spawner(GOOD, GOOD, GOOD | {"demo": False}), "ada", "d", clock=clock)
    await readiness.wait(5, poll_seconds=0)
    assert readiness.demo is True
    refreshing = asyncio.create_task(readiness.keep_fresh(poll_seconds=0))
    async with asyncio.timeout(5):
        await until(lambda: not readiness.demo)
    refreshing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await refreshing
