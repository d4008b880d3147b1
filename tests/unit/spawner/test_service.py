"""The spawner as a whole while an operator reloads it: turns keep what they began with.

The engine and the doors are fakes that do as they are told, so that a turn can be held between any two of its
steps. They leave out containers: tests/contract/test_engine_turn.py has a reload on the real engine.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from runtime.errors import ConfigError, EngineUnavailable, Problem, ServiceUnreachable
from runtime.ops import ops_app
from runtime.spawner.engine import Ended, Facts
from runtime.spawner.packs import pack_digest
from runtime.spawner.server import spawner_app
from runtime.spawner.service import Spawner
from runtime.spawner.settings import Paths, read_settings
from runtime.turn.events import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from runtime.agents.definition import AgentDefinition


class Attached:
    def __init__(self, running: asyncio.Event) -> None:
        self._running = running

    async def send_and_end(self, data: bytes) -> None:
        del data

    async def read(self) -> bytes:
        await self._running.wait()
        return b""

    def close(self) -> None:
        self._running.set()


class Engine:
    """Creates nothing; `may_create` and `may_end` hold every turn before and after its container."""

    def __init__(self) -> None:
        self.may_create = asyncio.Event()
        self.may_create.set()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.creating = asyncio.Event()
        self.bodies: list[Any] = []
        self.until = 1
        self.all_created = asyncio.Event()

    async def facts(self) -> Facts:
        return Facts("0", "1.45", 2, ("runc",))

    async def image_id(self, name: str) -> str:
        return f"sha256:{name}"

    async def containers(self, label: str) -> list[Any]:
        del label
        return []

    async def create(self, body: Any, name: str) -> str:
        self.creating.set()
        await self.may_create.wait()
        self.bodies.append(body)
        if len(self.bodies) >= self.until:
            self.all_created.set()
        return name

    async def attach(self, container: str) -> Any:
        del container
        return Attached(self.may_end)

    async def start(self, container: str) -> None:
        pass

    async def end(self, container: str, *, kill: bool, since: float) -> Ended:
        del container, kill, since
        return Ended(0)

    def packs(self) -> list[set[str]]:
        """Return of each created container the packs that it mounts."""
        return [
            {
                mount["VolumeOptions"]["Subpath"].partition("/")[0]
                for mount in body["HostConfig"]["Mounts"]
                if mount["Source"] == "packs"
            }
            for body in self.bodies
        ]


class Doors:
    def __init__(self) -> None:
        self.models: list[str] = []

    def make_folder(self, turn: str) -> None:
        pass

    def remove_folder(self, turn: str) -> None:
        pass

    def remove_folders_but(self, live: Any) -> list[str]:
        return list(live)

    async def open(self, turn: str, facts: Any) -> None:
        del turn
        self.models.append(facts.model)

    async def shut(self, turn: str) -> Usage:
        del turn
        return Usage()

    async def is_demo(self) -> bool:
        return True


@dataclasses.dataclass
class Rig:
    """A spawner, its fakes, the file that a reload finds changed, and clients of both its sockets."""

    spawner: Spawner
    engine: Engine
    doors: Doors
    packs: Path
    agents: dict[str, AgentDefinition]
    front: httpx2.AsyncClient
    ops: httpx2.AsyncClient
    fail: list[ConfigError] = dataclasses.field(default_factory=list)

    def change(self, number: int = 0) -> None:
        agent = self.agents["tester"]
        (agent.grounding.directory / "facts.md").write_text(f"The sky is red {number}.\n")
        self.agents["tester"] = dataclasses.replace(agent, model=("opus", "haiku")[number])

    def pack(self) -> str:
        ready = self.spawner.agent("tester")
        assert ready is not None
        return ready.pack.digest

    def on_disk(self) -> set[str]:
        return {path.name for path in self.packs.iterdir() if not path.name.startswith(".")}

    def body(self, **changes: Any) -> dict[str, Any]:
        ready = self.spawner.agent("tester")
        assert ready is not None
        ids = {"agent": "tester", "definition": ready.agent.digest, "context": "c", "visitor": "v"}
        return ids | {"prompt": "p", "timeout_seconds": 60.0} | changes

    async def turn(self, **changes: Any) -> list[dict[str, Any]]:
        answer = await self.front.post("/turns", json=self.body(**changes))
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()]


@pytest.fixture
async def rig(agent: AgentDefinition, tmp_path: Path) -> AsyncGenerator[Rig, None]:
    for name in ("packs", "doors"):
        (tmp_path / name).mkdir()
    (tmp_path / "seccomp.json").write_text("{}")
    settings = read_settings(
        {
            "GATEHOUSE_AGENT": "tester",
            "PACKS_VOLUME": "packs",
            "DOORS_VOLUME": "doors",
            "SPAWNER_MAX_RUNNING": "64",
            "SPAWNER_MEMORY_MIB": "1000000",
            "SPAWNER_STARTS_PER_MINUTE": "1000",
        }
    )
    paths = Paths(
        root=tmp_path,
        packs=tmp_path / "packs",
        doors=tmp_path / "doors",
        seccomp=tmp_path / "seccomp.json",
        ops=tmp_path,
    )
    engine, doors = Engine(), Doors()
    agents = {"tester": agent}
    fail: list[ConfigError] = []

    def load(name: str) -> AgentDefinition:
        if fail:
            raise fail.pop()
        return agents[name]

    fakes: tuple[Any, Any] = (engine, doors)
    spawner = Spawner(settings, paths, *fakes, load)
    operators = ops_app(
        "spawner",
        lambda: _none(spawner),
        spawner.status,
        spawner.metrics.registry,
        status_with_stale=spawner.status_with_stale,
        reload=spawner.reload,
    )
    async with client(spawner_app(spawner)) as front, client(operators) as ops, asyncio.timeout(30):
        yield Rig(spawner, engine, doors, paths.packs, agents, front, ops, fail)
        engine.may_create.set()
        engine.may_end.set()
        await spawner.shutdown()


async def _none(spawner: Spawner) -> str | None:
    return spawner.health


def client(app: Any) -> httpx2.AsyncClient:
    transport = httpx2.ASGITransport(app)
    return httpx2.AsyncClient(transport=transport, base_url="http://spawner", timeout=30)


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the object under test has no event for it."""
    while not condition():  # noqa: ASYNC110  a state of the object, not an event of ours
        await asyncio.sleep(0)


