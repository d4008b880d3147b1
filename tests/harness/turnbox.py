"""A turn container of the tests' own: policy.py's create body, entered by stdin instead of the CLI.

This plays the case that code execution inside a turn is already won. A twin is the same container with one
control removed: its probe must then come out differently, or the green probe proved luck and not the control.
"""

from __future__ import annotations

import copy
import json
import secrets
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from testcontainers.core.container import DockerContainer

from runtime import layout
from runtime.agents.instance import load_instance
from runtime.spawner.frame import framed
from runtime.spawner.policy import Host, TurnFacts, create_body
from tests.harness.stack import REPO, docker

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.agents.definition import AgentDefinition
    from tests.harness.stack import Stack

PROBES = REPO / "sandbox" / "probes"
PYTHON = ["/usr/bin/python3", "-I", "-"]

OPEN_DOOR = """
import json, os, socket, sys
turn, limits = sys.argv[1], json.loads(sys.argv[2])
folder = f"/run/gatehouse/doors/{turn}"
os.mkdir(folder)
os.chown(folder, -1, 10101)
os.chmod(folder, 0o1771)
facts = {"agent": "ada", "context": "probe", "visitor": "probe", "model": "sonnet"}
body = json.dumps({**facts, **limits}).encode()
with socket.socket(socket.AF_UNIX) as control:
    control.connect("/run/gatehouse/ctl-model/control.sock")
    head = f"PUT /turns/{turn} HTTP/1.1\\r\\nhost: control\\r\\nconnection: close\\r\\n"
    head += f"content-type: application/json\\r\\ncontent-length: {len(body)}\\r\\n\\r\\n"
    control.sendall(head.encode() + body)
    print(control.recv(4096).split(b" ", 2)[1].decode())
"""

SHUT_DOOR = """
import os, shutil, socket, sys
turn = sys.argv[1]
with socket.socket(socket.AF_UNIX) as control:
    control.connect("/run/gatehouse/ctl-model/control.sock")
    head = f"DELETE /turns/{turn} HTTP/1.1\\r\\nhost: control\\r\\nconnection: close\\r\\n\\r\\n"
    control.sendall(head.encode())
    print(control.recv(4096).split(b" ", 2)[1].decode())
shutil.rmtree(f"/run/gatehouse/doors/{turn}", ignore_errors=True)
"""


def turn_id() -> str:
    return secrets.token_hex(16)


def turn_line(text: str, seconds: float = 60.0) -> str:
    """Return the one line that turn_init reads, with a visitor's text framed as the spawner frames it."""
    prompt = json.dumps({"from": "visitor", "text": text, "now": True})
    value = {"v": 1, "context": "probe", "deadline_seconds": seconds, "message": framed(prompt)}
    return json.dumps(value) + "\n"


