"""N: no network, and no other way out than the turn's own door."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.stack import Stack, docker, eventually
from tests.harness.turnbox import probe_source

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.harness.turnbox import Boxes

pytestmark = pytest.mark.engine


def on_network(name: str) -> Callable[[dict[str, Any]], None]:
    """Return the change that gives a twin a network."""

    def change(body: dict[str, Any]) -> None:
        body["NetworkDisabled"] = False
        body["HostConfig"]["NetworkMode"] = name

    return change


@pytest.mark.control("NET-01")
def test_n01_no_public_address_is_reached(boxes: Boxes, reachable: tuple[str, str]) -> None:
    _, target = reachable
    outcome = boxes.box(target).probe("N01")
    assert outcome["outcome"] == "denied", outcome
    assert set(outcome["attempts"].values()) <= {"ENETUNREACH", "ENOSYS"}, (
        outcome
    )  # no route; no IPv6 socket at all
    assert outcome["attempts"][target] == "ENETUNREACH"


@pytest.mark.control("NET-01")
def test_n01_twin_with_a_network_connects(boxes: Boxes, reachable: tuple[str, str]) -> None:
    network, target = reachable
    outcome = boxes.box(target, change=on_network(network)).probe("N01")
    assert outcome["attempts"][target] == "connected", outcome


@pytest.mark.control("NET-02")
def test_n04_a_turn_reaches_neither_host_nor_bridges_nor_services(
    boxes: Boxes, reachable: tuple[str, str]
) -> None:
    _, target = reachable
    outcome = boxes.box(target).probe("N04", seconds=150)
    assert outcome["outcome"] == "denied", outcome
    assert outcome["interfaces"] == ["lo"]
    assert outcome["gateways"] == []
    assert outcome["answered"] == []


@pytest.mark.control("NET-02")
def test_n04_twin_with_a_network_reaches_the_host_through_its_gateway(
    boxes: Boxes, reachable: tuple[str, str]
) -> None:
    network, target = reachable
    outcome = boxes.box(target, change=on_network(network)).probe("N04", seconds=150)
    assert target in outcome["reached"], outcome


@pytest.mark.control("NET-02")
@pytest.mark.parametrize("service", ["front", "spawner"])
def test_n04_the_services_beside_a_turn_reach_nothing_either(
    stack: Stack, reachable: tuple[str, str], service: str
) -> None:
    _, target = reachable
    outcome = json.loads(stack.python(service, probe_source("N04"), target, seconds=150))
    assert outcome["outcome"] == "denied", outcome
    assert outcome["interfaces"] == ["lo"]
    assert outcome["answered"] == []


@pytest.mark.control("DOOR-01")
def test_n13_a_thousand_silent_connections_leave_other_turns_alone(stack: Stack, boxes: Boxes) -> None:
    attacker = boxes.box("--count", "1000", "--seconds", "20", door=True, change=many_files)
    client = attacker.launch(probe_source("N13"))
    assert client.stderr is not None
    assert json.loads(client.stderr.readline())["holding"] > 16
    marker = stack.script({"text": "Not disturbed."})
    task = stack.ask(f"Hello {marker}", seconds=15)
    assert task["artifacts"][0]["parts"][0]["text"].startswith("Not disturbed.")
    assert client.poll() is None, "the attack ended before the other turn did"
    docker("kill", attacker.id)


@pytest.mark.control("DOOR-01")
def test_n13_the_door_keeps_sixteen_connections_at_most(boxes: Boxes) -> None:
    attacker = boxes.box("--count", "300", "--seconds", "3", door=True)
    outcome = attacker.probe("N13")
    assert outcome["outcome"] == "capped", outcome
    assert outcome["still_open"] <= 16, outcome


@pytest.mark.control("DOOR-01")
def test_n13_twin_at_a_socket_without_a_bound_holds_them_all(boxes: Boxes) -> None:
    program = probe_source("N13")
    listener = (
        "import socket\n"
        "unbounded = socket.socket(socket.AF_UNIX)\n"
        "unbounded.bind('/tmp/unbounded.sock')\n"
        "unbounded.listen(512)\n"
    )
    box = boxes.box("--count", "300", "--seconds", "1", "--door", "/tmp/unbounded.sock")
    out, err = box.run(listener + program)
    outcome = json.loads(out)
    assert outcome["outcome"] == "unlimited", (outcome, err)


@pytest.mark.control("DOOR-02")
def test_s05_a_door_is_gone_when_its_turn_is(stack: Stack) -> None:
    marker = stack.script({"hang": True})
    with stack.stream(f"Wait {marker}") as events:
        task_id = next(events)["id"]
        eventually(lambda: stack.requests(marker), what="the model being asked")
        assert len(doors(stack)) == 1
        stack.rpc("tasks/cancel", {"id": task_id})
        list(events)
    eventually(lambda: not doors(stack), seconds=5, what="no door left")


def doors(stack: Stack) -> list[str]:
    return docker(
        "exec", stack.service("modelproxy"), "find", "/run/gatehouse/doors", "-name", "*.sock"
    ).split()


def many_files(body: dict[str, Any]) -> None:
    """Let the attacker open more files than a turn may, so that the door is what stops it."""
    for limit in body["HostConfig"]["Ulimits"]:
        if limit["Name"] == "nofile":
            limit["Soft"] = limit["Hard"] = 4096
