"""A reload's two halves and the messages that meet them: front and spawner are the real ones, over a socket.

What the fakes leave out: the engine and the CLI. The engine plays a CLI that answers with the model that it
was called with and the persona of the pack that it mounts, so an answer says which definition the spawner
ran; the working message says which one the front had.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from runtime.agents.definition import Grounding, Messages, Network
from runtime.errors import ConfigError, Problem, ServiceUnreachable
from runtime.front.readiness import FRESH_SECONDS, Readiness
from runtime.front.reload import Reload
from runtime.serving import serving
from runtime.spawner.engine import Ended, Facts
from runtime.spawner.server import spawner_app
from runtime.spawner.service import Spawner
from runtime.spawner.settings import Paths, read_settings
from runtime.turn.events import Usage
from runtime.turn.runner import SandboxRunner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.agents.definition import AgentDefinition


class Attached:
    """A CLI that answers `text` once it may."""

    def __init__(self, text: str, go: asyncio.Event) -> None:
        data = json.dumps({"type": "result", "is_error": False, "result": text}).encode() + b"\n"
        self._chunks = [bytes((1, 0, 0, 0)) + len(data).to_bytes(4, "big") + data]
        self._go = go

    async def send_and_end(self, data: bytes) -> None:
        del data

    async def read(self) -> bytes:
        await self._go.wait()
        return self._chunks.pop() if self._chunks else b""

    def close(self) -> None:
        self._go.set()


class Engine:
    """Runs nothing; while `go` is unset every turn waits with its answer."""

    def __init__(self, packs: Path) -> None:
        self.packs = packs
        self.go = asyncio.Event()
        self.go.set()
        self.created = asyncio.Event()
        self.bodies: dict[str, Any] = {}

    async def facts(self) -> Facts:
        return Facts("0", "1.45", 2, ("runc",))

    async def image_id(self, name: str) -> str:
        return f"sha256:{name}"

    async def containers(self, label: str) -> list[Any]:
        del label
        return []

    async def create(self, body: Any, name: str) -> str:
        self.bodies[name] = body
        self.created.set()
        return name

    async def attach(self, container: str) -> Any:
        body = self.bodies[container]
        command = body["Cmd"]
        (pack,) = {
            mount["VolumeOptions"]["Subpath"].partition("/")[0]
            for mount in body["HostConfig"]["Mounts"]
            if mount["Source"] == "packs"
        }
        persona = (self.packs / pack / "instance" / "system-prompt.md").read_text()
        return Attached(f"{command[command.index('--model') + 1]}: {persona}", self.go)

    async def start(self, container: str) -> None:
        pass

    async def end(self, container: str, *, kill: bool, since: float) -> Ended:
        del container, kill, since
        return Ended(0)


class Doors:
    """Opens nothing; `away` is a model proxy that does not answer."""

    def __init__(self) -> None:
        self.away = False

    def make_folder(self, turn: str) -> None:
        pass

    def remove_folder(self, turn: str) -> None:
        pass

    def remove_folders_but(self, live: Any) -> list[str]:
        return list(live)

    async def open(self, turn: str, facts: Any) -> None:
        pass

    async def shut(self, turn: str) -> Usage:
        del turn
        return Usage()

    async def is_demo(self) -> bool:
        if self.away:
            raise ServiceUnreachable("the model proxy does not answer")
        return False


@dataclasses.dataclass
class Both:
    """A front and a spawner that serve what `files` holds when they are loaded."""

    files: AgentDefinition
    spawner: Spawner
    engine: Engine
    doors: Doors
    readiness: Readiness
    socket: httpx2.AsyncClient
    now: float = 0.0
    wrong: bool = False
    front: Any = None
    runner: Any = None

    def load(self) -> AgentDefinition:
        if self.wrong:
            raise ConfigError((Problem("agent.yaml", 1, 1, "x", "is wrong", "mend it"),))
        return self.files

    def write(self, letter: str, **limits: Any) -> None:
        """Change all of the instance: what the front shows, and what the spawner runs."""
        self.files = lettered(self.files, letter, **limits)

    async def reload_spawner(self) -> None:
        await self.spawner.reload()

    async def reload_front(self) -> dict[str, Any]:
        return await Reload(self.front.current, self.runner, self.load)()

    async def say(self, text: str, context: str | None = None) -> tuple[str, str]:
        """Send a message and return the first working text and the answer."""
        async with contextlib.aclosing(self.saying(text, context)) as texts:
            shown = [one async for one in texts]
        return shown[0], shown[-1]

    async def saying(self, text: str, context: str | None = None) -> AsyncGenerator[str, None]:
        async for event in self.front.events("message/stream", message(text, context)):
            if event["result"]["kind"] == "status-update":
                yield event["result"]["status"]["message"]["parts"][0]["text"].strip()

    def on_disk(self) -> int:
        return len([one for one in self.engine.packs.iterdir() if not one.name.startswith(".")])


def message(text: str, context: str | None) -> dict[str, Any]:
    part = {"kind": "text", "text": text}
    said = {"kind": "message", "role": "user", "messageId": str(uuid.uuid4()), "parts": [part]}
    return {"message": said | ({"contextId": context} if context else {})}


def lettered(agent: AgentDefinition, letter: str, **limits: Any) -> AgentDefinition:
    return dataclasses.replace(
        agent,
        persona=f"You are {letter}.",
        model=f"model-{letter}",
        limits=dataclasses.replace(agent.limits, **limits),
        messages=Messages(
            working=f"{letter} works", spawn_error=f"{letter} cannot", error=f"{letter} failed"
        ),
    )


def whole(letter: str) -> tuple[str, str]:
    """Return what a visitor sees of a turn that has one definition only."""
    return f"{letter} works", f"model-{letter}: You are {letter}."


@contextlib.asynccontextmanager
async def both_serving(kit: Any, root: Path, *, port: int = 8011) -> AsyncGenerator[Both, None]:
    """Serve the definition A with both; `port` is a flag that the front alone has."""
    for name in ("packs", "doors", "grounding"):
        (root / name).mkdir()
    (root / "grounding" / "facts.md").write_text("The sky is blue.\n")
    (root / "seccomp.json").write_text("{}")
    files = dataclasses.replace(kit.definition(), grounding=Grounding(root / "grounding"))
    files = lettered(files, "A", timeout_seconds=60.0)
    environ = {"GATEHOUSE_AGENT": "ada", "PACKS_VOLUME": "packs", "DOORS_VOLUME": "doors"}
    paths = Paths(
        root=root, packs=root / "packs", doors=root / "doors", seccomp=root / "seccomp.json", ops=root
    )
    engine, doors = Engine(paths.packs), Doors()
    fakes: tuple[Any, Any] = (engine, doors)
    spawner = Spawner(read_settings(environ), paths, *fakes, lambda _name: rig.load())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spawn.sock"
        runner = SandboxRunner(path)
        readiness = Readiness(runner, "ada", files.digest, clock=lambda: rig.now)
        transport = httpx2.AsyncHTTPTransport(uds=str(path))
        async with (
            httpx2.AsyncClient(transport=transport, base_url="http://spawner") as socket,
            serving(spawner_app(spawner), path, grace_seconds=1),
            asyncio.timeout(30),
        ):
            rig = Both(files, spawner, engine, doors, readiness, socket, runner=runner)
            await spawner.prepare()
            agent = dataclasses.replace(files, network=Network(port=port))
            async with kit.serving(runner, agent, readiness=readiness) as rig.front:
                yield rig
                engine.go.set()
            await runner.aclose()
            await spawner.shutdown()


@pytest.fixture
async def both(kit: Any, tmp_path: Path) -> AsyncGenerator[Both, None]:
    async with both_serving(kit, tmp_path) as served:
        yield served


@pytest.mark.control("PACK-02")
async def test_a_message_that_waits_behind_another_over_both_halves_runs_on_what_it_came_to(
    both: Both,
) -> None:
    context = str(uuid.uuid4())
    both.engine.go.clear()
    running = asyncio.create_task(both.say("one", context))
    await both.engine.created.wait()
    waiting = both.saying("two", context)
    assert await anext(waiting) == "A works"
    both.write("B", timeout_seconds=20.0)
    await both.reload_spawner()
    await both.reload_front()
    beside = asyncio.create_task(both.say("beside it"))
    both.engine.go.set()
    assert await running == whole("A")
    assert [one async for one in waiting][-1] == whole("A")[1]
    assert await beside == whole("B")
    assert await both.say("three", context) == whole("B")


@pytest.mark.control("PACK-02")
async def test_a_message_between_the_halves_runs_on_the_old_definition_and_the_next_on_the_new(
    both: Both,
) -> None:
    both.write("B", timeout_seconds=20.0)
    await both.reload_spawner()
    assert await both.say("between") == whole("A")
    assert both.on_disk() == 2
    await both.reload_front()
    assert await both.say("after") == whole("B")


@pytest.mark.control("PACK-02")
async def test_a_front_whose_half_failed_serves_on_with_the_old_definition_however_often_it_is_tried(
    both: Both,
) -> None:
    both.write("B", timeout_seconds=20.0)
    for _ in range(3):
        await both.reload_spawner()
        both.wrong = True
        with pytest.raises(ConfigError):
            await both.reload_front()
        both.wrong = False
        assert await both.say("still there?") == whole("A")
    assert (both.readiness.digest, await both.readiness.ask()) == (both.front.current.now.digest, None)
    await both.reload_front()
    assert await both.say("and now?") == whole("B")


@pytest.mark.control("PACK-02")
async def test_a_definition_that_is_two_back_is_refused_and_the_visitor_reads_that_it_cannot_be(
    both: Both,
) -> None:
    old = both.files.digest
    for letter in "BC":
        both.write(letter)
        await both.reload_spawner()
    assert await both.say("hello") == ("A works", "A cannot")
    assert both.engine.bodies == {}
    body = {"agent": "ada", "definition": old, "context": "c", "visitor": "v", "prompt": "p"}
    answer = await both.socket.post("/turns", json=body | {"timeout_seconds": 2.0})
    assert (answer.status_code, answer.json()) == (409, {"error": "definition-mismatch"})
    assert both.on_disk() == 2
    both.now = FRESH_SECONDS
    assert await both.readiness.ask() == "the spawner runs the definition no more that the front serves"
    await both.reload_front()
    assert await both.readiness.ask() is None
    assert await both.say("hello") == whole("C")


async def test_a_front_with_an_address_of_its_own_asks_for_the_definition_as_it_was_loaded(
    kit: Any, tmp_path: Path
) -> None:
    async with both_serving(kit, tmp_path, port=9000) as both:
        assert both.front.current.agent.digest != both.front.current.now.digest
        assert await both.say("hello") == whole("A")


async def test_the_front_s_half_needs_no_model_proxy_and_no_engine_and_says_what_is_missing(
    both: Both,
) -> None:
    both.write("B")
    await both.reload_spawner()
    both.doors.away, both.spawner._trouble = True, "the engine did not answer list in time"
    told = await both.reload_front()
    assert (told["digest"], told["changed"]) == (both.files.digest, True)
    ready = both.spawner.agent("ada")
    assert ready is not None
    assert both.readiness.pack == ready.pack.digest  # at once, not with the next question
    assert await both.readiness.ask() == "the engine did not answer list in time"
    both.spawner._trouble, both.now = None, FRESH_SECONDS
    assert await both.readiness.ask() == "the model proxy does not answer"
    assert (await both.socket.get("/agents/ada")).json()["demo"] is None
    both.doors.away, both.now = False, 2 * FRESH_SECONDS
    assert await both.readiness.ask() is None
