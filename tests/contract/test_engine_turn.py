"""Turns on the real engine, with Python in the CLI's place: what runs, what ends it, what is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import docker
import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from runtime import layout
from runtime.agents.definition import AgentDefinition, Card, Grounding, Limits, Tools
from runtime.ops import ops_socket
from runtime.serving import serving
from runtime.spawner.doors import Doors
from runtime.spawner.engine import Engine
from runtime.spawner.host import LABEL_PROJECT, LABEL_SERVICE
from runtime.spawner.policy import create_body
from runtime.spawner.server import spawner_app
from runtime.spawner.service import Spawner
from runtime.spawner.settings import Paths, read_settings
from tests.harness.bodies import differences, unexpected

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator, Mapping

    from starlette.requests import Request

pytestmark = [pytest.mark.engine]

IMAGE = "gatehouse-turn:dev"
SOCKET = Path("/var/run/docker.sock")
USAGE = {"requests": 1, "input_tokens": 2, "output_tokens": 3, "refused": 0, "request_bytes": 84_512}
ECHO = "import sys\nprint(sys.stdin.readline(), end='')\nsys.stderr.write('said on stderr')\nsys.exit(7)"
WAIT = "import sys, threading\nprint('waiting', flush=True)\nthreading.Event().wait()"


class ScriptedEngine(Engine):
    """The real engine; only what PID 1 runs is a script of the test's instead of turn_init and the CLI."""

    script = ECHO

    async def create(self, body: Mapping[str, Any], name: str) -> str:
        entrypoint = ["/usr/bin/python3", "-I", "-c", self.script]
        return await super().create({**body, "Entrypoint": entrypoint, "Cmd": []}, name)


@dataclass
class DoorService:
    """The spawner's side of a door service: it counts, and opens no door."""

    opened: dict[str, Any] = field(default_factory=dict)
    shut: list[str] = field(default_factory=list)
    status: int = 201

    def app(self) -> Starlette:
        async def put(request: Request) -> Response:
            self.opened[request.path_params["turn"]] = await request.json()
            return Response(status_code=self.status)

        async def delete(request: Request) -> Response:
            self.shut.append(request.path_params["turn"])
            return JSONResponse(USAGE)

        async def health(_request: Request) -> Response:
            return JSONResponse({"status": "ok", "demo": True})

        return Starlette(
            routes=[
                Route("/turns/{turn}", put, methods=["PUT"]),
                Route("/turns/{turn}", delete, methods=["DELETE"]),
                Route("/health", health),
            ]
        )


@dataclass
class Stack:
    """A spawner on this host with volumes of its own, and a client of its socket."""

    api: Any
    spawner: Spawner
    engine: ScriptedEngine
    door: DoorService
    client: httpx2.AsyncClient
    paths: Paths

    def request(self, **changes: Any) -> dict[str, Any]:
        ready = self.spawner.agent("tester")
        value = {
            "agent": "tester",
            "definition": ready.agent.digest if ready else "0" * 64,
            "context": "c1",
            "visitor": "v1",
            "prompt": "hello",
            "timeout_seconds": 20,
        }
        return value | changes

    async def turn(self, **changes: Any) -> list[dict[str, Any]]:
        async with self.client.stream("POST", "/turns", json=self.request(**changes)) as answer:
            assert answer.status_code == 200, await answer.aread()
            return [json.loads(line) async for line in answer.aiter_lines()]

    def containers(self) -> list[Any]:
        owner = (self.paths.packs / ".owner").read_text()
        found: list[Any] = self.api.containers(all=True, filters={"label": f"{layout.LABEL_OWNER}={owner}"})
        return found

    def pack(self) -> str:
        ready = self.spawner.agent("tester")
        assert ready is not None
        return ready.pack.digest

    def nothing_is_left(self) -> bool:
        return not self.containers() and not list(self.paths.doors.iterdir())


@pytest.fixture
def api() -> Iterator[Any]:
    client: Any = docker.APIClient(f"unix://{SOCKET}", version="1.45")
    yield client
    client.close()


@pytest.fixture
def volumes(api: Any) -> Iterator[tuple[str, str]]:
    names = tuple(f"gatehouse-test-{kind}-{uuid.uuid4().hex}" for kind in ("packs", "doors"))
    for name in names:
        api.create_volume(name)
    yield names[0], names[1]
    for name in names:
        api.remove_volume(name, force=True)


