"""A reload as visitors see it: one definition gives way to another, and no turn sees both."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from runtime.agents.definition import AgentDefinition, Messages
from runtime.front.current import served
from runtime.front.readiness import LASTING_SECONDS, Readiness
from runtime.turn.events import Answer, Cause, Failed, TurnEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.turn.plan import TurnPlan

CARD = "/.well-known/agent-card.json"
ORIGIN = "https://school.example"


def second(agent: AgentDefinition, **limits: Any) -> AgentDefinition:
    """Return another definition of the same agent: every part of it that a visitor can tell apart."""
    return replace(
        agent,
        card=replace(agent.card, version="2.0.0"),
        limits=replace(agent.limits, **limits),
        messages=Messages(**dict.fromkeys(Messages.__dataclass_fields__, "second {n} {max}")),
        network=replace(agent.network, cors_origins=(ORIGIN,)),
    )


def swap(front: Any, agent: AgentDefinition) -> None:
    front.current.swap(served(agent, agent.digest))


class Held:
    """A runner's script that fails each turn when it is told to, so that a configured message is answered."""

    def __init__(self, turns: int) -> None:
        self.left = turns
        self.all_run = asyncio.Event()
        self.release = asyncio.Event()

    async def __call__(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        self.left -= 1
        if self.left == 0:
            self.all_run.set()
        await self.release.wait()
        yield Failed(Cause.CRASH, f"held until now: {plan.agent}")


async def test_card_etag_limits_messages_and_origins_change_in_one_step(kit: Any) -> None:
    agent = kit.definition()
    async with kit.serving(kit.Runner(), agent) as front:
        first = await front.http.get(CARD)
        assert "access-control-allow-origin" not in first.headers
        swap(front, second(agent, max_input_chars=10))
        after = await front.http.get(CARD, headers={"if-none-match": first.headers["etag"], "origin": ORIGIN})
        assert (after.status_code, after.json()["version"]) == (200, "2.0.0")
        assert after.headers["etag"] != first.headers["etag"]
        assert after.headers["access-control-allow-origin"] == ORIGIN
        task = await front.ask("x" * 11)
        assert kit.texts(task)[1] == "second 11 10"
        asked = await front.rpc("tasks/cancel", {"id": task["id"]})
        assert asked["error"]["message"] == "second {n} {max}"
        swap(front, agent)
        back = await front.http.get(CARD, headers={"origin": ORIGIN})
        assert back.content == first.content
        assert "access-control-allow-origin" not in back.headers


async def test_a_request_s_size_follows_the_new_limit(kit: Any) -> None:
    agent = kit.definition()
    async with kit.serving(kit.Runner(), agent) as front:
        text = "😀" * 20_000  # more than the smallest bound of a request, escaped as clients may
        body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": kit.message03(text)}
        assert (await front.http.post("/", json=body)).status_code == 413
        swap(front, second(agent, max_input_chars=30_000))
        assert (await front.http.post("/", json=body)).status_code == 200


async def test_a_conversation_goes_on_over_a_reload(kit: Any) -> None:
    agent = kit.definition()
    async with kit.serving(kit.Runner(), agent) as front:
        context = str(uuid.uuid4())
        await front.ask("first", context)
        task = await front.ask("second", context)
        swap(front, second(agent))
        await front.ask("third", context)
        assert [line["text"] for line in front.runner.prompt()] == [
            "first",
            "echo: first",
            "second",
            "echo: second",
            "third",
        ]
        assert (await front.rpc("tasks/get", {"id": task["id"]}))["result"]["id"] == task["id"]
        swap(front, second(agent, max_turns=1))
        await front.ask("fourth", context)
        assert [line["text"] for line in front.runner.prompt()] == ["third", "echo: third", "fourth"]


@pytest.mark.control("PACK-02")
async def test_a_hundred_turns_across_a_reload_each_see_one_definition(kit: Any) -> None:
    first = kit.definition(max_concurrency=100, timeout_seconds=60)
    first = replace(first, messages=replace(first.messages, error="first"))
    script = Held(50)
    async with kit.serving(kit.Runner(script), first) as front, asyncio.timeout(30):
        before = [asyncio.create_task(front.ask(f"{number}")) for number in range(50)]
        await script.all_run.wait()
        script.left = 50
        script.all_run.clear()
        swap(front, second(first))
        after = [asyncio.create_task(front.ask(f"{number}")) for number in range(50)]
        await script.all_run.wait()
        assert front.executor.running == 100
        script.release.set()
        assert {kit.texts(task)[1] for task in await asyncio.gather(*before)} == {"first"}
        assert {kit.texts(task)[1] for task in await asyncio.gather(*after)} == {"second {n} {max}"}


async def test_a_turn_that_waits_in_its_context_keeps_what_it_began_with(kit: Any) -> None:
    first = kit.definition(timeout_seconds=60)
    first = replace(first, messages=replace(first.messages, error="first"))
    script = Held(1)
    context = str(uuid.uuid4())
    async with kit.serving(kit.Runner(script), first) as front, asyncio.timeout(30):
        running = asyncio.create_task(front.ask("one", context))
        await script.all_run.wait()
        events = front.events("message/stream", kit.message03("two", context))
        assert (await anext(events))["result"]["kind"] == "task"
        swap(front, second(first, max_turns=0))
        script.release.set()
        last = [event async for event in events][-1]["result"]
        assert last["status"]["message"]["parts"][0]["text"] == "first"
        assert kit.texts(await running)[1] == "first"


async def test_running_turns_finish_when_the_limit_falls_below_them_and_no_new_one_begins(kit: Any) -> None:
    agent = kit.definition(max_concurrency=3, timeout_seconds=60)
    script = Held(3)
    async with kit.serving(kit.Runner(script), agent) as front, asyncio.timeout(30):
        running = [asyncio.create_task(front.ask(f"{number}")) for number in range(3)]
        await script.all_run.wait()
        swap(front, second(agent, max_concurrency=1))
        refused = await front.ask("one more")
        assert kit.texts(refused)[1] == "second {n} {max}"
        assert len(front.runner.plans) == 3
        assert front.executor.running == 3
        script.release.set()
        assert {kit.texts(task)[1] for task in await asyncio.gather(*running)} == {agent.messages.error}
        assert front.executor.running == 0


async def test_a_shorter_timeout_does_not_reach_a_turn_that_runs(kit: Any) -> None:
    agent = kit.definition(timeout_seconds=60)
    go = asyncio.Event()

    async def script(plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        await go.wait()
        yield Answer(f"asked for {plan.timeout_seconds > 50}")

    async with kit.serving(kit.Runner(script), agent) as front, asyncio.timeout(30):
        running = asyncio.create_task(front.ask("x"))
        await front.runner.started.wait()
        swap(front, second(agent, timeout_seconds=2))
        go.set()
        assert kit.texts(await running)[1] == "asked for True"
        assert kit.texts(await front.ask("y"))[1] == "asked for False"


async def test_ready_does_not_flap_while_only_one_of_the_two_is_reloaded(kit: Any) -> None:
    agent = kit.definition()
    new = second(agent)
    spawner, now = kit.Spawner(agent.digest), 0.0
    readiness = Readiness(spawner, agent.id, agent.digest, clock=lambda: now)
    async with kit.serving(kit.Runner(), agent, readiness=readiness) as front:
        spawner.digest = new.digest
        for moment in (5.0, 10.0, 5.0 + LASTING_SECONDS - 1):
            now = moment
            assert (await front.http.get("/ready")).status_code == 200
        assert kit.texts(await front.ask("still there?"))[1] == "echo: still there?"
        now = 6.0 + LASTING_SECONDS
        assert (await front.http.get("/ready")).status_code == 503
        swap(front, new)
        assert (await front.http.get("/ready")).json() == {"status": "ready"}


@pytest.mark.control("OPS-01")
async def test_visitors_cannot_ask_for_a_reload(front: Any) -> None:
    for method in ("POST", "GET", "PUT"):
        assert (await front.http.request(method, "/reload", json={})).status_code == 404
