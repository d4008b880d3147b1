"""R: what one turn can use up."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.harness.turnbox import Boxes

pytestmark = pytest.mark.engine

FORK = """
import json, os, signal, sys
children = []
try:
    while len(children) < 2000:
        child = os.fork()
        if child == 0:
            signal.pause()
        children.append(child)
    error = 0
except OSError as failed:
    error = failed.errno
for child in children:
    os.kill(child, signal.SIGKILL)
print(json.dumps({"children": len(children), "errno": error}))
"""

ALLOCATE = """
import sys
blocks = []
for number in range(int(sys.argv[1])):
    blocks.append(bytearray(b"x" * (64 << 20)))
    print(number, flush=True)
print("all", flush=True)
"""

FILL = """
import json
written = {}
for folder in ("/tmp", "/home/agent", "/dev/shm", "/run/turn"):
    total = 0
    try:
        with open(folder + "/fill", "wb", buffering=0) as file:
            while total < (512 << 20):
                total += file.write(b"x" * (1 << 20))
    except OSError:
        pass
    written[folder] = total >> 20
print(json.dumps(written))
"""


@pytest.mark.control("RES-01")
def test_r01_a_fork_bomb_stops_at_the_limit_of_its_container(boxes: Boxes) -> None:
    out, err = boxes.box().run(FORK)
    outcome = json.loads(out)
    assert outcome["errno"] == 11, (outcome, err)
    assert outcome["children"] < boxes.host.pids


@pytest.mark.control("RES-01")
def test_r01_twin_without_a_limit_forks_on(boxes: Boxes) -> None:
    def change(body: dict[str, Any]) -> None:
        body["HostConfig"].pop("PidsLimit")

    assert json.loads(boxes.box(change=change).run(FORK)[0]) == {"children": 2000, "errno": 0}


@pytest.mark.control("RES-01")
def test_r02_memory_ends_with_the_container_and_not_with_the_host(boxes: Boxes) -> None:
    blocks = boxes.host.memory_bytes // (64 << 20)
    out, _ = boxes.box(str(blocks + 2)).run(ALLOCATE)
    assert "all" not in out
    assert len(out.split()) < blocks


@pytest.mark.control("RES-01")
def test_r02_twin_with_more_memory_gets_it_all(boxes: Boxes) -> None:
    def change(body: dict[str, Any]) -> None:
        body["HostConfig"]["Memory"] = body["HostConfig"]["MemorySwap"] = 2 * boxes.host.memory_bytes

    blocks = boxes.host.memory_bytes // (64 << 20)
    out, _ = boxes.box(str(blocks + 2), change=change).run(ALLOCATE)
    assert "all" in out


@pytest.mark.control("RES-01")
def test_r02_every_writable_place_is_sized(boxes: Boxes) -> None:
    out, err = boxes.box().run(FILL)
    written = json.loads(out)
    assert set(written.values()) <= {0, 1, 16, 64}, (written, err)
    assert sum(written.values()) << 20 < boxes.host.memory_bytes