@contextlib.asynccontextmanager
async def held(rig: Rig, gate: asyncio.Event, reached: asyncio.Event) -> AsyncGenerator[Any, None]:
    """Run a turn that is held before `gate` is set; yields once it is there."""
    gate.clear()
    turn = asyncio.create_task(rig.turn())
    await reached.wait()
    yield turn
    gate.set()
    await turn


async def test_a_reload_serves_the_new_definition_and_pack_to_the_front_and_to_turns(rig: Rig) -> None:
    await rig.spawner.prepare()
    before = (await rig.front.get("/agents/tester")).json()
    rig.change()
    answer = await rig.ops.post("/reload")
    assert answer.status_code == 200
    told = answer.json()["agents"]["tester"]
    after = (await rig.front.get("/agents/tester")).json()
    assert told == {"digest": after["digest"], "pack": after["pack"], "changed": True}
    assert before["digest"] != after["digest"]
    assert before["pack"] != after["pack"] == rig.pack()
    events = await rig.turn()
    assert [event["event"] for event in events] == ["started", "end"]
    assert (rig.engine.packs(), rig.doors.models) == ([{rig.pack()}], ["opus"])
    assert rig.on_disk() == {before["pack"], rig.pack()}


@pytest.mark.control("PACK-02")
async def test_a_turn_between_its_start_and_its_container_keeps_definition_and_pack_over_a_reload(
    rig: Rig,
) -> None:
    await rig.spawner.prepare()
    old, packs = rig.pack(), []
    async with held(rig, rig.engine.may_create, rig.engine.creating) as turn:
        for number in range(2):
            rig.change(number)
            assert (await rig.ops.post("/reload")).status_code == 200
            packs.append(rig.pack())
        await rig.spawner.sweep()
        assert rig.engine.bodies == []
        assert rig.on_disk() == {old, *packs}
        assert pack_digest(rig.packs / old) == old
        rig.engine.may_create.set()
        await turn
    assert (rig.engine.packs(), rig.doors.models) == ([{old}], ["sonnet"])
    await rig.spawner.sweep()
    assert rig.on_disk() == set(packs)


async def test_the_pack_of_a_running_turn_stays_until_its_container_is_gone(rig: Rig) -> None:
    await rig.spawner.prepare()
    old = rig.pack()
    async with held(rig, rig.engine.may_end, rig.engine.all_created) as turn:
        rig.change()
        assert (await rig.ops.post("/reload")).status_code == 200
        before = rig.pack()
        rig.change(1)
        assert (await rig.ops.post("/reload")).status_code == 200
        status = (await rig.ops.get("/status")).json()
        assert (status["running"], status["agents"]["tester"]["running"]) == (1, 1)
        await rig.spawner.sweep()
        assert rig.on_disk() == {old, before, rig.pack()}
        rig.engine.may_end.set()
        assert (await turn)[-1]["reason"] == "exited"
    await rig.spawner.sweep()
    assert rig.on_disk() == {before, rig.pack()}


