"""The engine as a process, killed or frozen at each step of a turn and back again; what it stores, gone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest

from tests.faults.conftest import full
from tests.harness.engine import IMAGE, QUICK_IMAGE
from tests.harness.engine_proxy import Operation
from tests.harness.stack import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from tests.faults.conftest import Faults

pytestmark = pytest.mark.engine

SET_UP = (Operation.CREATE, Operation.ATTACH, Operation.START)


# --- killed --------------------------------------------------------------------------------------------
def test_no_engine_is_told_at_once_and_the_next_visitor_after_its_return_is_answered(faults: Faults) -> None:
    faults.engine.kill()
    assert faults.told(faults.ask(persona="brief")) == "engine"
    faults.engine.start()
    faults.nothing_is_left()


def test_readiness_follows_the_engine(faults: Faults) -> None:
    def ready() -> int:
        return httpx.get(f"{faults.services.url()}/ready", timeout=20).status_code

    assert ready() == 200
    faults.engine.kill()
    eventually(lambda: ready() == 503, seconds=20, what="not ready without an engine")
    faults.engine.start()
    eventually(lambda: ready() == 200, seconds=20, what="ready again")
    faults.nothing_is_left()


@pytest.mark.parametrize("step", SET_UP)
def test_an_engine_killed_at_a_step_gives_one_answer_and_nothing_is_left(
    faults: Faults, step: Operation
) -> None:
    with faults.asking() as reply:
        with faults.proxy.at(step) as gate:
            assert gate.reached.wait(timeout=10)
            faults.engine.kill()
        assert faults.told(reply.result()) == "engine"
    faults.engine.start()
    faults.nothing_is_left()


@pytest.mark.control("ANS-01", "LIFE-01", "LIFE-03")
@pytest.mark.parametrize("options", [(), ("--live-restore",)], ids=["ends with it", "survives it"])
def test_an_engine_killed_in_mid_turn_whose_container(faults: Faults, options: tuple[str, ...]) -> None:
    with faults.in_mid_turn() as reply:
        faults.engine.kill()
        assert faults.engine.shims(), "a killed engine leaves its containers"
        assert faults.told(reply.result()) == "engine"
    faults.engine.start(*options)
    faults.nothing_is_left()


def test_an_engine_killed_after_the_answer_takes_nothing_from_it(faults: Faults) -> None:
    with faults.asking() as reply:
        with faults.proxy.at(Operation.WAIT) as gate:
            assert gate.reached.wait(timeout=10)
            faults.engine.kill()
        assert faults.told(reply.result()) == ""
    faults.engine.start()
    faults.nothing_is_left()


def test_an_attach_connection_that_breaks_in_mid_turn_ends_the_turn(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.proxy.cut_attached()
        assert faults.told(reply.result()) == "crash"
    faults.nothing_is_left()


# --- frozen --------------------------------------------------------------------------------------------
@pytest.mark.parametrize("step", SET_UP)
def test_an_engine_frozen_at_a_step_gives_one_answer_and_nothing_is_left(
    faults: Faults, step: Operation
) -> None:
    with faults.asking(persona="brief") as reply:
        with faults.proxy.at(step) as gate:
            assert gate.reached.wait(timeout=10)
            faults.engine.freeze()
        assert faults.told(reply.result()) == "timeout"
    faults.engine.thaw()
    faults.nothing_is_left()


def test_an_engine_frozen_in_mid_turn_gives_one_answer_and_nothing_is_left(faults: Faults) -> None:
    with faults.in_mid_turn() as reply:
        faults.engine.freeze()
        assert faults.told(reply.result()) == "timeout"
    faults.engine.thaw()
    faults.nothing_is_left()


def test_an_engine_frozen_after_the_answer_takes_nothing_from_it(faults: Faults) -> None:
    with faults.asking() as reply:
        with faults.proxy.at(Operation.WAIT) as gate:
            assert gate.reached.wait(timeout=10)
            faults.engine.freeze()
        assert faults.told(reply.result()) == ""
    faults.engine.thaw()
    faults.nothing_is_left()


@pytest.mark.control("ANS-01")
def test_visitors_at_a_frozen_engine_each_get_one_answer(faults: Faults) -> None:
    faults.engine.freeze()
    with ThreadPoolExecutor(3) as pool:
        replies = list(pool.map(lambda _: faults.ask(persona="brief"), range(3)))
    assert sorted(reply.outcome for reply in replies) == ["busy", "busy", "timeout"]
    for reply in replies:
        assert faults.told(reply) == reply.outcome
    faults.engine.thaw()
    faults.nothing_is_left()


# --- what it stores ------------------------------------------------------------------------------------
def test_an_image_that_is_removed_under_the_spawner_is_told_and_a_new_one_is_used_after_a_restart(
    faults: Faults,
) -> None:
    with faults.engine.client() as api:
        api.remove_image(QUICK_IMAGE, force=True)
    assert faults.told(faults.ask()) == "engine"
    faults.nothing_stays()
    faults.engine.quick(IMAGE)
    faults.services.spawner.kill()
    faults.heal()
    faults.nothing_is_left()


def test_a_full_doors_volume_is_told_and_nothing_is_left(faults: Faults) -> None:
    with full(faults.services.doors, "nr_inodes=1"):
        assert faults.told(faults.ask()) == "engine"
    faults.nothing_is_left()


def test_a_full_packs_volume_stops_the_spawner_and_leaves_no_half_pack(
    faults: Faults, tmp_path: Path
) -> None:
    with full(tmp_path, "size=8k"):
        spawner = faults.services.another_spawner(tmp_path)
        spawner.start()
        assert spawner.ended() == 4
        (line,) = spawner.lines("spawner-stopped")
        assert line["code"] == "host-not-ready"
        assert "No space left on device" in line["reason"]
        assert [path.name for path in tmp_path.iterdir()] in ([], [".owner"])
    faults.nothing_is_left()
