"""SandboxRunner against a spawner that speaks the protocol over a real Unix socket, and one that does not.

What the fake leaves out: the engine. It plays the lines that docs/reference/protocols.md gives.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from runtime.agents.fields import SETTINGS
from runtime.serving import serving
from runtime.turn.events import Answer, Cause, Failed, Snapshot, TurnEvent, Usage
from runtime.turn.plan import TurnPlan
from runtime.turn.runner import CONNECTIONS, SandboxRunner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from starlette.requests import Request

PLAN = TurnPlan("ada", "d" * 64, "c" * 32, "v" * 32, '{"from":"visitor","text":"hi","now":true}', 60.0)
TURN = "ab" * 16
USAGE = {"requests": 1, "input_tokens": 10, "output_tokens": 2, "refused": 0, "request_bytes": 84_512}


def line(value: dict[str, Any]) -> dict[str, Any]:
    return {"event": "line", "data": json.dumps(value)}


def end(reason: str = "exited", **extra: Any) -> dict[str, Any]:
    return {
        "event": "end",
        "reason": reason,
        "exit_code": 0,
        "oom": False,
        "usage": USAGE,
        "detail": "",
    } | extra


STARTED = {"event": "started", "turn": TURN}
RESULT = line({"type": "result", "is_error": False, "result": "The answer.\u2028Still."})


class FakeSpawner:
    """Answers POST /turns with `status` or by writing `script`; an Event in the script is waited for."""

    def __init__(self) -> None:
        self.script: list[Any] = [STARTED, RESULT, end()]
        self.status = 200
        self.body: dict[str, Any] = {}
        self.deleted: list[str] = []
        self.gone = asyncio.Event()
        self.knows_delete = True
        self.may_delete = asyncio.Event()
        self.may_delete.set()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/turns", self.turns, methods=["POST"]),
                Route("/turns/{turn}", self.delete, methods=["DELETE"]),
                Route("/agents/{agent}", self.agent),
            ]
        )

    async def turns(self, request: Request) -> Response:
        self.body = await request.json()
        if self.status != 200:
            return JSONResponse({"error": "x"}, status_code=self.status)
        headers = {"gatehouse-turn": TURN}
        return StreamingResponse(self.lines(), media_type="application/x-ndjson", headers=headers)

    async def lines(self) -> AsyncIterator[bytes]:
        try:
            for item in self.script:
                if isinstance(item, asyncio.Event):
                    await item.wait()
                elif isinstance(item, bytes):
                    yield item
                else:
                    yield json.dumps(item, ensure_ascii=False).encode() + b"\n"
        finally:
            self.gone.set()

    async def delete(self, request: Request) -> Response:
        if not self.knows_delete:
            return JSONResponse({}, status_code=404)
        await self.may_delete.wait()
        self.deleted.append(request.path_params["turn"])
        return JSONResponse({})

    async def agent(self, request: Request) -> Response:
        name = request.path_params["agent"]
        if name == "nobody":
            return JSONResponse({}, status_code=404)
        return JSONResponse({"id": name, "digest": "d", "pack": "p", "demo": True})


@pytest.fixture
async def spawner() -> AsyncGenerator[tuple[FakeSpawner, SandboxRunner], None]:
    fake = FakeSpawner()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spawn.sock"
        async with serving(fake.app(), path, grace_seconds=1, connections=200):
            runner = SandboxRunner(path, result_grace_seconds=0.2, cancel_seconds=1.0)
            yield fake, runner
            await runner.aclose()


async def collect(runner: SandboxRunner, plan: TurnPlan = PLAN) -> list[TurnEvent]:
    async with asyncio.timeout(20):  # well below the plan's own time: nothing here may wait for that
        return [event async for event in runner.run(plan)]


async def test_a_turn_sends_the_plan_and_ends_with_the_answer_and_its_usage(spawner: Any) -> None:
    fake, runner = spawner
    events = await collect(runner)
    assert fake.body == {
        "agent": "ada",
        "definition": "d" * 64,
        "context": "c" * 32,
        "visitor": "v" * 32,
        "prompt": PLAN.prompt,
        "timeout_seconds": 58.5,
    }
    assert events == [Answer("The answer.\u2028Still.", Usage(1, 10, 2, 0, 84_512))]
    assert fake.deleted == []


async def test_snapshots_pass_as_they_come(spawner: Any) -> None:
    fake, runner = spawner
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x" * 60}}
    fake.script = [
        STARTED,
        line({"type": "stream_event", "event": delta}),
        {"event": "dropped", "bytes": 5},
        end(),
    ]
    assert [type(event) for event in await collect(runner)] == [Snapshot, Answer]


@pytest.mark.parametrize(
    ("status", "cause"),
    [
        (429, Cause.BUSY),
        (404, Cause.INTERNAL),
        (400, Cause.INTERNAL),
        (409, Cause.SPAWNER),
        (503, Cause.SPAWNER),
        (500, Cause.SPAWNER),
        (302, Cause.SPAWNER),
    ],
)
async def test_each_refusal_has_its_cause(spawner: Any, status: int, cause: Cause) -> None:
    fake, runner = spawner
    fake.status = status
    events = await collect(runner)
    assert [event.cause for event in events if isinstance(event, Failed)] == [cause]
    assert len(events) == 1


async def test_a_definition_that_the_spawner_runs_no_more_is_told_as_that(spawner: Any) -> None:
    fake, runner = spawner
    fake.status = 409
    (failed,) = await collect(runner)
    assert isinstance(failed, Failed)
    assert failed.detail.startswith("the spawner runs the definition no more that this turn began with")


@pytest.mark.parametrize(
    "script",
    [
        [],
        [STARTED],
        [STARTED, b"no json\n"],
        [STARTED, b"[]\n"],
        [STARTED, b'{"event":"end"'],
        [STARTED, b"[" * 100_000 + b"\n"],
    ],
)
async def test_a_spawner_that_breaks_the_protocol_is_one_failure(spawner: Any, script: list[Any]) -> None:
    fake, runner = spawner
    fake.script = script
    events = await collect(runner)
    assert len(events) == 1
    assert isinstance(events[0], Failed)
    assert events[0].cause is Cause.SPAWNER


@pytest.mark.parametrize("cut", [1, 40, 41, 4000, -3, -1])
async def test_lines_that_come_together_or_in_pieces_are_read_alike(spawner: Any, cut: int) -> None:
    fake, runner = spawner
    noise = [line({})] * 200
    sent = b"".join(json.dumps(one).encode() + b"\n" for one in [STARTED, *noise, RESULT, *noise, end()])
    fake.script = [sent[:cut], sent[cut:]]
    (answer,) = await collect(runner)
    assert answer == Answer("The answer.\u2028Still.", Usage(**USAGE))


async def test_no_spawner_at_all_is_one_failure(tmp_path: Path) -> None:
    runner = SandboxRunner(tmp_path / "none.sock")
    events = await collect(runner)
    await runner.aclose()
    assert [event.cause for event in events if isinstance(event, Failed)] == [Cause.SPAWNER]


async def test_a_spawner_that_hangs_is_a_timeout_and_its_turn_is_deleted(spawner: Any) -> None:
    fake, runner = spawner
    fake.script = [STARTED, asyncio.Event()]
    events = await collect(runner, TurnPlan("ada", "d" * 64, "c", "v", "p", 0.1))
    assert [event.cause for event in events if isinstance(event, Failed)] == [Cause.TIMEOUT]
    assert fake.deleted == [TURN]


@pytest.mark.control("ANS-01")
async def test_a_timeout_is_told_before_the_turn_is_ended_at_the_spawner(spawner: Any) -> None:
    fake, runner = spawner
    late = asyncio.Event()
    asyncio.get_running_loop().call_later(4, late.set)
    fake.script = [STARTED, late, end("deadline")]
    fake.may_delete.clear()
    async with contextlib.aclosing(runner.run(TurnPlan("ada", "d" * 64, "c", "v", "p", 0.2))) as events:
        told = await anext(events)
        assert isinstance(told, Failed)
        assert told.cause is Cause.TIMEOUT
        assert not late.is_set()
        assert not fake.gone.is_set()
        assert fake.deleted == []
        fake.may_delete.set()
    assert fake.deleted == [TURN]


@pytest.mark.control("ANS-01")
@pytest.mark.parametrize(
    ("seconds", "asked"), [(900, 898.5), (90, 88.5), (6, 4.5), (4, 3.0), (2, 1.5), (1, 1.0), (0.3, 1.0)]
)
async def test_the_spawner_gets_less_than_the_turn_has_so_that_it_can_end_it(
    spawner: Any, seconds: float, asked: float
) -> None:
    fake, runner = spawner
    await collect(runner, TurnPlan("ada", "d" * 64, "c", "v", "p", seconds))
    assert fake.body["timeout_seconds"] == asked


async def test_questions_pass_while_as_many_turns_run_as_an_agent_may_have(spawner: Any) -> None:
    fake, runner = spawner
    most = next(int(item.maximum) for item in SETTINGS if item.key == "max_concurrency" and item.maximum)
    assert most * 2 < CONNECTIONS
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x" * 60}}
    fake.script = [STARTED, line({"type": "stream_event", "event": delta}), asyncio.Event()]
    runs = [runner.run(PLAN) for _ in range(70)]
    for run in runs:
        assert isinstance(await anext(run), Snapshot)
    async with asyncio.timeout(5):
        assert (await runner.agent("ada"))["demo"] is True
    await asyncio.gather(*(run.aclose() for run in runs))
    assert len(fake.deleted) == len(runs)


async def test_a_result_is_answered_although_the_end_never_comes(spawner: Any) -> None:
    fake, runner = spawner
    fake.script = [STARTED, RESULT, asyncio.Event()]
    assert await collect(runner) == [Answer("The answer.\u2028Still.")]
    assert fake.deleted == [TURN]


@pytest.mark.parametrize("knows_delete", [True, False])
async def test_closing_the_run_ends_the_turn_at_the_spawner(spawner: Any, knows_delete: bool) -> None:
    fake, runner = spawner
    fake.knows_delete = knows_delete
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x" * 60}}
    fake.script = [STARTED, line({"type": "stream_event", "event": delta}), asyncio.Event()]
    async with contextlib.aclosing(runner.run(PLAN)) as events:
        assert isinstance(await anext(events), Snapshot)
    async with asyncio.timeout(5):
        await fake.gone.wait()
    assert fake.deleted == ([TURN] if knows_delete else [])


async def test_cancelling_the_task_ends_the_turn_at_the_spawner(spawner: Any) -> None:
    fake, runner = spawner
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "x" * 60}}
    fake.script = [STARTED, line({"type": "stream_event", "event": delta}), asyncio.Event()]
    reached = asyncio.Event()

    async def consume() -> None:
        async with contextlib.aclosing(runner.run(PLAN)) as events:
            async for _event in events:
                reached.set()

    task = asyncio.create_task(consume())
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert fake.deleted == [TURN]
    async with asyncio.timeout(5):
        await fake.gone.wait()


async def test_the_spawner_describes_an_agent_or_raises_an_os_error(spawner: Any) -> None:
    _fake, runner = spawner
    assert (await runner.agent("ada"))["demo"] is True
    with pytest.raises(OSError, match="did not describe agent nobody"):
        await runner.agent("nobody")


async def test_negative_and_foreign_usage_counts_as_zero(spawner: Any) -> None:
    fake, runner = spawner
    fake.script = [STARTED, RESULT, end(usage={"requests": -1, "input_tokens": "x", "output_tokens": True})]
    assert (await collect(runner))[-1] == Answer("The answer.\u2028Still.", Usage())
