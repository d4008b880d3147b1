"""Cancels and services told to end, at each point of a turn; deadlines in a queue; messages without one."""

from __future__ import annotations

import contextlib
import signal
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx2 as httpx
import pytest

from tests.endings.conftest import PLACES, Watched, told_by
from tests.endings.row import HANG, SHOWN, result, used
from tests.endings.services import (
    CANCELLED_LATE,
    CANCELS,
    FRONT_ENDS,
    LEFT,
    QUEUED_TOO_LONG,
    REFUSALS,
    SPAWNER_ENDS,
)
from tests.harness import contract
from tests.harness.engine_proxy import Operation
from tests.harness.quick_cli import script
from tests.harness.stack import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.endings.conftest import World
    from tests.endings.row import Row
    from tests.harness.contract import Told

pytestmark = pytest.mark.engine

STAYS: Final = script([*SHOWN, HANG])
NOT_CANCELABLE: Final = -32002


def shown(event: dict[str, Any]) -> bool:
    return str(event["kind"]) == "artifact-update"


def says(word: str, event: dict[str, Any]) -> bool:
    return event["kind"] == "status-update" and word in str(event["status"]["message"]["parts"][0]["text"])


@dataclass
class Points:
    """Turns that stand still, one at each point of a turn, until they are let go."""

    world: World
    turns: dict[str, Watched] = field(default_factory=dict)
    _held: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def stand_still(self) -> None:
        """Bring a turn to each point. Those that start late wait for the model, which is told when."""
        context = str(uuid.uuid4())
        self.turns["in mid-output"] = self.world.watch(STAYS, context=context)
        self.turns["in mid-output"].until(shown, "some of the answer")
        self.turns["queued"] = self.world.watch(STAYS, context=context)
        after, let_after = self._waits(used("Glob"), result(), HANG)
        cleanup, let_cleanup = self._waits(result())
        for point, operation in (("at the start", Operation.START), ("before the start", Operation.CREATE)):
            gate = self._held.enter_context(self.world.proxy.at(operation))
            self.turns[point] = self.world.watch(STAYS)
            assert gate.reached.wait(timeout=10)
        gate = self._held.enter_context(self.world.proxy.at(Operation.WAIT))
        self.turns["during the cleanup"], self.turns["after the result"] = cleanup, after
        self.world.services.release(let_cleanup)
        assert gate.reached.wait(timeout=10)
        self.world.services.release(let_after)
        after.until(lambda event: says("Looking", event), "the step before the result")

    def go_on(self) -> None:
        """Let go of what is held at the engine."""
        self._held.close()

    def told(self, *points: str) -> dict[str, Told]:
        """Return what was told to those who watched at some points, or at all."""
        return {point: told_by(self.turns[point].reply()) for point in points or self.turns}

    def _waits(self, *steps: dict[str, Any]) -> tuple[Watched, str]:
        """Start a turn that goes on when the model answers; returns it and what to release for that."""
        marker = self.world.services.script({"text": "go on", "hold": True})
        messages = [{"role": "user", "content": marker}]
        turn = self.world.watch(script([{"ask": {"messages": messages}}, *steps]))
        eventually(lambda: self.world.services.asked(marker), what="the model being asked")
        return turn, marker


@pytest.fixture
def points(alone: World) -> Iterator[Points]:
    held = Points(alone)
    try:
        held.stand_still()
        yield held
    finally:
        held.go_on()


def expected(rows: Mapping[str, Row], *points: str) -> dict[str, Told]:
    return {point: row.told for point, row in rows.items() if not points or point in points}


# -- cancels ------------------------------------------------------------------------------------------------
@pytest.mark.control("ANS-01", "LIFE-01")
def test_a_turn_that_is_cancelled_at_any_point_is_told_so(points: Points) -> None:
    world = points.world
    assert told_by(world.cancelled_reply(points.turns["queued"])) == CANCELS["queued"].told
    others = {point: turn for point, turn in points.turns.items() if point != "queued"}
    asked = {point: world.cancelling(turn) for point, turn in others.items()}
    told = points.told()
    points.go_on()
    assert told == expected(CANCELS)
    for point, cancelling in asked.items():
        assert contract.of_task(cancelling.result(20)["result"]) == CANCELS[point].told, point


@pytest.mark.control("ANS-01")
def test_an_answer_that_is_there_stays_when_it_is_cancelled(alone: World) -> None:
    turn = alone.watch(script([result()]))
    before = told_by(turn.reply())
    assert alone.services.cancel(turn.task)["error"]["code"] == NOT_CANCELABLE
    assert contract.of_task(alone.services.task(turn.task)) == before == CANCELLED_LATE.told


@pytest.mark.control("ANS-01", "LIFE-01")
def test_a_turn_that_nobody_watches_any_more_is_cancelled(alone: World) -> None:
    services = alone.services
    before = len(services.receipts())
    with services.stream(STAYS) as events:
        task = next(events)["id"]
        next(event for event in events if shown(event))
    with pytest.raises(httpx.ReadTimeout):
        services.ask(STAYS, seconds=1.0)
    eventually(lambda: len(services.receipts()) == before + 2, what="both receipts")
    on_a_stream, on_a_call = LEFT
    assert contract.of_task(services.task(task)) == on_a_stream.told
    assert {line["cause"] for line in services.receipts()[before:]} == {on_a_call.outcome}


