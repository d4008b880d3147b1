"""A door that is missing, refuses or breaks off ends the turn within seconds, not minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.contract.conftest import Cli

pytestmark = pytest.mark.engine

SECONDS = 5.0  # the whole container, its start included


@pytest.mark.parametrize(
    "step",
    [{"status": 403}, {"status": 402}, {"cut": "before"}],
    ids=["not allowed", "budget spent", "broken off"],
)
def test_a_door_that_refuses_ends_the_turn_within_five_seconds(cli: Cli, step: dict[str, Any]) -> None:
    cli.script(step)
    ran = cli.run("hello", within_seconds=SECONDS)
    assert ran.result["is_error"] is True
    assert ran.exit_code == 1
    assert 1 <= len(ran.bodies) <= 2


def test_a_turn_without_a_door_ends_within_five_seconds(cli: Cli, tmp_path: Path) -> None:
    empty = tmp_path / "no-doors"
    empty.mkdir()
    cli.script({"text": "Never said."})
    ran = cli.run("hello", door=empty, within_seconds=SECONDS)
    assert ran.result["is_error"] is True
    assert ran.exit_code == 1
    assert ran.bodies == []
