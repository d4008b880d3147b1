"""Spawner, model proxy and front killed, frozen, ended and started again while a turn runs."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest

from tests.harness.stack import eventually

if TYPE_CHECKING:
    from tests.faults.conftest import Faults

pytestmark = pytest.mark.engine


# --- the spawner -----------------------------------------------------------------------------------------
@pytest.mark.control("LIFE-03", "ANS-01")
def test_a_spawner_killed_in_mid_turn_is_told_at_once_and_clears_up_when_it_is_back(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.services.spawner.kill()
        assert faults.told(reply.result()) == "spawner"
    assert len(faults.engine.turns()) == 1, "nobody is there to remove it"
    faults.heal()
    faults.nothing_is_left()


def test_a_visitor_without_a_spawner_is_told_at_once(faults: Faults) -> None:
    faults.services.spawner.kill()
    assert faults.told(faults.ask(persona="brief")) == "spawner"
    faults.heal()
    faults.nothing_is_left()


def test_a_spawner_frozen_in_mid_turn_is_told_in_time_and_clears_up_when_it_goes_on(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.services.spawner.send(signal.SIGSTOP)
        assert faults.told(reply.result()) == "timeout"
    faults.services.spawner.send(signal.SIGCONT)
    faults.nothing_is_left()


@pytest.mark.control("LIFE-01", "ANS-01")
def test_a_spawner_that_is_told_to_end_in_mid_turn_removes_the_container_first(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.services.spawner.send(signal.SIGTERM)
        assert faults.told(reply.result()) == "spawner"
    assert faults.services.spawner.ended() == 0
    assert faults.engine.turns() == []
    faults.heal()
    faults.nothing_is_left()


# --- the model proxy -------------------------------------------------------------------------------------
@pytest.mark.control("DOOR-02", "ANS-01")
def test_a_model_proxy_killed_in_mid_turn_is_told_at_once(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.services.modelproxy.kill()
        assert faults.told(reply.result()) == "model"
    faults.heal()
    faults.nothing_is_left()


def test_a_model_proxy_frozen_in_mid_turn_is_told_in_time(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.services.modelproxy.send(signal.SIGSTOP)
        assert faults.told(reply.result()) == "timeout"
    faults.a_door_is_left_to_its_deadline()
    faults.services.modelproxy.send(signal.SIGCONT)
    faults.nothing_is_left()


def test_a_model_that_never_answers_is_told_as_a_timeout_and_not_as_its_own_failure(faults: Faults) -> None:
    assert faults.told(faults.ask({"hang": True}, persona="brief")) == "timeout"
    faults.nothing_is_left()


def test_a_model_proxy_frozen_before_the_turn_is_told_and_opens_no_door_later(faults: Faults) -> None:
    faults.services.modelproxy.send(signal.SIGSTOP)
    assert faults.told(faults.ask()) == "engine"
    faults.services.modelproxy.send(signal.SIGCONT)
    faults.nothing_is_left()


# --- the front -------------------------------------------------------------------------------------------
@pytest.mark.control("LIFE-01")
def test_a_front_killed_in_mid_turn_leaves_nothing_and_serves_again_when_it_is_back(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.services.front.kill()
        assert isinstance(reply.exception(), httpx.RemoteProtocolError), "nobody is there to answer"
    faults.nothing_stays()
    faults.heal()
    faults.nothing_is_left()


@pytest.mark.control("LOAD-03", "ANS-01", "LIFE-01")
def test_a_front_that_is_told_to_end_at_once_in_mid_turn_answers_and_removes_the_container_first(
    faults: Faults,
) -> None:
    with faults.in_mid_turn() as reply:
        faults.services.front.send(signal.SIGTERM)
        eventually(lambda: faults.services.ask("And I?").outcome == "stopping", what="a front that stops")
        faults.services.front.send(signal.SIGTERM)
        assert faults.told(reply.result()) == "stopping"
    assert faults.services.front.ended() == 0
    assert faults.engine.turns() == []
    faults.heal()
    faults.nothing_is_left()


# --- more than one ---------------------------------------------------------------------------------------
def test_a_front_and_a_spawner_killed_in_mid_turn_leave_nothing_when_they_are_back(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.services.front.kill()
        faults.services.spawner.kill()
        assert isinstance(reply.exception(), httpx.RemoteProtocolError), "nobody is there to answer"
    faults.heal()
    faults.nothing_is_left()


def test_an_engine_killed_and_a_spawner_that_is_told_to_end_give_one_answer(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.engine.freeze()
        faults.services.spawner.send(signal.SIGTERM)
        faults.engine.kill()
        answer = reply.result()
        assert faults.told(answer) == answer.outcome
        assert answer.outcome in {"engine", "spawner"}
    assert faults.services.spawner.ended() == 0
    faults.engine.start()
    faults.heal()
    faults.nothing_is_left()


def test_a_spawner_that_finds_no_engine_says_so_and_ends(faults: Faults) -> None:
    faults.services.spawner.kill()
    faults.engine.kill()
    faults.services.spawner.start()
    assert faults.services.spawner.ended() == 4
    assert faults.services.spawner.lines("spawner-stopped")[-1]["code"] == "engine-unavailable"
    faults.heal()
    faults.nothing_is_left()
