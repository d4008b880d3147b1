"""Readiness: the spawner's word, asked rarely, and a definition that both share."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from runtime.errors import DefinitionMismatch, ServiceUnreachable
from runtime.front.readiness import FRESH_SECONDS, LASTING_SECONDS, Readiness

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
    spawner = Spawner(GOOD, OSError("gone"), GOOD)
    readiness = Readiness(spawner, "ada", "d", clock=lambda: now)
    await readiness.wait(5, poll_seconds=0)
    reasons = []
    for moment in (1.0, 3.0, 6.0):
        now = moment
        reasons.append(await readiness.ask())
    assert reasons == [None, "gone", None]


async def test_another_definition_is_a_reason_only_once_it_has_lasted_longer_than_a_reload_of_both() -> None:
    now = 0.0
    spawner = Spawner(GOOD)
    readiness = Readiness(spawner, "ada", "d", clock=lambda: now)
    await readiness.wait(5, poll_seconds=0)
    spawner.answers = [GOOD | {"digest": "new", "pack": "q"}]
    reasons = {}
    for moment in (5.0, 15.0, 5.0 + LASTING_SECONDS - 1, 5.0 + LASTING_SECONDS + FRESH_SECONDS):
        now = moment
        reasons[moment] = await readiness.ask()
    assert list(reasons.values()) == [None, None, None, "the spawner serves another definition of the agent"]
    assert (readiness.digest, readiness.spawner_digest, readiness.pack) == ("d", "new", "q")
    spawner.answers = [GOOD]
    now += FRESH_SECONDS
    assert await readiness.ask() is None


async def test_definitions_that_differ_again_later_have_their_whole_time_again() -> None:
    now = 0.0
    spawner = Spawner(GOOD)
    readiness = Readiness(spawner, "ada", "d", clock=lambda: now)
    await readiness.wait(5, poll_seconds=0)
    for _ in range(3):
        spawner.answers = [GOOD | {"digest": "new"}]
        now += FRESH_SECONDS
        assert await readiness.ask() is None
        now += LASTING_SECONDS - 1
        assert await readiness.ask() is None
        spawner.answers = [GOOD]
        now += FRESH_SECONDS
        assert await readiness.ask() is None


async def test_a_new_definition_that_the_spawner_serves_too_ends_not_ready_at_once() -> None:
    now = 0.0
    spawner = Spawner(GOOD | {"digest": "new"})
    readiness = Readiness(spawner, "ada", "d", clock=lambda: now)
    assert await readiness.ask() is None
    now = LASTING_SECONDS
    assert await readiness.ask() is not None
    readiness.expect("new", "q")
    assert (readiness.digest, readiness.pack, readiness.reason) == ("new", "q", None)
    assert await readiness.ask() is None
    assert spawner.asked == 3


async def test_an_answer_that_was_on_its_way_during_the_swap_is_judged_by_the_new_definition() -> None:
    asked, release = asyncio.Event(), asyncio.Event()

    class Slow(Spawner):
        async def agent(self, agent: str) -> dict[str, Any]:
            asked.set()
            await release.wait()
            return await super().agent(agent)

    readiness = Readiness(Slow(GOOD), "ada", "old", clock=lambda: 0.0)
    asking = asyncio.create_task(readiness.ask())
    await asked.wait()
    readiness.expect("d", "q")
    release.set()
    assert await asking is None
    assert readiness.spawner_digest == "d"


async def test_a_spawner_that_runs_the_definition_no_more_is_a_reason_at_once() -> None:
    now = 0.0
    spawner = Spawner(GOOD | {"previous": None, "reason": None})
    readiness = Readiness(spawner, "ada", "d", clock=lambda: now)
    await readiness.wait(5, poll_seconds=0)
    reasons = []
    for previous in ("d", "other", None):
        spawner.answers = [GOOD | {"digest": "new", "previous": previous, "reason": None}]
        now += FRESH_SECONDS
        reasons.append(await readiness.ask())
    said = "the spawner runs the definition no more that the front serves"
    assert reasons == [None, said, said]


async def test_a_spawner_that_would_answer_nobody_is_a_reason_and_what_is_unknown_stays_as_it_was() -> None:
    now = 0.0
    away = GOOD | {"demo": None, "reason": "the model proxy does not answer"}
    readiness = Readiness(Spawner(away, away, GOOD, away), "ada", "d", clock=lambda: now)
    assert await readiness.ask() == away["reason"]
    await readiness.wait(5, poll_seconds=0)
    assert (await readiness.ask(), readiness.demo) == (None, True)
    now = FRESH_SECONDS
    assert (await readiness.ask(), readiness.demo) == (away["reason"], True)


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