@pytest.fixture
def agent(tmp_path: Path) -> AgentDefinition:
    grounding = tmp_path / "grounding"
    grounding.mkdir()
    (grounding / "facts.md").write_text("The sky is blue.\n")
    extra = tmp_path / "extra"
    extra.mkdir()
    (extra / "more.md").write_text("More.\n")
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "opening_hours.py").write_text('"""Say when."""\nprint("9 to 5")\n')
    return AgentDefinition(
        id="tester",
        card=Card("Tester", "A test.", "1", "http://localhost:8011"),
        persona="You are a test. Tools are in ${tools_dir}.",
        grounding=Grounding(grounding, (extra,), ("*.md",)),
        tools=Tools(granted=("opening_hours",)),
        tools_dir=tools,
        model="sonnet",
        limits=Limits(timeout_seconds=60),
    )


@pytest.fixture
def seccomp() -> Path:
    return Path(__file__).parents[2] / "sandbox" / "seccomp.json"


@contextlib.asynccontextmanager
async def running_stack(
    api: Any, volumes: tuple[str, str], agent: AgentDefinition, tmp_path: Path, seccomp: Path, **environ: str
) -> AsyncGenerator[Stack, None]:
    mountpoints = [Path(api.inspect_volume(name)["Mountpoint"]) for name in volumes]
    run = tmp_path / "run"
    run.mkdir(exist_ok=True)
    paths = Paths(
        root=tmp_path,
        packs=mountpoints[0],
        doors=mountpoints[1],
        spawn_socket=run / "spawn.sock",
        model_control_socket=run / "control.sock",
        ops=run,
        seccomp=seccomp,
        group=os.getgid(),
    )
    settings = read_settings(
        {"PACKS_VOLUME": volumes[0], "DOORS_VOLUME": volumes[1], "TURN_IMAGE": IMAGE} | environ
    )
    engine = ScriptedEngine(SOCKET)
    doors = Doors(paths.doors, paths.model_control_socket, 8, 4000, paths.group)
    door = DoorService()
    spawner = Spawner(settings, paths, engine, doors, lambda _name: agent)
    transport = httpx2.AsyncHTTPTransport(uds=str(paths.spawn_socket))
    async with (
        serving(door.app(), paths.model_control_socket),
        serving(spawner_app(spawner), paths.spawn_socket),
        httpx2.AsyncClient(transport=transport, base_url="http://spawner", timeout=60) as client,
    ):
        try:
            await spawner.prepare()
            yield Stack(api, spawner, engine, door, client, paths)
        finally:
            await spawner.shutdown()
            await doors.close()
            await engine.close()


@pytest.fixture
async def stack(
    api: Any, volumes: tuple[str, str], agent: AgentDefinition, tmp_path: Path, seccomp: Path
) -> AsyncGenerator[Stack, None]:
    async with running_stack(api, volumes, agent, tmp_path, seccomp) as running:
        yield running
        if (running.paths.packs / ".owner").exists():
            for left in running.containers():
                api.remove_container(left["Id"], force=True)


async def test_a_turn_gives_its_framed_prompt_to_the_container_and_its_lines_to_the_front(
    stack: Stack,
) -> None:
    events = await stack.turn(prompt="/model opus")
    assert [event["event"] for event in events] == ["started", "line", "end"]
    order = json.loads(events[1]["data"])
    assert set(order) == {"v", "context", "deadline_seconds", "message"}
    assert order["context"] == "c1"
    assert "\n/model opus\n" in order["message"]
    assert not order["message"].startswith("/")
    end = events[-1]
    assert end["reason"] == "exited"
    assert end["exit_code"] == 7
    assert end["oom"] is False
    assert end["usage"] == USAGE
    assert end["detail"] == "said on stderr"
    assert stack.nothing_is_left()


async def test_a_door_is_opened_for_the_turn_and_shut_at_its_end(stack: Stack) -> None:
    events = await stack.turn()
    turn = events[0]["turn"]
    assert stack.door.shut == [turn]
    door = stack.door.opened[turn]
    assert door["agent"] == "tester"
    assert door["model"] == "sonnet"
    assert door["limits"]["requests"] == 8
    assert door["limits"]["body_bytes"] > 512 * 1024
    assert time.time() < door["deadline"] < time.time() + 60


