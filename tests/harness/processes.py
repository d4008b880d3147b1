"""Spawner, model proxy and front as processes of the host, on folders and an engine of a test's own.

They are the real programs, each of which can be killed, stopped and started again alone. What differs from
the deployment: they run as the tests' user, the front listens on a loopback port, and the spawner, whose
paths are those of its container, is started by this file with paths of the test's and less patience (`main`).
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

import httpx2 as httpx

from runtime.spawner import engine, service
from runtime.spawner import process as spawner_process
from runtime.spawner.settings import Paths
from tests.harness import contract
from tests.harness.engine import IMAGE, answer, exchange
from tests.harness.stack import KEY, REPO, eventually, free_port, message

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tests.harness.engine import OwnEngine

PATIENCE: Final = (  # the spawner's, of a few seconds each, as it is in these tests
    (service, "INTERVAL_SECONDS", 1.0),
    (engine, "KILL_SECONDS", 1.0),
    (engine, "REMOVE_SECONDS", 1.5),
    (engine, "REMOVED_SECONDS", 1.0),
    (engine, "ASK_SECONDS", 1.0),
)
START_SECONDS = 30.0
STOP_SECONDS = 40.0
ONE_AT_A_TIME: Final = "max_concurrency: 1\n"

TIMEOUTS: Final = {"tester": 5.0, "brief": 2.0}
SLACK_SECONDS: Final = 2.0  # of a busy machine, beyond a persona's own timeout

# One sentence for each cause, so that an answer tells which one it was.
MESSAGES: Final = {
    "timeout": "planted: it took too long",
    "empty_model": "planted: the model said nothing",
    "busy": "planted: busy",
    "spawn_error": "planted: no room",
    "error": "planted: an error",
    "cancelled": "planted: cancelled",
    "empty": "planted: nothing to answer",
    "too_long": "planted: {n} is more than {max}",
    "stopping": "planted: stopping",
}


@dataclass
class Service:
    """One program and its log, which lasts over its restarts."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    log: Path
    _process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, anew or again."""
        assert self._process is None, f"{self.name} runs already"
        inherited = {key: value for key, value in os.environ.items() if key in {"PATH", "HOME", "LANG"}}
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, *self.command],
                cwd=REPO,
                env={**inherited, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    @property
    def started(self) -> bool:
        return self._process is not None

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None, f"{self.name} does not run"
        self._process.send_signal(number)

    def ended(self, seconds: float = STOP_SECONDS) -> int:
        """Wait for its end and return its exit code."""
        assert self._process is not None, f"{self.name} does not run"
        code = self._process.wait(seconds)
        self._process = None
        return code

    def kill(self) -> None:
        """Kill it."""
        self.send(signal.SIGKILL)
        self.ended()

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Return the lines of its log that tell of an event."""
        found = []
        for line in self.log.read_text().splitlines():
            with contextlib.suppress(ValueError):
                value = json.loads(line)
                if value.get("event") == event:
                    found.append(value)
        return found


@dataclass(frozen=True, slots=True)
class Reply:
    """What one visitor of a persona got: the one text, its outcome ("" for the model's answer), the state."""

    persona: str
    text: str
    outcome: str
    state: str