@pytest.mark.control("PACK-02")
async def test_turns_across_a_reload_each_have_one_definition_with_its_own_pack(rig: Rig) -> None:
    await rig.spawner.prepare()
    old = rig.pack()
    rig.engine.may_create.clear()
    rig.engine.until = 60
    turns = [asyncio.create_task(rig.turn()) for _ in range(30)]
    await until(lambda: len(rig.doors.models) == 30)
    rig.change()
    assert (await rig.ops.post("/reload")).status_code == 200
    turns += [asyncio.create_task(rig.turn()) for _ in range(30)]
    await until(lambda: len(rig.doors.models) == 60)
    rig.engine.may_create.set()
    for events in await asyncio.gather(*turns):
        assert events[-1]["reason"] == "exited"
    assert sorted(rig.engine.packs(), key=str) == sorted([{old}] * 30 + [{rig.pack()}] * 30, key=str)
    assert rig.doors.models == ["sonnet"] * 30 + ["opus"] * 30


@pytest.mark.control("PACK-02")
async def test_a_reload_that_fails_tells_every_problem_and_the_old_pack_serves_on(rig: Rig) -> None:
    await rig.spawner.prepare()
    before, disk = (await rig.front.get("/agents/tester")).json(), rig.on_disk()
    rig.change()
    problems = (Problem("a.yaml", 1, 2, "x", "is wrong", "mend it"), Problem("b", 0, 0, "", "is too", "so"))
    rig.fail.append(ConfigError(problems))
    answer = await rig.ops.post("/reload")
    assert (answer.status_code, answer.json()["error"]) == (422, "config-invalid")
    assert [problem["file"] for problem in answer.json()["problems"]] == ["a.yaml", "b"]
    assert (await rig.front.get("/agents/tester")).json() == before
    assert (await rig.front.get("/health")).json() == {"status": "ok"}
    assert rig.on_disk() == disk
    assert (await rig.turn())[-1]["reason"] == "exited"
    assert rig.doors.models == ["sonnet"]


async def test_two_reloads_at_once_both_answer_and_end_on_the_last_files(rig: Rig) -> None:
    await rig.spawner.prepare()
    old = rig.pack()
    rig.change()
    answers = await asyncio.gather(*(rig.ops.post("/reload") for _ in range(2)))
    assert [answer.status_code for answer in answers] == [200, 200]
    assert sorted(answer.json()["agents"]["tester"]["changed"] for answer in answers) == [False, True]
    assert rig.on_disk() == {old, rig.pack()}


async def test_no_reload_before_the_spawner_is_ready_and_none_while_it_stops(rig: Rig) -> None:
    answer = await rig.ops.post("/reload")
    assert (answer.status_code, answer.json()["error"]) == (503, "service-unreachable")
    assert "starting" in answer.json()["detail"]
    await rig.spawner.prepare()
    await rig.spawner.shutdown()
    with pytest.raises(ServiceUnreachable, match="stopping"):
        await rig.spawner.reload()


@pytest.mark.control("OPS-01")
async def test_the_front_s_socket_knows_no_reload(rig: Rig) -> None:
    await rig.spawner.prepare()
    rig.change()
    before = rig.pack()
    for path in ("/reload", "/agents/tester/reload", "//reload", "/turns/../reload"):
        for method in ("POST", "GET", "PUT", "DELETE"):
            answer = await rig.front.request(method, path)
            assert answer.status_code == 404, (method, path)
    assert rig.pack() == before


async def test_a_status_tells_what_is_served_since_when_and_what_was_left_out(rig: Rig) -> None:
    starting = (await rig.ops.get("/status")).json()
    assert (starting["ready"], starting["reason"], starting["loaded_at"]) == (False, "starting", None)
    (rig.agents["tester"].grounding.directory / ".env").write_text("x")
    await rig.spawner.prepare()
    status = (await rig.ops.get("/status")).json()
    told = status["agents"]["tester"]
    assert (status["ready"], status["reason"], status["demo"], status["running"]) == (True, None, True, 0)
    assert told == {
        "digest": rig.agents["tester"].digest,
        "pack": rig.pack(),
        "hidden": ["grounding/.env"],
        "not_inlined": [],
        "running": 0,
    }
    rig.change()
    assert (await rig.ops.get("/status?stale=1")).json()["agents"]["tester"] == told | {"stale": True}
    await rig.ops.post("/reload")
    again = (await rig.ops.get("/status?stale=1")).json()
    assert again["agents"]["tester"]["stale"] is False
    assert again["loaded_at"] > status["loaded_at"]