async def test_a_refused_door_ends_the_turn_before_its_prompt_goes_in(stack: Stack) -> None:
    stack.door.status = 409
    events = await stack.turn()
    assert events[-1]["reason"] == "engine"
    assert "refused to open a door" in events[-1]["detail"]
    assert not [event for event in events if event["event"] == "line"]
    assert stack.nothing_is_left()


@pytest.mark.control("BODY-01")
async def test_every_key_of_the_body_is_found_in_inspect_and_every_other_is_the_engines_default(
    stack: Stack, agent: AgentDefinition
) -> None:
    stack.engine.script = WAIT
    async with stack.client.stream("POST", "/turns", json=stack.request()) as answer:
        lines = answer.aiter_lines()
        started = json.loads(await anext(lines))
        await anext(lines)
        found = stack.api.inspect_container(f"gatehouse-turn-{started['turn']}")
    host = stack.spawner._host
    assert host is not None
    ready = stack.spawner.agent("tester")
    assert ready is not None
    from runtime.spawner.policy import TurnFacts

    uid = int(found["Config"]["User"].partition(":")[0])
    deadline = float(found["Config"]["Labels"][layout.LABEL_DEADLINE])
    body = create_body(agent, ready.pack.digest, host, TurnFacts(started["turn"], uid, deadline))
    body.pop("Cmd")  # the script stands in its place; a live turn's is compared in tests/e2e
    assert differences(found, body) == {}
    assert unexpected(found, body) == {}


async def test_two_turns_have_two_uids(stack: Stack) -> None:
    stack.engine.script = (
        "status = dict(line.split(':', 1) for line in open('/proc/self/status'))\n"
        "print(*status['Uid'].split(), *status['Gid'].split(), *status['Groups'].split())"
    )
    uids = [(await stack.turn())[1]["data"] for _ in range(2)]
    assert uids[0] != uids[1]
    for text in uids:
        everything = set(text.split())
        assert len(everything) == 1, text
        assert int(everything.pop()) in layout.TURN_UIDS


async def test_the_pack_is_mounted_where_the_cli_looks(stack: Stack) -> None:
    stack.engine.script = (
        "import json, os\n"
        "read = lambda path: open(path).read()\n"
        "print(json.dumps([os.getcwd(), read('facts.md'), read('/extra/0/more.md'),\n"
        "  read('/instance/system-prompt.md'), os.listdir('/instance/tools')]))"
    )
    cwd, facts, more, persona, tools = json.loads((await stack.turn())[1]["data"])
    assert (cwd, facts, more, tools) == (
        "/grounding",
        "The sky is blue.\n",
        "More.\n",
        ["opening_hours.py"],
    )
    assert persona.startswith("You are a test. Tools are in /instance/tools.")
    assert "The sky is blue." in persona


@pytest.mark.control("PACK-02")
async def test_a_turn_reads_its_own_pack_to_its_end_though_a_reload_has_replaced_it(
    stack: Stack, agent: AgentDefinition
) -> None:
    stack.engine.script = (
        "import os, sys, time\n"
        "print('began', flush=True)\n"
        "while not os.path.exists('/run/doors/go'): time.sleep(0.01)\n"
        "print(open('facts.md').read(), open('/instance/system-prompt.md').read())"
    )
    old = stack.pack()
    async with stack.client.stream("POST", "/turns", json=stack.request()) as answer:
        lines = (json.loads(line) async for line in answer.aiter_lines())
        turn = (await anext(lines))["turn"]
        assert (await anext(lines))["data"] == "began"
        (agent.grounding.directory / "facts.md").write_text("The sky is red.\n")
        told = (await stack.spawner.reload())["agents"]["tester"]
        assert (told["pack"], told["changed"]) == (stack.pack(), True)
        await stack.spawner.sweep()
        (stack.paths.doors / turn / "go").touch()
        rest = [line async for line in lines]
    assert rest[-1]["reason"] == "exited"
    said = "".join(line["data"] for line in rest[:-1])
    assert said.count("The sky is blue.") == 2
    assert "red" not in said
    assert (stack.paths.packs / old).is_dir()
    await stack.spawner.sweep()
    assert not (stack.paths.packs / old).exists()
    stack.engine.script = "print(open('facts.md').read())"
    assert (await stack.turn())[1]["data"] == "The sky is red."
    assert stack.nothing_is_left()


