"""A whole Gatehouse stack of the tests' own: its own project name, ports, volumes and scripted model.

It runs beside any other stack of the host and touches nothing but what it started.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar

import httpx2 as httpx

from runtime import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPO = Path(__file__).resolve().parents[2]
OVERLAY = REPO / "tests" / "harness" / "compose.test.yaml"
KEY = "sk-ant-test-0000-not-a-real-key"
T = TypeVar("T")


def free_port() -> int:
    """Return a free port that no connection is given meanwhile: one below those that the kernel gives out.

    Other tests run at the same time, and a stack takes its port seconds after it was chosen.
    """
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while lowest > 16_000:
        port = lowest - 1 - secrets.randbelow(lowest - 12_000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return int(s.getsockname()[1])


def docker(*arguments: str, stdin: str | None = None, check: bool = True, seconds: float = 120) -> str:
    """Run the docker client and return its stdout; its stderr is in the exception."""
    done = subprocess.run(
        ["docker", *arguments], input=stdin, capture_output=True, text=True, timeout=seconds, check=False
    )
    if check and done.returncode:
        raise AssertionError(f"docker {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}")
    return done.stdout


def eventually(probe: Callable[[], T], *, seconds: float = 10, what: str = "condition") -> T:
    """Poll until `probe()` is true and return its value; the engine offers no event for some states."""
    end = time.monotonic() + seconds
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"{what} did not come true within {seconds} s (last: {value!r})")
        time.sleep(0.05)


def message(text: str, context: str | None = None) -> dict[str, Any]:
    """Build a 0.3 user message."""
    value: dict[str, Any] = {
        "kind": "message",
        "messageId": uuid.uuid4().hex,
        "role": "user",
        "parts": [{"kind": "text", "text": text}],
    }
    if context:
        value["contextId"] = context
    return value


def answer_of(task: dict[str, Any]) -> str:
    """Return the answer of a completed task; artifact and status message must hold the same text."""
    artifact = "".join(part["text"] for part in task["artifacts"][0]["parts"])
    status = "".join(part["text"] for part in task["status"]["message"]["parts"])
    assert artifact == status, (artifact, status)
    assert artifact.strip(), task
    return artifact


@dataclass
class Stack:
    """One running stack. `environment` goes to compose on top of the test's own."""

    environment: dict[str, str] = field(default_factory=dict)
    project: str = field(default_factory=lambda: f"gatehouse-test-{secrets.token_hex(3)}")
    port: int = field(default_factory=free_port)
    model_port: int = field(default_factory=free_port)

    def __enter__(self) -> Self:
        self.up()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()

    # -- life ---------------------------------------------------------------------------------------------
    def compose(self, *arguments: str, check: bool = True, seconds: float = 180) -> str:
        environment = {
            **os.environ,
            "AGENT_PORT": str(self.port),
            "SCRIPTED_PORT": str(self.model_port),
            "GATEHOUSE_TEST_KEY_FILE": str(self._key_file()),
            "COMPOSE_PROGRESS": "plain",
            **self.environment,
        }
        command = [
            "docker",
            "compose",
            "-p",
            self.project,
            "-f",
            str(REPO / "compose.yaml"),
            "-f",
            str(OVERLAY),
        ]
        done = subprocess.run(
            [*command, *arguments],
            env=environment,
            cwd=REPO,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if check and done.returncode:
            logs = "" if "logs" in arguments else self.compose("logs", "--tail", "40", check=False)
            raise AssertionError(
                f"compose {' '.join(arguments)}: exit {done.returncode}\n{done.stderr}\n{logs}"
            )
        return done.stdout

    def up(self) -> None:
        try:
            self.compose("up", "--detach", "--wait", "--no-build", "--wait-timeout", "90")
        except AssertionError:
            self.down()
            raise

    def down(self) -> None:
        left = self.turn_containers()
        self.compose("down", "--volumes", "--timeout", "5", check=False)
        for container in left:
            docker("rm", "--force", container, check=False)
        shutil.rmtree(self._key_file().parent, ignore_errors=True)

    def _key_file(self) -> Path:
        """Write the made-up key for the model proxy's uid alone: compose secrets are bind mounts."""
        path = REPO / ".gatehouse" / "tests" / self.project / "model_api_key"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(KEY)
            os.chown(path, layout.UID_MODELPROXY, layout.GID_GATEHOUSE)
            path.chmod(0o400)
        return path

    # -- looking in ---------------------------------------------------------------------------------------
    def service(self, name: str) -> str:
        """Return the container id of a service."""
        found = docker(
            "ps",
            "--all",
            "--no-trunc",
            "--quiet",
            "--filter",
            f"label=com.docker.compose.project={self.project}",
            "--filter",
            f"label=com.docker.compose.service={name}",
        ).split()
        assert len(found) == 1, (name, found)
        return found[0]

    def turn_containers(self) -> list[str]:
        """Return ids of turn containers of this stack, running or not, found by the volume they mount."""
        return docker(
            "ps",
            "--all",
            "--no-trunc",
            "--quiet",
            "--filter",
            "label=gatehouse.turn",
            "--filter",
            f"volume={self.project}_packs",
        ).split()

    def inspect(self, container: str) -> dict[str, Any]:
        return dict(json.loads(docker("inspect", container))[0])

    def python(self, service: str, program: str, *arguments: str, seconds: float = 60) -> str:
        """Run a program inside a service's container, as its own user."""
        return docker(
            "exec", "-i", self.service(service), "python3", "-", *arguments, stdin=program, seconds=seconds
        )

    # -- the visitor --------------------------------------------------------------------------------------
    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def rpc(self, method: str, params: dict[str, Any], *, seconds: float = 60) -> dict[str, Any]:
        """Call a 0.3 method and return the whole JSON-RPC reply."""
        body = {"jsonrpc": "2.0", "id": uuid.uuid4().hex, "method": method, "params": params}
        reply = httpx.post(self.url + "/", json=body, timeout=seconds)
        assert reply.status_code == 200, reply.text
        return dict(reply.json())

    def ask(self, text: str, context: str | None = None, *, seconds: float = 60) -> dict[str, Any]:
        """Send one message and return the task it ends in."""
        reply = self.rpc("message/send", {"message": message(text, context)}, seconds=seconds)
        assert "result" in reply, reply
        return dict(reply["result"])

    @contextlib.contextmanager
    def stream(
        self, text: str, context: str | None = None, *, seconds: float = 60
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Stream one message; yields the results of the events as they come."""
        body = {
            "jsonrpc": "2.0",
            "id": "1",
            "method": "message/stream",
            "params": {"message": message(text, context)},
        }
        with httpx.stream("POST", self.url + "/", json=body, timeout=seconds) as reply:

            def events() -> Iterator[dict[str, Any]]:
                for line in reply.iter_lines():
                    if line.startswith("data:"):
                        yield json.loads(line[5:])["result"]

            yield events()

    # -- the model ----------------------------------------------------------------------------------------
    @property
    def model_url(self) -> str:
        return f"http://127.0.0.1:{self.model_port}"

    def script(self, *steps: dict[str, Any]) -> str:
        """Give the scripted model its steps and return the marker that a visitor's message must contain."""
        marker = f"marker-{secrets.token_hex(6)}"
        reply = httpx.put(
            self.model_url + "/script", json={"marker": marker, "steps": list(steps)}, timeout=10
        )
        assert reply.status_code < 300, reply.text
        return marker

    def release(self, marker: str) -> None:
        """Let the model go on with a step that it holds."""
        reply = httpx.post(self.model_url + "/release", params={"marker": marker}, timeout=10)
        assert reply.status_code < 300, reply.text

    def requests(self, marker: str) -> list[dict[str, Any]]:
        """Return what the upstream was sent for a marker: headers and bodies."""
        reply = httpx.get(self.model_url + "/requests", params={"marker": marker}, timeout=10)
        assert reply.status_code == 200, reply.text
        return list(reply.json())

    def nothing_left(self) -> None:
        """Check that no turn container of this stack is left."""
        eventually(lambda: not self.turn_containers(), seconds=5, what="no turn container")
