"""An operator has conversations forgotten while visitors are served: over the ops app and real HTTP."""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import types
import uuid
from typing import TYPE_CHECKING, Any, Literal

import httpx2
import pytest
from a2a.types import Task
from prometheus_client import CollectorRegistry

from runtime.ops import ops_app
from runtime.turn.events import Answer, Snapshot

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from runtime.turn.events import TurnEvent
    from runtime.turn.plan import TurnPlan

MESSAGE = Task.__bases__[0]  # of every protobuf message
NOTHING = {"contexts": 0, "tasks": 0, "cancelled": 0}
# Sends what it is told on stdin and prints the state and the context of the answer alone.
VISITOR = """
import json, sys, urllib.request
url, body = sys.stdin.read().split("\\n", 1)
request = urllib.request.Request(url, body.encode(), {"Content-Type": "application/json"})
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
task = json.load(opener.open(request, timeout=30))["result"]
print(task["status"]["state"], task["id"])
"""


async def nothing() -> Any:
    return None


async def forget(front: Any, body: Any) -> httpx2.Response:
    """Ask as `python -m runtime.health front forget` does."""
    app = ops_app("front", nothing, nothing, CollectorRegistry(), forget=front.forget)
    transport = httpx2.ASGITransport(app=app)
    async with httpx2.AsyncClient(transport=transport, base_url="http://ops") as client:
        return await client.post("/forget", content=json.dumps(body).encode())


async def counts(front: Any, body: Any) -> dict[str, int]:
    response = await forget(front, body)
    assert response.status_code == 200, response.text
    found: dict[str, int] = response.json()
    return found


async def read(front: Any, task: str) -> int:
    """Return the code of the error with which a task is read, 0 for none."""
    answer = await front.rpc("tasks/get", {"id": task})
    return int(answer.get("error", {}).get("code", 0))


def held(front: Any) -> list[str]:
    return [line["text"] for line in front.runner.prompt()[:-1]]