@pytest.mark.control("OUT-01")
async def test_a_flood_is_read_to_the_cap_then_the_turn_ends(stack: Stack) -> None:
    stack.engine.script = "import os\nblock = b'x' * 65535 + b'\\n'\nwhile True: os.write(1, block)"
    events = await stack.turn()
    assert events[-1]["reason"] == "output-cap"
    assert sum(len(event.get("data", "")) for event in events) <= 32 * 1024 * 1024
    assert stack.nothing_is_left()


async def test_a_line_beyond_the_cap_is_dropped_and_the_next_one_is_not(stack: Stack) -> None:
    stack.engine.script = "print('x' * (9 * 1024 * 1024))\nprint('after')"
    events = await stack.turn()
    assert events[1] == {"event": "dropped", "bytes": 9 * 1024 * 1024}
    assert events[2] == {"event": "line", "data": "after"}


@pytest.mark.control("LIFE-01")
async def test_the_deadline_ends_a_turn_that_says_nothing(stack: Stack) -> None:
    stack.engine.script = WAIT
    events = await stack.turn(timeout_seconds=1.5)
    assert events[-1]["reason"] == "deadline"
    assert stack.nothing_is_left()


async def test_a_turn_that_ignores_every_signal_and_closes_its_output_is_gone_all_the_same(
    stack: Stack,
) -> None:
    stack.engine.script = (
        "import os, signal, threading\n"
        "for number in (1, 2, 13, 15): signal.signal(number, signal.SIG_IGN)\n"
        "os.close(1); os.close(2); threading.Event().wait()"
    )
    events = await stack.turn(timeout_seconds=2)
    assert events[-1]["reason"] == "deadline"
    assert stack.nothing_is_left()


async def test_memory_beyond_the_limit_is_told_as_oom(
    api: Any, volumes: tuple[str, str], agent: AgentDefinition, tmp_path: Path, seccomp: Path
) -> None:
    async with running_stack(api, volumes, agent, tmp_path, seccomp, TURN_MEMORY_MIB="256") as stack:
        stack.engine.script = "held = []\nwhile True: held.append(bytearray(16 << 20))"
        end = (await stack.turn())[-1]
        assert end["oom"] is True
        assert end["exit_code"] == 128 + signal.SIGKILL
        assert stack.nothing_is_left()


@pytest.mark.control("LIFE-01")
async def test_a_closed_connection_cancels_the_turn(stack: Stack) -> None:
    stack.engine.script = WAIT
    async with stack.client.stream("POST", "/turns", json=stack.request()) as answer:
        lines = answer.aiter_lines()
        await anext(lines)
        await anext(lines)
        tasks = [task for _turn, task in stack.spawner._live.values()]
        assert len(stack.containers()) == 1
    async with asyncio.timeout(10):
        await asyncio.wait(tasks)
    assert stack.nothing_is_left()


@pytest.mark.control("LIFE-01")
async def test_delete_answers_when_the_turn_and_its_container_are_gone(stack: Stack) -> None:
    stack.engine.script = WAIT
    async with stack.client.stream("POST", "/turns", json=stack.request()) as answer:
        turn = answer.headers["gatehouse-turn"]
        deleted = await stack.client.delete(f"/turns/{turn}")
        assert deleted.status_code == 200
        assert stack.containers() == []
        assert json.loads([line async for line in answer.aiter_lines()][-1])["reason"] == "cancelled"
    assert stack.nothing_is_left()
    assert (await stack.client.delete(f"/turns/{turn}")).status_code == 404


async def test_shutdown_ends_turns_and_says_so(stack: Stack) -> None:
    stack.engine.script = WAIT
    async with stack.client.stream("POST", "/turns", json=stack.request()) as answer:
        lines = answer.aiter_lines()
        await anext(lines)
        await anext(lines)
        await stack.spawner.shutdown()
        end = json.loads(await anext(lines))
    assert end["reason"] == "shutdown"
    assert stack.nothing_is_left()
    assert (await stack.client.post("/turns", json=stack.request())).status_code == 503