class TurnBox(DockerContainer):
    """One container made from a create body; `run` feeds it a program and returns what it printed."""

    def __init__(self, body: dict[str, Any]) -> None:
        super().__init__(body["Image"])
        self.body = body
        self.id = ""
        self._clients: list[subprocess.Popen[str]] = []

    def start(self) -> Self:
        """Create only: `run` and `launch` attach before they start, as the spawner does."""
        api: Any = self.get_docker_client().client.api  # docker-py has no types for its low-level calls
        made = api.create_container_from_config(self.body)
        self.id = made["Id"]
        return self

    def stop(self, force: bool = True, delete_volume: bool = True) -> None:
        docker(
            "rm",
            *(["--force"] if force else []),
            *(["--volumes"] if delete_volume else []),
            self.id,
            check=False,
        )
        for client in self._clients:
            client.communicate(timeout=20)
        self.get_docker_client().client.close()

    def launch(self, program: str) -> subprocess.Popen[str]:
        """Start with the program on stdin and leave it running; the returned client reads its output."""
        client = subprocess.Popen(
            ["docker", "start", "--attach", "--interactive", self.id],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert client.stdin is not None
        client.stdin.write(program)
        client.stdin.close()
        client.stdin = None
        self._clients.append(client)
        return client

    def run(self, program: str, *, seconds: float = 60) -> tuple[str, str]:
        """Run to the end; returns stdout and stderr."""
        client = self.launch(program)
        out, err = client.communicate(timeout=seconds)
        self._clients.remove(client)
        return out, err

    def probe(self, name: str, *, seconds: float = 60) -> dict[str, Any]:
        """Run one of sandbox/probes and return the one JSON object it printed."""
        out, err = self.run((PROBES / f"{name}.py").read_text(), seconds=seconds)
        lines = [line for line in out.splitlines() if line.startswith("{")]
        assert len(lines) == 1, f"probe {name} printed {out!r} and {err!r}"
        return dict(json.loads(lines[0]))


class Boxes:
    """Makes turn containers on a stack's own packs and doors, and cleans up after them."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._boxes: list[TurnBox] = []
        self._doors: list[str] = []
        listing = docker("exec", stack.service("spawner"), "ls", str(layout.PACKS)).split()
        (self.pack,) = [name for name in listing if len(name) == 64]
        self.host = Host(
            image_id=docker("inspect", "--format", "{{.Id}}", "gatehouse-turn:dev").strip(),
            packs_volume=f"{stack.project}_packs",
            doors_volume=f"{stack.project}_doors",
            owner=f"tests-{secrets.token_hex(4)}",
            seccomp=(REPO / "sandbox" / "seccomp.json").read_text(),
        )
        self.agent = load_instance(REPO, "ada", {})

    def body(self, turn: str, *arguments: str) -> dict[str, Any]:
        """Return policy.py's body for a turn, entered by a Python program on stdin."""
        facts = TurnFacts(
            turn=turn, uid=layout.TURN_UIDS[secrets.randbelow(1000)], deadline=time.time() + 120
        )
        body = create_body(self.agent, self.pack, self.host, facts)
        return {**copy.deepcopy(body), "Entrypoint": PYTHON, "Cmd": list(arguments)}

    def open_door(self, turn: str, **limits: Any) -> None:
        """Open a real model door for a turn of the tests' own."""
        facts = {
            "limits": {"requests": 8, "body_bytes": 600_000, "input_tokens": 100_000, "output_tokens": 4000},
            "deadline": time.time() + 120,
            **limits,
        }
        assert self.stack.python("spawner", OPEN_DOOR, turn, json.dumps(facts)).strip() == "201"
        self._doors.append(turn)

    def make_door_folder(self, turn: str) -> None:
        """Make the folder a container mounts, without any door in it: an idle container's view."""
        program = "import os,sys; d='/run/gatehouse/doors/'+sys.argv[1]; os.mkdir(d); os.chmod(d, 0o1771)"
        self.stack.python("spawner", program, turn)
        self._doors.append(turn)

    def box(
        self, *arguments: str, change: Callable[[dict[str, Any]], None] | None = None, door: bool = False
    ) -> TurnBox:
        """Create a turn container; `change` edits the body (a twin), `door` opens a model door for it."""
        turn = turn_id()
        if door:
            self.open_door(turn)
        else:
            self.make_door_folder(turn)
        body = self.body(turn, *arguments)
        if change:
            change(body)
        return self.adopt(TurnBox(body).start())

    def real_turn(
        self, agent: AgentDefinition | None = None, change: Callable[[dict[str, Any]], None] | None = None
    ) -> TurnBox:
        """Create a turn with the CLI, as in production, and open its door; feed it `turn_line`."""
        turn = turn_id()
        self.open_door(turn)
        facts = TurnFacts(
            turn=turn, uid=layout.TURN_UIDS[secrets.randbelow(1000)], deadline=time.time() + 120
        )
        body = create_body(agent or self.agent, self.pack, self.host, facts)
        if change:
            change(body)
        return self.adopt(TurnBox(body).start())

    def adopt(self, box: TurnBox) -> TurnBox:
        """Have a box removed with the others."""
        self._boxes.append(box)
        return box

    def close(self) -> None:
        for box in self._boxes:
            box.stop()
        for turn in self._doors:
            self.stack.python("spawner", SHUT_DOOR, turn)
        self._boxes.clear()
        self._doors.clear()


def probe_source(name: str) -> str:
    return (Path(PROBES) / f"{name}.py").read_text()
