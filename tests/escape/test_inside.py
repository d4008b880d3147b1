"""S, D, K: what a turn can find, talk to and become."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.stack import KEY, REPO, Stack, docker, eventually

if TYPE_CHECKING:
    from tests.harness.turnbox import Boxes

pytestmark = pytest.mark.engine


@pytest.mark.control("KEY-01")
def test_s01_no_key_is_anywhere_in_a_turn(boxes: Boxes) -> None:
    outcome = boxes.box(KEY, KEY[:16], door=True).probe("S01", seconds=120)
    assert outcome["outcome"] == "clean", outcome
    assert outcome["searched"] > 1000


@pytest.mark.control("KEY-01")
def test_s01_twin_with_a_key_in_its_environment_finds_it(boxes: Boxes) -> None:
    def change(body: dict[str, Any]) -> None:
        body["Env"] = [*body["Env"], f"ANTHROPIC_API_KEY={KEY}"]

    outcome = boxes.box(KEY, change=change).probe("S01", seconds=120)
    assert outcome["outcome"] == "found"
    assert "environment ANTHROPIC_API_KEY" in {found["path"] for found in outcome["found"]}


@pytest.mark.control("KEY-01")
def test_p01_no_path_of_the_operator_shows_in_a_turn(boxes: Boxes) -> None:
    out, err = boxes.box().run("print(open('/proc/self/mountinfo').read(), open('/proc/1/environ').read())")
    assert "/grounding" in out, err
    assert str(REPO) not in out
    assert "instances" not in out


@pytest.mark.control("KEY-02")
def test_s02_the_key_is_in_no_inspect_output_or_log_of_the_stack(stack: Stack) -> None:
    stack.ask(f"Hello {stack.script({'status': 500, 'body': f'invalid x-api-key {KEY}'})}")
    listing = docker(
        "ps", "--all", "--quiet", "--filter", f"label=com.docker.compose.project={stack.project}"
    )
    for container in listing.split():
        assert KEY not in docker("inspect", container)
    logs = stack.compose("logs", "modelproxy", "front", "spawner")
    assert "model_request" in logs
    assert KEY not in logs
    assert KEY not in stack.compose("config")


@pytest.mark.control("KEY-02")
@pytest.mark.parametrize("service", ["front", "spawner", "ingress"])
def test_s02_no_other_service_has_the_key(stack: Stack, service: str) -> None:
    program = (
        "import os, sys\n"
        "needle = sys.argv[1].encode()\n"
        "seen = 0\n"
        "for folder, names, files in os.walk('/'):\n"
        "    names[:] = [n for n in names if os.path.join(folder, n) not in ('/proc', '/sys')]\n"
        "    for name in files:\n"
        "        path = os.path.join(folder, name)\n"
        "        try:\n"
        "            if os.path.isfile(path) and needle in open(path, 'rb').read():\n"
        "                print(path)\n"
        "            seen += 1\n"
        "        except OSError:\n"
        "            pass\n"
        "print('searched', seen > 500, needle in open('/proc/1/environ', 'rb').read())\n"
    )
    assert stack.python(service, program, KEY) == "searched True False\n"


@pytest.mark.control("SOCK-01")
def test_d07_a_turn_sees_its_own_door_and_no_other_socket(boxes: Boxes) -> None:
    outcome = boxes.box(door=True).probe("D07")
    assert outcome["outcome"] == "none", outcome
    assert outcome["doors"] == ["/run/doors/model.sock"]


@pytest.mark.control("SOCK-01", "DOOR-02")
def test_d07_an_idle_container_has_no_door_at_all(boxes: Boxes) -> None:
    outcome = boxes.box().probe("D07")
    assert outcome["outcome"] == "none", outcome
    assert outcome["doors"] == []


@pytest.mark.control("SOCK-01")
def test_d07_twin_with_the_spawner_s_volume_finds_a_socket(stack: Stack, boxes: Boxes) -> None:
    def change(body: dict[str, Any]) -> None:
        body["HostConfig"]["Mounts"].append(
            {"Type": "volume", "Source": f"{stack.project}_spawn", "Target": "/run/gatehouse/spawn"}
        )
        body["HostConfig"]["GroupAdd"] = ["10101"]

    outcome = boxes.box(change=change).probe("D07")
    assert outcome["outcome"] == "found", outcome
    assert "/run/gatehouse/spawn/spawn.sock" in outcome["others"]


@pytest.mark.control("PRIV-01")
def test_k08_a_turn_has_no_capability_and_gains_none(boxes: Boxes) -> None:
    outcome = boxes.box().probe("K08")
    assert outcome["outcome"] == "confined", outcome
    assert outcome["groups"] == [] or outcome["groups"] == [str(outcome["gid"])], outcome


def _unfiltered(body: dict[str, Any]) -> None:
    body["HostConfig"]["SecurityOpt"] = ["no-new-privileges", "seccomp=unconfined"]


def _may_gain_privileges(body: dict[str, Any]) -> None:
    # Without it the engine installs the filter while it still has work to do that our filter refuses.
    body["HostConfig"]["SecurityOpt"] = ["seccomp=unconfined"]


def _with_capabilities(body: dict[str, Any]) -> None:
    body["HostConfig"].pop("CapDrop")
    body["HostConfig"]["SecurityOpt"] = ["seccomp=unconfined"]
    body["User"] = "0:0"


@pytest.mark.control("PRIV-01")
def test_k08_twin_without_our_filter_is_not_filtered(boxes: Boxes) -> None:
    outcome = boxes.box(change=_unfiltered).probe("K08")
    assert (outcome["outcome"], outcome["seccomp"]) == ("loose", "0"), outcome


@pytest.mark.control("PRIV-01")
def test_k08_twin_without_no_new_privileges_lacks_it(boxes: Boxes) -> None:
    outcome = boxes.box(change=_may_gain_privileges).probe("K08")
    assert (outcome["outcome"], outcome["no_new_privs"]) == ("loose", "0"), outcome


@pytest.mark.control("PRIV-01")
def test_k08_twin_as_root_with_the_engine_s_capabilities_uses_them(boxes: Boxes) -> None:
    outcome = boxes.box(change=_with_capabilities).probe("K08")
    assert outcome["outcome"] == "loose"
    assert outcome["capabilities"]["CapEff"] > 0
    assert outcome["attempts"]["chroot"] == "done", outcome


@pytest.mark.control("KEY-01")
def test_s03_no_process_of_the_host_carries_the_key_or_the_prompt_in_its_arguments(stack: Stack) -> None:
    marker = stack.script({"hang": True})
    with stack.stream(f"A question {marker}") as events:
        task_id = next(events)["id"]
        eventually(lambda: stack.requests(marker), what="the model being asked")
        arguments = docker("top", stack.turn_containers()[0], "-o", "pid,args")
        stack.rpc("tasks/cancel", {"id": task_id})
        list(events)
    assert "/usr/local/bin/claude" in arguments
    assert marker not in arguments
    assert KEY not in arguments
    assert json.dumps(KEY) not in arguments
