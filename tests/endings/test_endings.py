"""A turn is ended in every way that a program or a model can end it, each time for real."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import wait
from typing import TYPE_CHECKING

import pytest

from tests.endings.conftest import told_by
from tests.endings.row import Model, Play
from tests.endings.table import TABLE

if TYPE_CHECKING:
    from concurrent.futures import Future

    from tests.endings.conftest import Played, World
    from tests.endings.row import Row

    Rows = dict[str, Future[Played]]

pytestmark = pytest.mark.engine

PLAYED = [row for row in TABLE if isinstance(row.how, (Play, Model))]
TURNS = [row for row in PLAYED for _ in range(1 + row.both)]


@pytest.mark.control("ANS-01", "WIRE-01")
@pytest.mark.parametrize("row", PLAYED, ids=lambda row: row.sentence)
def test_there_is_one_answer_for(played: Rows, row: Row) -> None:
    got = played[row.sentence].result()
    assert told_by(got.streamed) == got.read_later == row.told
    assert got.waited is None or told_by(got.waited) == row.told
    assert bool(got.snapshots) == row.partial, got.snapshots


@pytest.mark.control("LIFE-01")
def test_nothing_is_left_of_all_these_turns(world: World, played: Rows) -> None:
    wait(played.values())
    world.nothing_stays()
    assert not world.left()


def test_the_receipts_say_the_cause_of_each(world: World, played: Rows) -> None:
    wait(played.values())
    world.nothing_stays()
    for persona in {row.persona for row in PLAYED}:
        said = Counter(line["cause"] for line in world.services.receipts(persona))
        assert said == Counter(row.outcome for row in TURNS if row.persona == persona), persona


def test_the_spawner_says_how_each_ended(world: World, played: Rows) -> None:
    wait(played.values())
    world.nothing_stays()
    # On a busy machine a turn can end later than the front waits for that after its result: the front
    # then asks for its end and closes, and the spawner hears either first.
    alike = {"disconnect": "exited", "cancelled": "exited"}
    said = Counter(
        alike.get(line["reason"], line["reason"]) for line in world.services.spawner.lines("turn-ended")
    )
    assert said == Counter(alike.get(str(row.reason), row.reason) for row in TURNS)