async def test_a_full_spawner_answers_429(
    api: Any, volumes: tuple[str, str], agent: AgentDefinition, tmp_path: Path, seccomp: Path
) -> None:
    async with running_stack(api, volumes, agent, tmp_path, seccomp, SPAWNER_MAX_RUNNING="1") as stack:
        stack.engine.script = WAIT
        async with stack.client.stream("POST", "/turns", json=stack.request()) as answer:
            await anext(answer.aiter_lines())
            busy = await stack.client.post("/turns", json=stack.request())
            assert busy.status_code == 429
            assert busy.json() == {"error": "busy", "retry_after_seconds": 2}
            assert len(stack.containers()) == 1


def leave_behind(api: Any, image: str, labels: dict[str, str]) -> str:
    body = {
        "Image": image,
        "Entrypoint": ["/usr/bin/python3", "-c", "import threading; threading.Event().wait()"],
        "Labels": labels,
        "HostConfig": {"NetworkMode": "none"},
    }
    made = api.create_container_from_config(body)
    api.start(made["Id"])
    return str(made["Id"])


@pytest.mark.control("LIFE-03")
async def test_the_reaper_removes_what_is_ours_or_late_and_nothing_else(stack: Stack) -> None:
    image = stack.api.inspect_image(IMAGE)["Id"]
    owner = (stack.paths.packs / ".owner").read_text()
    turn = uuid.uuid4().hex
    ours = leave_behind(
        stack.api,
        image,
        {layout.LABEL_TURN: turn, layout.LABEL_OWNER: owner, layout.LABEL_DEADLINE: "99999999999"},
    )
    late = leave_behind(
        stack.api, image, {layout.LABEL_TURN: turn, layout.LABEL_OWNER: "f" * 32, layout.LABEL_DEADLINE: "1"}
    )
    foreign = leave_behind(
        stack.api,
        image,
        {layout.LABEL_TURN: turn, layout.LABEL_OWNER: "f" * 32, layout.LABEL_DEADLINE: "99999999999"},
    )
    try:
        await stack.spawner.reap()
        names = {one["Id"] for one in stack.api.containers(all=True)}
        assert ours not in names
        assert late not in names
        assert foreign in names
    finally:
        stack.api.remove_container(foreign, force=True)


@pytest.mark.control("LIFE-03")
async def test_a_restarted_spawner_removes_its_containers_and_door_folders(
    api: Any, volumes: tuple[str, str], agent: AgentDefinition, tmp_path: Path, seccomp: Path
) -> None:
    async with running_stack(api, volumes, agent, tmp_path, seccomp) as first:
        image = api.inspect_image(IMAGE)["Id"]
        owner = (first.paths.packs / ".owner").read_text()
        left = leave_behind(
            api,
            image,
            {layout.LABEL_TURN: "a" * 32, layout.LABEL_OWNER: owner, layout.LABEL_DEADLINE: "99999999999"},
        )
        (first.paths.doors / ("b" * 32)).mkdir()
    async with running_stack(api, volumes, agent, tmp_path, seccomp) as second:
        assert left not in {one["Id"] for one in api.containers(all=True)}
        assert second.nothing_is_left()


async def test_the_agent_and_its_pack_are_told_to_the_front(stack: Stack, agent: AgentDefinition) -> None:
    answer = await stack.client.get("/agents/tester")
    pack = answer.json()["pack"]
    digests = {"id": "tester", "digest": agent.digest, "previous": None, "pack": pack}
    assert answer.json() == digests | {"demo": True, "reason": None}
    assert (stack.paths.packs / pack / "grounding" / "facts.md").exists()
    assert (await stack.client.get("/agents/nobody")).status_code == 404
    assert (await stack.client.get("/health")).json() == {"status": "ok"}


async def test_a_missing_image_is_one_sentence_with_its_mend(
    api: Any, volumes: tuple[str, str], agent: AgentDefinition, tmp_path: Path, seccomp: Path
) -> None:
    from runtime.errors import ImageError

    with pytest.raises(ImageError, match=r"gatehouse-none:dev is not there \(build it"):
        async with running_stack(api, volumes, agent, tmp_path, seccomp, TURN_IMAGE="gatehouse-none:dev"):
            pytest.fail("it must not get ready")


def test_names_used_by_compose_are_the_ones_looked_for() -> None:
    assert LABEL_PROJECT == "com.docker.compose.project"
    assert LABEL_SERVICE == "com.docker.compose.service"
    assert ops_socket("spawner").name == "spawner.sock"
