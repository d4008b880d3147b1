"""L: what is left when everybody outside is gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.stack import Stack, docker, eventually
from tests.harness.turnbox import turn_line

if TYPE_CHECKING:
    from tests.harness.turnbox import Boxes

pytestmark = pytest.mark.engine


@pytest.mark.control("LIFE-02")
def test_l02_a_turn_whose_client_is_killed_ends_at_its_own_deadline_and_removes_itself(
    stack: Stack, boxes: Boxes
) -> None:
    marker = stack.script({"hang": True})
    box = boxes.real_turn()
    client = box.launch(turn_line(marker, 4.0))
    eventually(lambda: stack.requests(marker), what="the model being asked")
    client.kill()
    assert docker("inspect", "--format", "{{.State.Running}}", box.id).strip() == "true"
    eventually(lambda: not docker("ps", "-aq", "--filter", f"id={box.id}"), seconds=15, what="removal")


def stay(body: dict[str, Any]) -> None:
    body["HostConfig"]["AutoRemove"] = False


@pytest.mark.control("LIFE-02")
def test_l02_twin_without_auto_remove_stays(stack: Stack, boxes: Boxes) -> None:
    marker = stack.script({"hang": True})
    box = boxes.real_turn(change=stay)
    client = box.launch(turn_line(marker, 2.0))
    eventually(lambda: stack.requests(marker), what="the model being asked")
    client.kill()
    state = ["inspect", "--format", "{{.State.Status}} {{.State.ExitCode}}", box.id]
    eventually(lambda: docker(*state).strip() == "exited 124", seconds=15, what="its own deadline")
    assert docker("ps", "-aq", "--no-trunc", "--filter", f"id={box.id}").strip() == box.id
