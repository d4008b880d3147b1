"""A front over real HTTP on the loopback address, with a runner that plays a script instead of the spawner.

What the fake leaves out: containers, the CLI, and the spawner's protocol (tests/unit/turn/test_runner.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from runtime.agents.definition import AgentDefinition, Card, Grounding, Limits, Provider, Skill, Tools
from runtime.front.readiness import Readiness
from runtime.server import build_app, listen_tcp, server_config
from runtime.serving import QuietServer
from runtime.turn.events import Answer, TurnEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

    from runtime.front.settings import FrontSettings
    from runtime.turn.plan import TurnPlan

    Script = Callable[[TurnPlan], AsyncGenerator[TurnEvent, None]]


async def echo(plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
    last = json.loads(plan.prompt.splitlines()[-1])
    yield Answer(f"echo: {last['text']}")


@dataclass
class ScriptedRunner:
    """Plays `script` for each plan. `plans` are those it got, `closed` counts runs that have cleaned up."""

    script: Script = echo
    plans: list[TurnPlan] = field(default_factory=list)
    closed: int = 0
    started: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        self.plans.append(plan)
        self.started.set()
        try:
            async with contextlib.aclosing(self.script(plan)) as events:
                async for event in events:
                    yield event
        finally:
            await asyncio.sleep(0)
            self.closed += 1

    def prompt(self, number: int = -1) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.plans[number].prompt.splitlines()]


@dataclass
class FakeSpawner:
    """Says what the spawner would of an agent; `failing` makes it unreachable."""

    digest: str
    demo: bool = False
    failing: bool = False

    async def agent(self, agent: str) -> dict[str, Any]:
        if self.failing:
            raise OSError("the spawner is out of reach")
        return {"id": agent, "digest": self.digest, "pack": "0" * 64, "demo": self.demo}


@dataclass
class Front:
    """One served front: its address, a client, its runner."""

    url: str
    http: httpx2.AsyncClient
    runner: ScriptedRunner
    agent: AgentDefinition
    executor: Any
    current: Any
    forget: Any
    stop: Callable[[], Awaitable[None]]

    async def rpc(
        self, method: str, params: Any, *, version: str | None = None, **options: Any
    ) -> dict[str, Any]:
        headers = options.pop("headers", {}) | ({"A2A-Version": version} if version else {})
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        response = await self.http.post("/", json=body, headers=headers, **options)
        assert response.status_code == 200, response.text
        value: dict[str, Any] = response.json()
        return value

    async def events(
        self, method: str, params: Any, *, version: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        headers = {"A2A-Version": version} if version else {}
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self.http.stream("POST", "/", json=body, headers=headers) as response:
            assert response.headers["content-type"].startswith("text/event-stream"), await response.aread()
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    yield json.loads(line[6:])

    async def spoken(self, request: bytes) -> bytes:
        """Send bytes on a connection of their own and return all that comes until its end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.url.rpartition(":")[2]))
        writer.write(request)
        received = b""
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionResetError):
                while chunk := await reader.read(65536):
                    received += chunk
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
        return received

    async def ask(self, text: str, context: str | None = None, **extra: Any) -> dict[str, Any]:
        """Send a 0.3 message and return the task."""
        answer = await self.rpc("message/send", message03(text, context, **extra))
        task: dict[str, Any] = answer["result"]
        return task


def message03(text: str, context: str | None = None, **extra: Any) -> dict[str, Any]:
    message = {
        "kind": "message",
        "role": "user",
        "messageId": str(uuid.uuid4()),
        "parts": [{"kind": "text", "text": text}],
    }
    if context is not None:
        message["contextId"] = context
    return {"message": message | extra.pop("message", {}), **extra}


def message10(text: str, context: str | None = None, **extra: Any) -> dict[str, Any]:
    message = {"role": "ROLE_USER", "messageId": str(uuid.uuid4()), "parts": [{"text": text}]}
    if context is not None:
        message["contextId"] = context
    return {"message": message | extra.pop("message", {}), **extra}


def texts(task: dict[str, Any]) -> tuple[str, str]:
    """Return the artifact's and the status message's text of a task, either dialect."""
    artifacts = task.get("artifacts", [])
    artifact = artifacts[0]["parts"][0]["text"] if artifacts else ""
    return artifact, task["status"]["message"]["parts"][0]["text"]


def definition(**limits: Any) -> AgentDefinition:
    return AgentDefinition(
        id="ada",
        card=Card(
            name="Ada Lovelace",
            description="Answers about Ada.",
            version="1.0.0",
            public_url="http://127.0.0.1:8011",
            provider=Provider("Gatehouse", "https://example.org"),
            skills=(Skill("hours", "Office hours", "Says when.", ("hours",), ("When?",)),),
        ),
        persona="You are Ada.",
        grounding=Grounding(Path("/nowhere")),
        tools=Tools(),
        tools_dir=Path("/nowhere"),
        model="sonnet",
        limits=replace(Limits(timeout_seconds=5.0), **limits),
    )


@contextlib.asynccontextmanager
async def serving(
    runner: ScriptedRunner,
    agent: AgentDefinition,
    *,
    demo: bool = False,
    own_url: bool = False,
    readiness: Readiness | None = None,
    settings: FrontSettings | None = None,
    **options: Any,
) -> AsyncGenerator[Front, None]:
    listener = listen_tcp("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    if own_url:
        agent = replace(agent, card=replace(agent.card, public_url=url))
    readiness = readiness or Readiness(FakeSpawner(agent.digest, demo), agent.id, agent.digest)
    await readiness.wait()
    app = build_app(
        agent,
        runner,
        readiness,
        executor_options={"snapshot_seconds": 0.0, "stop_grace_seconds": 0.0} | options,
        settings=settings,
    )
    server = QuietServer(server_config(app, settings))
    task = asyncio.create_task(server.serve(sockets=[listener]))
    await server.accepting.wait()

    async def stop() -> None:
        await app.state.executor.drain()
        server.should_exit = True
        await task

    try:
        async with httpx2.AsyncClient(base_url=url, timeout=10, trust_env=False) as http:
            yield Front(
                url, http, runner, agent, app.state.executor, app.state.current, app.state.forget, stop
            )
    finally:
        if not task.done():
            await stop()


class Kit:
    """What the tests call: makers of definitions and messages, and the server."""

    definition = staticmethod(definition)
    serving = staticmethod(serving)
    message03 = staticmethod(message03)
    message10 = staticmethod(message10)
    texts = staticmethod(texts)
    Runner = ScriptedRunner
    Spawner = FakeSpawner


@pytest.fixture(scope="session")
def kit() -> type[Kit]:
    return Kit


@pytest.fixture
async def front() -> AsyncGenerator[Front, None]:
    async with serving(ScriptedRunner(), definition()) as served:
        yield served