# -- services that are told to end --------------------------------------------------------------------------
@pytest.mark.control("ANS-01", "LOAD-03", "LIFE-01")
def test_a_front_that_is_told_to_end_gives_every_turn_its_one_answer(points: Points) -> None:
    world = points.world
    world.services.front.send(signal.SIGTERM)
    assert points.told("queued") == expected(FRONT_ENDS, "queued")
    assert told_by(world.services.ask("And me?")) == REFUSALS["stopping"].told
    finishing = ("after the result", "during the cleanup")
    assert points.told(*finishing) == expected(FRONT_ENDS, *finishing)
    world.services.front.send(signal.SIGTERM)
    hurried = ("before the start", "at the start", "in mid-output")
    told = points.told(*hurried)
    points.go_on()
    assert told == expected(FRONT_ENDS, *hurried)
    assert world.services.front.ended() == 0


@pytest.mark.control("ANS-01", "LIFE-01")
def test_a_spawner_that_is_told_to_end_gives_every_turn_its_one_answer(points: Points) -> None:
    world = points.world
    world.services.spawner.send(signal.SIGTERM)
    eventually(lambda: not world.services.is_well("spawner"), what="a spawner that stops")
    points.go_on()
    assert points.told() == expected(SPAWNER_ENDS)
    assert world.services.spawner.ended() == 0


def test_a_front_that_is_killed_ends_its_turn_at_the_spawner(alone: World) -> None:
    turn = alone.watch(STAYS)
    turn.until(shown, "some of the answer")
    before = len(alone.services.spawner.lines("turn-ended"))
    alone.services.front.kill()
    with pytest.raises(httpx.RemoteProtocolError):
        turn.reply()
    alone.nothing_stays()
    lines = alone.services.spawner.lines("turn-ended")[before:]
    assert [line["reason"] for line in lines] == ["disconnect"]


# -- a queue, and messages without a turn -------------------------------------------------------------------
@pytest.mark.control("ANS-01")
def test_a_deadline_in_the_queue_is_told_as_one(alone: World) -> None:
    context = str(uuid.uuid4())
    with alone.proxy.at(Operation.KILL), alone.proxy.at(Operation.REMOVE):
        first = alone.watch(STAYS, "brief", context)
        first.until(shown, "some of the answer")
        second = alone.watch(STAYS, "brief", context)
        assert told_by(first.reply()) == told_by(second.reply()) == QUEUED_TOO_LONG.told
    assert contract.snapshots(second.events) == []


@pytest.mark.control("ANS-01", "LOAD-01")
def test_a_message_that_gets_no_turn_is_told_why(alone: World) -> None:
    ask = alone.services.ask
    held = alone.watch(STAYS, "single")
    held.until(shown, "some of the answer")
    got = {
        "empty": told_by(ask(" \n")),
        "too long": told_by(ask("x" * 32_001)),
        "no place at the front": told_by(ask("Hello", "single")),
    }
    alone.cancelled_reply(held)
    assert got == expected(REFUSALS, *got)


@pytest.mark.control("ANS-01", "LOAD-02")
def test_a_message_to_a_long_queue_is_told_that_the_agent_is_busy(alone: World) -> None:
    context = str(uuid.uuid4())
    waiting = [alone.watch(STAYS, context=context)]
    waiting[0].until(shown, "some of the answer")
    for _ in range(4):
        waiting.append(alone.watch(STAYS, context=context))
        waiting[-1].until(lambda event: says("Working", event), "its place in the queue")
    told = told_by(alone.services.ask("Hello", context=context))
    for turn in reversed(waiting):
        alone.cancelled_reply(turn)
    assert told == REFUSALS["a full queue"].told


@pytest.mark.control("ANS-01", "LOAD-04")
def test_a_turn_beyond_the_spawners_ceiling_is_told_that_the_agent_is_busy(alone: World) -> None:
    held = [alone.watch(STAYS) for _ in range(PLACES)]
    for turn in held:
        turn.until(shown, "some of the answer")
    told = told_by(alone.services.ask("Hello", "poor"))
    for turn in held:
        alone.cancelled_reply(turn)
    assert told == REFUSALS["no place at the spawner"].told


@pytest.mark.control("ANS-01")
def test_a_spawner_that_knows_no_such_agent_is_told_as_a_fault_of_ours(alone: World) -> None:
    spawner = alone.services.spawner
    environment = spawner.environment
    spawner.kill()
    spawner.environment = {**environment, "GATEHOUSE_AGENT": "tester"}
    try:
        spawner.start()
        eventually(lambda: alone.services.is_well("spawner"), what="a spawner that is ready")
        told = told_by(alone.services.ask("Hello", "poor"))
        spawner.kill()
    finally:
        spawner.environment = environment
    assert told == REFUSALS["no such agent at the spawner"].told
