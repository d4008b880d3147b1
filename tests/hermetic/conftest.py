"""The whole line from A2A over HTTP to a process, without engine, network or CLI: a stub plays its part.

What the stub leaves out: everything that the CLI does by itself. tests/contract/test_cli_unsandboxed.py runs
the real one, with and without its container.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import shutil
import signal
import sys
import tempfile
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from runtime.agents.definition import AgentDefinition, Card, Grounding, Limits, Messages, Tools
from runtime.front.readiness import Readiness
from runtime.server import build_app, listen_tcp, server_config
from runtime.serving import QuietServer
from runtime.turn.plan import plan_turn
from runtime.unsandboxed.runner import SubprocessRunner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from runtime.turn.events import TurnEvent

STUB = Path(__file__).with_name("stub_claude.py")
MESSAGES = Messages(**{name: f"<{name}>" for name in Messages.__dataclass_fields__})


def result(text: str, **more: Any) -> dict[str, Any]:
    return {"say": {"type": "result", "subtype": "success", "is_error": False, "result": text, **more}}


def said(text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"say": {"type": "assistant", "message": {"role": "assistant", "content": content}, **more}}


def used(tool: str, **given: Any) -> dict[str, Any]:
    content = [{"type": "tool_use", "id": "t", "name": tool, "input": given}]
    return {"say": {"type": "assistant", "message": {"role": "assistant", "content": content}}}


def delta(text: str) -> dict[str, Any]:
    inner = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}
    return {"say": {"type": "stream_event", "event": inner}}


def event(kind: str) -> dict[str, Any]:
    return {"say": {"type": "stream_event", "event": {"type": kind}}}


@dataclass
class Stub:
    """The stub CLI on disk, and the script that it plays next."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def program(self) -> Path:
        return self.folder / "claude"

    @property
    def record(self) -> Path:
        return self.folder / "record.json"

    def play(self, *steps: dict[str, Any]) -> None:
        (self.folder / "script.json").write_text(json.dumps(steps))

    def recorded(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.record.read_text())
        return found

    def agent(self, *, granted: tuple[str, ...] = (), **limits: Any) -> AgentDefinition:
        return AgentDefinition(
            id="ada",
            card=Card("Ada", "Answers about Ada.", "1.0.0", "http://127.0.0.1:8011"),
            persona="You are Ada. Tools: ${tools_dir}",
            grounding=Grounding(self.folder / "grounding", (self.folder / "extra",), ()),
            tools=Tools(granted=granted),
            tools_dir=self.folder / "tools",
            model="sonnet",
            limits=replace(Limits(timeout_seconds=20.0), **limits),
            messages=MESSAGES,
            binary=str(self.program),
        )

    def runner(self, agent: AgentDefinition | None = None, **environ: str) -> SubprocessRunner:
        return SubprocessRunner(agent or self.agent(), {**self.environ, **environ}, root=self.folder)