@dataclass
class Processes:
    """All services on one engine. `engine_socket` is where the spawner finds it: a proxy's, mostly.

    Each persona has a front: `tester`, and `brief`, who has little time, for faults that no answer comes from
    before its end. `more` is what an instance says beyond that, by persona, and `environment` what spawner
    and model proxy are told, for tests that need other bounds.
    """

    folder: Path
    own: OwnEngine
    engine_socket: Path
    image: str = IMAGE
    timeouts: Mapping[str, float] = field(default_factory=lambda: TIMEOUTS)
    more: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    name: str = field(default_factory=lambda: f"f{secrets.token_hex(3)}")

    def __post_init__(self) -> None:
        # Plain, and a connection for each call: a pool would hold those of a service that was killed.
        limits = httpx.Limits(max_keepalive_connections=0)
        self._http = httpx.Client(verify=False, trust_env=False, limits=limits)
        self.model_port = free_port()
        self.ports = {persona: free_port() for persona in self.timeouts}
        self.packs = self.own.volume(f"{self.name}-packs")
        self.doors = self.own.volume(f"{self.name}-doors")
        self.run = self.folder / "run"
        for folder in (self.run, self.folder / "state"):
            folder.mkdir()
        for persona, seconds in self.timeouts.items():
            self._write_instance(persona, seconds)
        key = self.folder / "key"
        key.write_text(KEY)
        key.chmod(0o400)
        self.model = self._service("model", "tests/scripted/model.py", "--port", str(self.model_port))
        self.modelproxy = self._service(
            "modelproxy",
            "-m",
            "runtime.modelproxy",
            **{
                "MODEL_API_KEY_FILE": str(key),
                "MODEL_UPSTREAM_URL": f"http://127.0.0.1:{self.model_port}",
                "MODEL_DAILY_USD": "10000",
                "MODEL_STATE_DIR": str(self.folder / "state"),
                "MODEL_CONTROL_SOCKET": str(self.run / "control.sock"),
                "MODEL_DOORS_DIR": str(self.doors),
                "MODEL_OPS_DIR": str(self.run),
                **self._environment("MODEL_"),
            },
        )
        self.spawner = self._spawner("spawner", self.run, self.packs)
        self.fronts = {
            persona: self._service(
                f"front-{persona}",
                "-m",
                "runtime.server",
                f"--agent={persona}",
                f"--root={self.folder}",
                f"--port={port}",
                f"--spawn-socket={self.run / 'spawn.sock'}",
            )
            for persona, port in self.ports.items()
        }

    # -- life ---------------------------------------------------------------------------------------------
    @property
    def services(self) -> tuple[Service, ...]:
        return self.model, self.modelproxy, self.spawner, *self.fronts.values()

    @property
    def front(self) -> Service:
        return self.fronts["tester"]

    def heal(self) -> None:
        """Have all of them running and answering, whatever a test did to them."""
        for one in self.services:
            if one.runs:
                one.send(signal.SIGCONT)
        eventually(self._ready, seconds=START_SECONDS, what=f"a stack that answers (logs: {self.folder})")

    def _revive(self, one: Service) -> None:
        if not one.runs:
            if one.started:
                one.ended()
            one.start()

    def stop(self) -> None:
        """End all of them, the front first."""
        for one in reversed(self.services):
            if one.runs:
                one.send(signal.SIGCONT)
                one.send(signal.SIGTERM)
                try:
                    one.ended()
                except subprocess.TimeoutExpired:
                    one.kill()
                    raise

    def kill(self) -> None:
        """Kill what still runs, and close."""
        self._http.close()
        for one in self.services:
            if one.runs:
                one.kill()

    def _ready(self) -> bool:
        for one in self.services:
            self._revive(one)
        try:
            addresses = [f"http://127.0.0.1:{self.model_port}/health"]
            addresses += [f"{self.url(persona)}/ready" for persona in self.ports]
            answers = [self._http.get(address, timeout=6) for address in addresses]
        except httpx.HTTPError:
            return False
        inside = [self.is_well(name) for name in ("modelproxy", "spawner")]
        return all(inside) and all(one.status_code == httpx.codes.OK for one in answers)

    def _service(self, name: str, *command: str, **environment: str) -> Service:
        return Service(name, command, environment, self.folder / f"{name}.log")

    def another_spawner(self, packs: Path) -> Service:
        """Return a spawner like the first, with a packs folder of its own; it is not started."""
        run = self.folder / "another"
        run.mkdir()
        return self._spawner("another-spawner", run, packs)

    def _spawner(self, name: str, run: Path, packs: Path) -> Service:
        return self._service(
            name,
            "-m",
            "tests.harness.processes",
            *map(str, (self.folder, packs, self.doors, run)),
            **{
                "GATEHOUSE_AGENT": ",".join(self.timeouts),
                "TURN_IMAGE": self.image,
                "SPAWNER_MAX_RUNNING": "1",
                "SPAWNER_STARTS_PER_MINUTE": "10000",
                "DOCKER_SOCKET_PATH": str(self.engine_socket),
                "PACKS_VOLUME": f"{self.name}-packs",
                "DOORS_VOLUME": f"{self.name}-doors",
                **self._environment("SPAWNER_", "TURN_"),
            },
        )

    def _environment(self, *prefixes: str) -> dict[str, str]:
        return {name: value for name, value in self.environment.items() if name.startswith(prefixes)}

    def _write_instance(self, persona: str, seconds: float) -> None:
        instance = self.folder / "instances" / persona
        (instance / "grounding").mkdir(parents=True)
        (instance / "grounding" / "facts.md").write_text("# Facts\n\nThe sky is blue.\n")
        (instance / "system-prompt.md").write_text("You are a test.\n")
        texts = "".join(f"  {key}: {json.dumps(text)}\n" for key, text in MESSAGES.items())
        (instance / "agent.yaml").write_text(
            f"name: {persona.capitalize()}\n"
            "description: A persona that the tests of faults ask.\n"
            "grounding_dir: ${instance_dir}/grounding\n"
            "allowed_tools: Read\n"
            f"timeout: {seconds}\n"
            f"{self.more.get(persona, ONE_AT_A_TIME)}"
            f"messages:\n{texts}"
        )

    # -- looking in ---------------------------------------------------------------------------------------
    def status(self, name: str) -> dict[str, Any]:
        """Return what a service tells operators on its ops socket."""
        told = answer(self.run / f"{name}.sock", "/status")
        assert told is not None, f"{name} does not answer"
        return dict(json.loads(told))

    def is_well(self, name: str) -> bool:
        """Whether a service says on its ops socket that it would do its work now."""
        return answer(self.run / f"{name}.sock", "/health") is not None

    def reload(self) -> tuple[int, dict[str, Any]]:
        """Ask the spawner for a reload; returns the status and the answer."""
        status, body = exchange(self.run / "spawner.sock", "POST", "/reload")
        return status, dict(json.loads(body))

    def receipts(self, persona: str = "tester") -> list[dict[str, Any]]:
        """Return the front's line of each turn."""
        return self.fronts[persona].lines("turn")

    # -- the visitor --------------------------------------------------------------------------------------
    def url(self, persona: str = "tester") -> str:
        return f"http://127.0.0.1:{self.ports[persona]}"

    def ask(
        self,
        text: str,
        persona: str = "tester",
        *,
        seconds: float | None = None,
        context: str | None = None,
    ) -> Reply:
        """Send one message and wait for its answer.

        It must come within the persona's timeout; a visitor who gives up after `seconds` raises.
        """
        body = _call("message/send", {"message": message(text, context)})
        limit = seconds or self.timeouts[persona] + SLACK_SECONDS
        reply = self._http.post(self.url(persona) + "/", json=body, timeout=limit)
        assert reply.status_code == httpx.codes.OK, reply.text
        return _reply(persona, contract.of_task(reply.json()["result"]))

    @contextlib.contextmanager
    def stream(
        self, text: str, persona: str = "tester", *, context: str | None = None
    ) -> Iterator[Iterator[dict[str, Any]]]:
        """Stream one message; yields the events as they come. Leaving the block hangs up."""
        body = _call("message/stream", {"message": message(text, context)})
        limit = self.timeouts[persona] + SLACK_SECONDS
        with self._http.stream("POST", self.url(persona) + "/", json=body, timeout=limit) as reply:

            def events() -> Iterator[dict[str, Any]]:
                for line in reply.iter_lines():
                    if line.startswith("data:"):
                        yield json.loads(line[5:])["result"]

            yield events()

    def task(self, task: str, persona: str = "tester") -> dict[str, Any]:
        """Return a task as it is now."""
        reply = self._http.post(self.url(persona) + "/", json=_call("tasks/get", {"id": task}), timeout=30)
        return dict(reply.json()["result"])

    def cancel(self, task: str, persona: str = "tester") -> dict[str, Any]:
        """Cancel a task and return the JSON-RPC reply."""
        reply = self._http.post(self.url(persona) + "/", json=_call("tasks/cancel", {"id": task}), timeout=30)
        return dict(reply.json())

    # -- the model ----------------------------------------------------------------------------------------
    def script(self, *steps: dict[str, Any]) -> str:
        """Give the model its steps; returns the marker that a visitor's message must contain."""
        marker = f"marker-{secrets.token_hex(6)}"
        address = f"http://127.0.0.1:{self.model_port}/script"
        reply = self._http.put(address, json={"marker": marker, "steps": list(steps)}, timeout=10)
        assert reply.status_code == httpx.codes.NO_CONTENT, reply.text
        return marker

    def release(self, marker: str) -> None:
        """Let the model answer that holds its answer back."""
        address = f"http://127.0.0.1:{self.model_port}/release"
        reply = self._http.post(address, params={"marker": marker}, timeout=10)
        assert reply.status_code == httpx.codes.NO_CONTENT, reply.text

    def asked(self, marker: str) -> bool:
        """Whether the model was asked for a marker."""
        address = f"http://127.0.0.1:{self.model_port}/requests"
        return bool(self._http.get(address, params={"marker": marker}, timeout=10).json())


def _call(method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": uuid.uuid4().hex, "method": method, "params": params}


def terminal(events: list[dict[str, Any]], persona: str = "tester") -> Reply:
    """Return the answer of a whole stream."""
    return _reply(persona, contract.of_stream(events))


def _reply(persona: str, told: contract.Told) -> Reply:
    return Reply(persona, told.text, told.outcome, told.state)


def main(root: Path, packs: Path, doors: Path, run: Path) -> int:
    """Run the real spawner with the paths of a test."""
    paths = Paths(
        root=root,
        packs=packs,
        doors=doors,
        spawn_socket=run / "spawn.sock",
        model_control_socket=run / "control.sock",
        ops=run,
        seccomp=REPO / "sandbox" / "seccomp.json",
        group=os.getgid(),
    )
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(spawner_process, "Paths", return_value=paths))
        for module, name, seconds in PATIENCE:
            stack.enter_context(mock.patch.object(module, name, seconds))
        return spawner_process.run()


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:])))
