"""The real CLI in a real turn container: policy.py's create body with bind mounts for packs and door, against
the scripted model on a Unix socket that stands for the door.
"""

from __future__ import annotations

import json
import secrets
import select
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker
import httpx2
import pytest

from runtime.agents.definition import AgentDefinition, Card, Grounding, Tools
from runtime.spawner.frame import framed
from runtime.spawner.policy import Host, TurnFacts, create_body

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPO = Path(__file__).parents[2]
UID = 23456
CONTEXT = "context-hmac-1"


@dataclass(frozen=True, slots=True)
class Ran:
    """What one turn did: the CLI's events, the model requests it made, and how it ended."""

    events: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    exit_code: int
    stderr: str

    @property
    def bodies(self) -> list[dict[str, Any]]:
        return [request["body"] for request in self.requests if request["path"] == "/v1/messages"]

    @property
    def result(self) -> dict[str, Any]:
        return next(event for event in self.events if event["type"] == "result")

    def tool_result(self, number: int = 0) -> dict[str, Any]:
        """The CLI's answer to the model's n-th tool call, as the next model request carried it."""
        blocks = [
            block
            for message in self.bodies[-1]["messages"]
            if isinstance(message["content"], list)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        return dict(blocks[number])


@dataclass
class Cli:
    """Runs turns. `grounding` and `tools` are folders that the test fills."""

    model: httpx2.Client
    doors: Path
    grounding: Path
    instance: Path
    image: str
    engine: Any
    names: list[str] = field(default_factory=list)

    def script(self, *steps: dict[str, Any]) -> None:
        self.model.delete("/requests")
        self.model.put("/script", json={"marker": "", "steps": list(steps)}).raise_for_status()

    def agent(
        self, builtin: tuple[str, ...] = ("Read", "Glob", "Grep"), granted: tuple[str, ...] = ()
    ) -> AgentDefinition:
        return AgentDefinition(
            id="contract",
            card=Card(
                name="Contract",
                description="A persona for tests.",
                version="1",
                public_url="http://127.0.0.1",
            ),
            persona="",
            grounding=Grounding(self.grounding),
            tools=Tools(builtin, granted),
            tools_dir=self.instance / "tools",
            model="sonnet",
        )

    def run(
        self,
        prompt: str,
        *,
        agent: AgentDefinition | None = None,
        change: Callable[[dict[str, Any]], None] | None = None,
        frame: bool = True,
        door: Path | None = None,
        within_seconds: float = 60.0,
    ) -> Ran:
        """Run one turn; `change` edits the create body; raises TimeoutExpired past `within_seconds`."""
        host = Host(
            image_id=self.image,
            packs_volume="-",
            doors_volume="-",
            owner=f"contract-{secrets.token_hex(4)}",
            seccomp=(REPO / "sandbox" / "seccomp.json").read_text(),
        )
        facts = TurnFacts(turn=secrets.token_hex(16), uid=UID, deadline=time.time() + 120)
        body = create_body(agent or self.agent(), "0" * 64, host, facts)
        places = {"/grounding": self.grounding, "/instance": self.instance, "/run/doors": door or self.doors}
        body["HostConfig"]["Mounts"] = [
            {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": True}
            for target, source in places.items()
        ]
        if change:
            change(body)
        container = self.engine.create_container_from_config(body)["Id"]
        self.names.append(container)
        line = {
            "v": 1,
            "context": CONTEXT,
            "deadline_seconds": 60,
            "message": framed(prompt) if frame else prompt,
        }
        done = subprocess.run(
            ["docker", "start", "--attach", "--interactive", container],
            input=json.dumps(line) + "\n",
            capture_output=True,
            text=True,
            timeout=within_seconds,
            check=False,
        )
        events = [json.loads(row) for row in done.stdout.splitlines()]
        requests = self.model.get("/requests").json()
        return Ran(events, requests, done.returncode, done.stderr)


def listening(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) == 0


@pytest.fixture(scope="session")
def scripted_model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The scripted model on a socket; yields the folder that stands for a turn's doors."""
    doors = tmp_path_factory.mktemp("doors")
    doors.chmod(0o755)
    path = doors / "model.sock"
    server = subprocess.Popen(
        [sys.executable, str(REPO / "tests" / "scripted" / "model.py"), "--uds", str(path)],
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 20
    while not listening(path):
        assert server.poll() is None, "the scripted model did not start"
        assert time.monotonic() < end, "the scripted model does not listen"
        select.select([], [], [], 0.05)  # it announces itself in no other way
    path.chmod(0o666)
    yield doors
    server.terminate()
    server.wait(timeout=10)


@pytest.fixture
def cli(tmp_path: Path, scripted_model: Path) -> Iterator[Cli]:
    grounding, instance = tmp_path / "grounding", tmp_path / "instance"
    (instance / "tools").mkdir(parents=True)
    grounding.mkdir()
    (grounding / "hours.md").write_text("Office hours are on Tuesday, 10 to 12.\n")
    (instance / "system-prompt.md").write_text("You speak for a persona that exists in tests.\n")
    transport = httpx2.HTTPTransport(uds=str(scripted_model / "model.sock"))
    engine = docker.APIClient(version="1.45", timeout=30)
    with httpx2.Client(transport=transport, base_url="http://model", timeout=30) as model:
        image = engine.inspect_image("gatehouse-turn:dev")["Id"]  # type: ignore[no-untyped-call]  # docker-py has no types for it
        turns = Cli(model, scripted_model, grounding, instance, image, engine)
        yield turns
        for name in turns.names:
            subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)
    engine.close()