@pytest.fixture
def temporary() -> Iterator[Path]:
    """A folder for snapshots, with a path short enough for sockets; nothing is left in it afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="h-"))
    yield folder
    left = list(folder.iterdir())
    shutil.rmtree(folder)
    assert left == []


@pytest.fixture
def stub(tmp_path: Path, temporary: Path) -> Stub:
    for name in ("grounding", "extra", "tools", "home", "tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "grounding" / "facts.md").write_text("The sky is blue.\n")
    (tmp_path / "extra" / "letters.md").write_text("Dear all.\n")
    (tmp_path / "tools" / "hours.py").write_text('"""Say when."""\nprint("Tuesday")\n')
    program = tmp_path / "claude"
    program.write_text(f"#!{sys.executable} -IS\n" + STUB.read_text())
    program.chmod(0o755)
    kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TMPDIR": str(temporary)}
    found = Stub(
        tmp_path, kept | {"STUB_SCRIPT": str(tmp_path / "script.json"), "ANTHROPIC_API_KEY": "made-up"}
    )
    found.play(result("From the stub."))
    return found


@dataclass
class Front:
    """One served front and a client for it."""

    http: httpx2.AsyncClient
    runner: SubprocessRunner
    executor: Any

    async def send(self, text: str, method: str = "message/send") -> dict[str, Any]:
        answer = (await self.http.post("/", json=self.body(text, method))).json()
        task: dict[str, Any] = answer["result"]
        return task

    async def ask(self, text: str = "Hello?") -> str:
        """Return the one answer, which must stand in artifact and status alike."""
        task = await self.send(text)
        (artifact,) = task["artifacts"]
        shown = [artifact["parts"][0]["text"], task["status"]["message"]["parts"][0]["text"]]
        assert shown[0] == shown[1]
        return str(shown[0])

    async def stream(self, text: str = "Hello?") -> AsyncIterator[dict[str, Any]]:
        async with self.http.stream("POST", "/", json=self.body(text, "message/stream")) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])["result"]

    @staticmethod
    def body(text: str, method: str) -> dict[str, Any]:
        said = {"kind": "message", "role": "user", "messageId": str(uuid.uuid4())}
        message = {**said, "parts": [{"kind": "text", "text": text}]}
        return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {"message": message}}


@contextlib.asynccontextmanager
async def serving(runner: SubprocessRunner, agent: AgentDefinition) -> AsyncGenerator[Front, None]:
    listener = listen_tcp("127.0.0.1", 0)
    readiness = Readiness(runner, agent.id, agent.digest)
    await readiness.wait()
    options = {"snapshot_seconds": 0.0, "stop_grace_seconds": 0.0}
    app = build_app(agent, runner, readiness, executor_options=options, sandboxed=False)
    server = QuietServer(server_config(app))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    await server.accepting.wait()
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        async with httpx2.AsyncClient(base_url=url, timeout=30, trust_env=False) as http:
            yield Front(http, runner, app.state.executor)
    finally:
        await app.state.executor.drain()
        server.should_exit = True
        await task
        await runner.aclose()


async def events_of(runner: SubprocessRunner, agent: AgentDefinition, text: str = "Hi") -> list[TurnEvent]:
    """Run one turn, without a front."""
    async with contextlib.aclosing(runner.run(plan_turn(agent, (), text, "ctx-1", "visitor-1"))) as events:
        return [event async for event in events]


def alive(pid: int) -> bool:
    """Say whether a process runs: it is there, and is no zombie that nobody has waited for."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def gone(pid: int) -> bool:
    """Say whether a process has ended, after waiting a while for that; it need not be a child of ours."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    try:
        return bool(poll.poll(20_000))
    finally:
        os.close(pidfd)


def wait_for(path: Path) -> None:
    """Return when there is a file; a stub tells in no other way that it runs."""
    while not path.exists():
        signal.sigtimedwait((), 0.01)


def inside(folder: Path) -> list[Path]:
    """Return what is in a folder."""
    return list(folder.iterdir())


def wait_for_any(folder: Path) -> None:
    """Return when there is anything in a folder."""
    while not inside(folder):
        signal.sigtimedwait((), 0.001)


class Clock:
    """The running loop's clock, which a test moves and stops, so that no test waits for a deadline."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self._real = loop.time
        self._ahead = 0.0
        self._stopped: float | None = None
        monkeypatch.setattr(loop, "time", self._time)

    def leap(self, seconds: float) -> None:
        """Move it forward."""
        self._ahead += seconds

    def stop(self) -> None:
        """Let it stand still: from now on nothing happens because time passes."""
        self._stopped = self._time()

    def _time(self) -> float:
        return self._real() + self._ahead if self._stopped is None else self._stopped


@pytest.fixture
async def clock() -> AsyncGenerator[Clock, None]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Clock(monkeypatch)


class Kit:
    """What the tests call."""

    result = staticmethod(result)
    said = staticmethod(said)
    used = staticmethod(used)
    delta = staticmethod(delta)
    event = staticmethod(event)
    serving = staticmethod(serving)
    events_of = staticmethod(events_of)
    alive = staticmethod(alive)
    gone = staticmethod(gone)
    wait_for = staticmethod(wait_for)
    inside = staticmethod(inside)
    wait_for_any = staticmethod(wait_for_any)
    MESSAGES = MESSAGES


@pytest.fixture(scope="session")
def kit() -> type[Kit]:
    return Kit


@pytest.fixture
async def front(stub: Stub) -> AsyncGenerator[Front, None]:
    agent = stub.agent()
    async with serving(stub.runner(agent), agent) as served:
        yield served