async def test_a_model_proxy_that_is_away_hides_nothing_else_of_the_status(rig: Rig) -> None:
    await rig.spawner.prepare()

    async def away() -> bool:
        raise ServiceUnreachable("the model proxy does not answer")

    rig.doors.is_demo = away  # type: ignore[method-assign]
    status = (await rig.ops.get("/status")).json()
    assert (status["demo"], status["ready"], list(status["agents"])) == (None, True, ["tester"])


async def test_each_definition_s_turns_have_its_own_timeout(rig: Rig) -> None:
    await rig.spawner.prepare()
    agent = rig.agents["tester"]
    limits = dataclasses.replace(agent.limits, timeout_seconds=20.0)
    rig.agents["tester"] = dataclasses.replace(agent, limits=limits)
    await rig.ops.post("/reload")
    old = {"definition": agent.digest}
    assert (await rig.turn(timeout_seconds=90.0, **old))[-1]["reason"] == "exited"
    for body, most in ((rig.body(timeout_seconds=20.5), 20.0), (rig.body(timeout_seconds=90.5, **old), 90.0)):
        answer = await rig.front.post("/turns", json=body)
        assert answer.status_code == 400
        assert answer.json()["detail"] == f"timeout_seconds: more than {most}"
    assert len(rig.engine.bodies) == 1


@pytest.mark.control("PACK-02")
async def test_a_turn_of_the_definition_before_runs_on_it_and_of_any_other_is_409(rig: Rig) -> None:
    await rig.spawner.prepare()
    first, pack = rig.body()["definition"], rig.pack()
    rig.change()
    await rig.ops.post("/reload")
    told = (await rig.front.get("/agents/tester")).json()
    assert (told["digest"], told["previous"]) == (rig.agents["tester"].digest, first)
    await rig.turn(definition=first)
    assert (rig.engine.packs(), rig.doors.models) == ([{pack}], ["sonnet"])
    rig.change(1)
    await rig.ops.post("/reload")
    for digest in (first, "0" * 64):
        answer = await rig.front.post("/turns", json=rig.body(definition=digest))
        assert (answer.status_code, answer.json()) == (409, {"error": "definition-mismatch"})
    answer = await rig.front.post("/turns", json=rig.body(agent="nobody", definition=first))
    assert (answer.status_code, answer.json()["error"]) == (404, "unknown-agent")
    assert len(rig.engine.bodies) == 1


@pytest.mark.control("LIFE-03")
async def test_the_reaper_s_clock_goes_on_while_a_sweep_waits_for_packs_that_are_built(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.spawner.service.INTERVAL_SECONDS", 0)
    await rig.spawner.prepare()
    looks = 0

    async def containers(_label: str) -> list[Any]:
        nonlocal looks
        looks += 1
        return []

    monkeypatch.setattr(rig.engine, "containers", containers)
    rig.spawner._catalogue._old_in_use = True
    async with rig.spawner._catalogue._lock:  # as a load and a comparison hold it, for seconds
        sweeping = asyncio.create_task(rig.spawner.keep_sweeping())
        reaping = asyncio.create_task(rig.spawner.keep_reaping())
        await until(lambda: looks >= 3)
        assert rig.spawner._catalogue._old_in_use
    await until(lambda: not rig.spawner._catalogue._old_in_use)
    for clock in (sweeping, reaping):
        clock.cancel()


async def test_an_engine_that_is_away_shows_in_the_health_until_it_is_back_and_refuses_no_turn(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.spawner.service.INTERVAL_SECONDS", 0)
    monkeypatch.setattr("runtime.spawner.service.TROUBLE_SECONDS", 0)
    away = False

    async def containers(_label: str) -> list[Any]:
        if away:
            raise EngineUnavailable("no engine answers")
        return []

    monkeypatch.setattr(rig.engine, "containers", containers)
    await rig.spawner.prepare()
    reaping = asyncio.create_task(rig.spawner.keep_reaping())
    away = True
    await until(lambda: rig.spawner.health is not None)
    assert (await rig.front.get("/health")).status_code == 503
    told = (await rig.front.get("/agents/tester")).json()
    assert (told["digest"], told["reason"]) == (rig.agents["tester"].digest, "no engine answers")
    assert [event["event"] for event in await rig.turn()] == ["started", "end"]
    away = False
    await until(lambda: rig.spawner.health is None)
    reaping.cancel()
    assert (await rig.front.get("/health")).json() == {"status": "ok"}


async def test_the_doors_that_an_earlier_spawner_left_are_shut_at_the_model_proxy(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    shut: list[str] = []

    async def remember(turn: str) -> Usage:
        shut.append(turn)
        return Usage()

    monkeypatch.setattr(rig.doors, "remove_folders_but", lambda _live: ["a" * 32, "b" * 32])
    monkeypatch.setattr(rig.doors, "shut", remember)
    await rig.spawner.prepare()
    assert shut == ["a" * 32, "b" * 32]