class Held:
    """Begins every turn, sets `begun` when it has begun `count`, and answers none before `go`."""

    def __init__(self, count: int = 1) -> None:
        self.go = asyncio.Event()
        self.begun = asyncio.Event()
        self.left = count

    async def __call__(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        self.left -= 1
        if not self.left:
            self.begun.set()
        yield Snapshot(plan.prompt * 3)
        await self.go.wait()
        yield Answer("late")


async def heard(event: asyncio.Event) -> None:
    """Return when somebody begins to wait for an event."""
    waits, wait = asyncio.Event(), event.wait

    async def telling() -> Literal[True]:
        waits.set()
        return await wait()

    event.wait = telling  # type: ignore[method-assign]
    await waits.wait()


async def until(condition: Callable[[], bool]) -> None:
    """Let the loop run until something is so; the object under test has no event for it."""
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110  a state of the object, not an event of ours
            await asyncio.sleep(0)


async def test_a_conversation_is_forgotten_with_its_tasks_and_no_other_is(kit: Any) -> None:
    async with kit.serving(kit.Runner(), kit.definition()) as front:
        mine, other = str(uuid.uuid4()), str(uuid.uuid4())
        tasks = [await front.ask(text, mine) for text in ("one", "two")]
        kept = await front.ask("three", other)
        assert await counts(front, {"context": mine.upper()}) == {"contexts": 1, "tasks": 2, "cancelled": 0}
        assert [await read(front, task["id"]) for task in tasks] == [-32001, -32001]
        assert await read(front, kept["id"]) == 0
        await front.ask("again", mine)
        assert held(front) == []
        await front.ask("again", other)
        assert held(front) == ["three", "echo: three"]


async def test_a_task_leads_to_its_whole_conversation(kit: Any) -> None:
    async with kit.serving(kit.Runner(), kit.definition()) as front:
        context = str(uuid.uuid4())
        first = await front.ask("one", context)
        second = await front.ask("two", context)
        assert await counts(front, {"task": first["id"]}) == {"contexts": 1, "tasks": 2, "cancelled": 0}
        assert await read(front, second["id"]) == -32001
        assert await counts(front, {"task": first["id"]}) == NOTHING


async def test_a_task_of_a_context_that_anybody_can_guess_is_forgotten_alone(kit: Any) -> None:
    async with kit.serving(kit.Runner(), kit.definition()) as front:
        first, second = [await front.ask(text, "shop") for text in ("one", "two")]
        assert await counts(front, {"task": first["id"]}) == {"contexts": 0, "tasks": 1, "cancelled": 0}
        assert await read(front, second["id"]) == 0
        assert await counts(front, {"context": "shop"}) == {"contexts": 0, "tasks": 1, "cancelled": 0}


async def test_what_is_not_known_is_no_failure_and_what_is_no_id_is_refused(front: Any) -> None:
    for body in ({"context": str(uuid.uuid4())}, {"context": "shop"}, {"task": str(uuid.uuid4())}):
        assert await counts(front, body) == NOTHING
    assert await counts(front, {"all": True}) == NOTHING
    refused = await forget(front, {"task": "secret-7"})
    assert (refused.status_code, refused.json()["error"]) == (400, "usage")
    assert "secret-7" not in refused.text
    assert refused.json()["mend"]


async def test_running_and_waiting_turns_are_cancelled_and_never_remembered(kit: Any) -> None:
    script = Held()
    context = str(uuid.uuid4())
    async with (
        kit.serving(kit.Runner(script), kit.definition(timeout_seconds=60)) as front,
        asyncio.timeout(30),
    ):
        running = asyncio.create_task(front.ask("runs", context))
        await front.runner.started.wait()
        events = front.events("message/stream", kit.message03("waits", context))
        waiting = (await anext(events))["result"]["id"]
        assert await counts(front, {"task": waiting}) == {"contexts": 1, "tasks": 2, "cancelled": 2}
        assert (await running)["status"]["state"] == "canceled"
        assert [event async for event in events][-1]["result"]["status"]["state"] == "canceled"
        assert front.executor.running == 0
        assert front.runner.closed == len(front.runner.plans)
        assert await read(front, waiting) == -32001
        script.go.set()
        await front.ask("again", context)
        assert held(front) == []
        assert await counts(front, {"context": context}) == {"contexts": 1, "tasks": 1, "cancelled": 0}


async def test_a_turn_that_has_answered_and_still_cleans_up_is_waited_for_and_not_remembered(
    kit: Any,
) -> None:
    cleaning, clean = asyncio.Event(), asyncio.Event()

    async def script(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        try:
            yield Answer("here")
        finally:
            cleaning.set()
            await clean.wait()

    context = str(uuid.uuid4())
    async with kit.serving(kit.Runner(script), kit.definition()) as front, asyncio.timeout(30):
        assert kit.texts(await front.ask("x", context))[0] == "here"
        assert cleaning.is_set()
        ((_, turn),) = front.executor._turns.items()
        waited = asyncio.create_task(heard(turn.settled))
        forgetting = asyncio.create_task(counts(front, {"context": context}))
        await asyncio.wait({forgetting, waited}, return_when=asyncio.FIRST_COMPLETED)
        assert not forgetting.done(), "it did not wait for the turn"
        await waited
        clean.set()
        assert await forgetting == {"contexts": 1, "tasks": 1, "cancelled": 0}
        front.runner.script = Held()
        front.runner.script.go.set()
        await front.ask("again", context)
        assert held(front) == []


async def test_all_forgets_all_and_the_front_serves_on(kit: Any) -> None:
    script = Held(2)
    async with (
        kit.serving(kit.Runner(script), kit.definition(timeout_seconds=60)) as front,
        asyncio.timeout(30),
    ):
        running = [asyncio.create_task(front.ask("x", context)) for context in (str(uuid.uuid4()), "shop")]
        await script.begun.wait()
        assert await counts(front, {"all": True}) == {"contexts": 1, "tasks": 2, "cancelled": 2}
        assert {task["status"]["state"] for task in await asyncio.gather(*running)} == {"canceled"}
        script.go.set()
        assert kit.texts(await front.ask("y"))[0] == "late"


async def test_what_a_visitor_asks_meanwhile_is_a_new_conversation_and_stays(kit: Any) -> None:
    script = Held()
    context = str(uuid.uuid4())
    async with (
        kit.serving(kit.Runner(script), kit.definition(timeout_seconds=60)) as front,
        asyncio.timeout(30),
    ):
        running = asyncio.create_task(front.ask("old", context))
        await front.runner.started.wait()
        script.go.clear()
        forgetting = asyncio.create_task(forget(front, {"context": context}))
        new = asyncio.create_task(front.ask("new", context))
        assert (await forgetting).json()["cancelled"] == 1
        assert (await running)["status"]["state"] == "canceled"
        script.go.set()
        task = await new
        assert task["status"]["state"] == "completed"
        assert await read(front, task["id"]) == 0
        await front.ask("next", context)
        assert held(front) == ["new", "late"]


def found(needle: str) -> list[str]:
    """Return the types of the strings, bytes and messages that the collector reaches and that hold a text."""
    gc.collect()
    wanted = needle.encode()
    seen: set[int] = set()
    places: list[str] = []
    mine = sys._getframe()
    todo: list[Any] = [one for one in gc.get_objects() if one is not mine]
    skipped = {id(todo), id(seen), id(places), id(needle), id(wanted), id(mine)}
    while todo:
        one = todo.pop()
        if id(one) in seen or id(one) in skipped:
            continue
        seen.add(id(one))
        if isinstance(one, str):
            hit = needle in one
        elif isinstance(one, bytes | bytearray):
            hit = wanted in one
        elif isinstance(one, MESSAGE):
            hit = wanted in one.SerializeToString()
        else:
            if not isinstance(one, type | types.ModuleType):
                todo.extend(gc.get_referents(one))
            continue
        if hit:
            places.append(type(one).__name__)
    return places


async def visit(front: Any, kit: Any, text: tuple[str, ...], context: str) -> list[str]:
    """Send a text from another process, so that this one holds what the front holds and nothing else."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", VISITOR, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    params = kit.message03("-".join(text), context)
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params})
    out, _ = await process.communicate(f"{front.url}/\n{body}".encode())
    return out.decode().split()


@pytest.mark.control("MEM-03")
@pytest.mark.parametrize("by", ["context", "task", "all"])
async def test_nothing_in_the_process_holds_a_text_that_was_forgotten(kit: Any, by: str) -> None:
    planted = ("planted", "0f9c", uuid.uuid4().hex)
    context = str(uuid.uuid4())
    async with kit.serving(kit.Runner(), kit.definition()) as front, asyncio.timeout(60):
        state, task = await visit(front, kit, planted, context)
        assert state == "completed"
        front.runner.plans.clear()
        # The conversation (question, and answer, which repeats it) and the task as it is stored.
        assert sorted(found("-".join(planted))) == ["bytes", "str", "str"]
        body = {"context": {"context": context}, "task": {"task": task}, "all": {"all": True}}[by]
        assert await counts(front, body) == {"contexts": 1, "tasks": 1, "cancelled": 0}
        assert found("-".join(planted)) == []


@pytest.mark.control("MEM-03")
async def test_nothing_in_the_process_holds_a_text_whose_turn_was_running(kit: Any) -> None:
    planted = ("planted", "7a31", uuid.uuid4().hex)
    context = str(uuid.uuid4())
    script = Held()
    async with (
        kit.serving(kit.Runner(script), kit.definition(timeout_seconds=60)) as front,
        asyncio.timeout(60),
    ):
        visitor = asyncio.create_task(visit(front, kit, planted, context))
        await front.runner.started.wait()
        assert len(found("-".join(planted))) > 3
        assert (await counts(front, {"context": context}))["cancelled"] == 1
        assert (await visitor)[0] == "canceled"
        front.runner.plans.clear()
        tasks = front.forget._handler._active_task_registry._active_tasks
        await until(lambda: not tasks)
        assert found("-".join(planted)) == []


@pytest.mark.control("MEM-03")
async def test_whenever_in_a_turn_its_conversation_is_forgotten_nothing_of_it_is_kept(kit: Any) -> None:
    async def script(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Snapshot("word " * 6000)
        yield Answer("secret " * 6000)

    async with kit.serving(kit.Runner(script), kit.definition(max_concurrency=8)) as front:
        store = front.forget._store
        for ticks in range(60):
            context = str(uuid.uuid4())
            front.runner.started.clear()
            asking = asyncio.create_task(front.ask("hello", context))
            await front.runner.started.wait()
            for _ in range(ticks):
                await asyncio.sleep(0)
            await counts(front, {"context": context})
            await asking
            await front.ask("another")  # by its end the SDK has saved whatever it had of the one before
            assert store.chosen(lambda _task, of, mine=context: of == mine) == set(), ticks
            assert not front.executor._turns.lately(lambda _task, of, mine=context: of == mine)
