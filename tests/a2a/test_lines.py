"""What a client may rely on, where no other file here proves it (tests/behaviours.py has every sentence)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from runtime import server
from runtime.front.memory import carries_memory
from runtime.turn import ending
from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step, TurnEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from runtime.turn.plan import TurnPlan

LONG = "Office hours are on Tuesday from two to four, in the drawing room, by appointment only. " * 4


async def with_a_step(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
    yield Step("Read", "Reading hours.md")
    yield Snapshot(LONG)
    yield Answer(LONG)


async def test_each_message_is_a_task_of_its_own_and_only_the_context_goes_on(front: Any) -> None:
    first = await front.ask("one")
    second = await front.ask("two", first["contextId"])
    third = await front.ask("three")
    assert len({task["id"] for task in (first, second, third)}) == 3
    assert first["contextId"] == second["contextId"] != third["contextId"]
    assert [len(front.runner.prompt(number)) for number in range(3)] == [1, 3, 1]


async def test_a_message_without_a_context_gets_one_that_nobody_can_guess(front: Any) -> None:
    found = {(await front.ask("hello"))["contextId"] for _ in range(3)}
    assert len(found) == 3
    assert all(carries_memory(context) for context in found)


async def test_a_finished_task_has_the_shape_that_clients_know(front: Any) -> None:
    front.runner.script = with_a_step
    task = await front.ask("hello")
    assert set(task) == {"kind", "id", "contextId", "status", "artifacts", "history"}
    assert set(task["status"]) == {"state", "message", "timestamp"}
    (artifact,) = task["artifacts"]
    assert (artifact["name"], bool(artifact["artifactId"])) == ("answer", True)
    said = [(line["role"], line["parts"][0]["text"]) for line in task["history"]]
    working = front.agent.messages.working
    assert said == [("user", "hello"), ("agent", working), ("agent", "Reading hours.md")]


async def test_the_events_of_a_stream_come_in_one_order(front: Any, kit: Any) -> None:
    front.runner.script = with_a_step
    events = [event["result"] async for event in front.events("message/stream", kit.message03("When?"))]
    order = [event["kind"] + ":" + event.get("status", {}).get("state", "") for event in events]
    assert order == [
        "task:submitted",
        "status-update:working",
        "status-update:working",
        "artifact-update:",
        "artifact-update:",
        "status-update:completed",
    ]
    assert [event.get("final") for event in events if "final" in event] == [False, False, True]
    assert {event.get("taskId", event.get("id")) for event in events} == {events[0]["id"]}


@pytest.mark.parametrize("version", ["0.3", "1.0"])
async def test_the_first_event_comes_while_the_turn_has_said_nothing(
    front: Any, kit: Any, version: str
) -> None:
    release = asyncio.Event()

    async def held(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        await release.wait()
        yield Answer("done")

    front.runner.script = held
    method = {"0.3": "message/stream", "1.0": "SendStreamingMessage"}[version]
    message = {"0.3": kit.message03, "1.0": kit.message10}[version]("When?")
    events = front.events(method, message, version=version)
    async with asyncio.timeout(30):
        first = (await anext(events))["result"]
    assert first.get("task", first)["status"]["state"] in {"submitted", "TASK_STATE_SUBMITTED"}
    release.set()
    assert len([event async for event in events]) >= 2


async def test_health_answers_while_every_place_is_taken_and_200_connections_are_open(kit: Any) -> None:
    release = asyncio.Event()

    async def held(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Snapshot(LONG)
        await release.wait()
        yield Answer("done")

    async with kit.serving(kit.Runner(held), kit.definition(timeout_seconds=60.0)) as front:
        asking = [asyncio.create_task(front.ask("hello")) for _ in range(front.agent.limits.max_concurrency)]
        async with asyncio.timeout(5):
            while front.executor.running < len(asking):  # noqa: ASYNC110  a state of the object, no event
                await asyncio.sleep(0)
        host, _, port = front.url.removeprefix("http://").rpartition(":")
        with contextlib.ExitStack() as opened:
            opened.callback(release.set)
            for _ in range(200):
                _reader, writer = await asyncio.open_connection(host, int(port))
                opened.callback(writer.close)
            assert kit.texts(await front.ask("one more"))[0] == front.agent.messages.busy
            answers = [await front.http.get("/health") for _ in range(20)]
            assert {answer.status_code for answer in answers} == {200}
            assert front.executor.running == len(asking)
        await asyncio.gather(*asking)


async def test_a_growing_answer_is_seen_while_its_turn_still_runs(front: Any, kit: Any) -> None:
    seen = asyncio.Event()

    async def held(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Snapshot(LONG)
        await seen.wait()
        yield Answer(LONG + "And so on.")

    front.runner.script = held
    shown = []
    async with asyncio.timeout(5):
        async for event in front.events("message/stream", kit.message03("When?")):
            if event["result"]["kind"] == "artifact-update":
                shown.append(event["result"]["artifact"]["parts"][0]["text"])
                if not seen.is_set():
                    assert front.runner.closed == 0
                    seen.set()
    assert len(shown) == 2
    assert shown[1].startswith(shown[0])


@pytest.mark.parametrize(
    ("method", "version"),
    [
        ("message/send", None),
        ("message/stream", None),
        ("SendMessage", "1.0"),
        ("SendStreamingMessage", "1.0"),
    ],
)
async def test_a_request_without_a_message_is_refused_and_runs_nothing(
    front: Any, method: str, version: str | None
) -> None:
    for params in ({}, {"message": None}):
        assert (await front.rpc(method, params, version=version))["error"]["code"] == -32602
    assert front.runner.plans == []


@pytest.mark.parametrize("value", ["CANARY", {"page": "CANARY", "user": {"text": "CANARY"}}])
async def test_a_runtime_context_in_the_metadata_reaches_no_prompt(
    front: Any, kit: Any, value: object
) -> None:
    metadata = {"runtime_context": value}
    await front.ask("hello", message={"metadata": metadata}, metadata=metadata)
    message = kit.message10("hello", message={"metadata": metadata}, metadata=metadata)
    await front.rpc("SendMessage", message, version="1.0")
    assert len(front.runner.plans) == 2
    assert "CANARY" not in repr(front.runner.plans)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"jsonrpc":"2.0","id":7,"method"'])
async def test_what_is_no_json_is_answered_with_http_200_and_no_id(front: Any, body: bytes) -> None:
    answer = await front.http.post("/", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == 200
    assert answer.json() == {
        "jsonrpc": "2.0",
        "id": None,
        "error": {"code": -32700, "message": answer.json()["error"]["message"]},
    }


async def test_no_limit_of_requests_stands_between_one_visitor_and_the_agent(front: Any) -> None:
    states = [(await front.ask("hello"))["status"]["state"] for _ in range(40)]
    assert states == ["completed"] * 40
    assert len(front.runner.plans) == 40


async def test_a_text_that_is_too_long_is_not_remembered(kit: Any) -> None:
    context = str(uuid.uuid4())
    async with kit.serving(kit.Runner(), kit.definition(max_input_chars=10)) as front:
        await front.ask("x" * 11, context)
        await front.ask("again", context)
        assert [line["text"] for line in front.runner.prompt()] == ["again"]


@pytest.mark.parametrize("last", [Answer("done"), Failed(Cause.MODEL, "x"), Failed(Cause.TIMEOUT, "x"), None])
async def test_a_slot_is_free_again_however_a_turn_ends(front: Any, last: TurnEvent | None) -> None:
    async def ends(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Step("Read", "Reading")
        if last is None:
            raise RuntimeError("a bug of the runner's")
        yield last

    front.runner.script = ends
    for _ in range(front.agent.limits.max_concurrency + 1):
        task = await front.ask("hello")
        busy = {"gatehouse": {"outcome": "busy"}}
        assert task["status"]["message"].get("metadata", {}) != busy
    assert front.executor.running == 0


class Service:
    """A runner that can also say what it serves; it runs no turn."""

    def __init__(self, digest: str) -> None:
        self.digest = digest

    async def agent(self, agent: str) -> dict[str, Any]:
        return {"id": agent, "digest": self.digest, "pack": "0" * 64, "demo": True}

    async def run(self, _plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Answer("unused")

    async def aclose(self) -> None:
        """There is nothing to let go of."""


async def test_a_front_that_starts_says_whom_it_serves_where_and_for_which_pages(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = kit.definition()
    agent = replace(plain, network=replace(plain.network, cors_origins=("https://good.example",)))
    asked: list[Callable[[], None]] = []
    monkeypatch.setattr(ending, "hear", asked.append)
    listener = server.listen_tcp("127.0.0.1", 0)
    address = str(listener.getsockname())
    with capture_logs() as told:
        serving = asyncio.create_task(
            server.serve(agent, agent.digest, Service(agent.digest), [listener], ops=False)
        )
        async with asyncio.timeout(10):
            while not any(line["event"] == "serving" for line in told):  # noqa: ASYNC110  a log is no event
                await asyncio.sleep(0)
        asked[0]()
        await serving
    (line,) = (line for line in told if line["event"] == "serving")
    assert (line["agent"], line["name"]) == ("ada", "Ada Lovelace")
    assert line["at"] == [address]
    assert line["public_url"] == "http://127.0.0.1:8011"
    assert line["cors_origins"] == ["https://good.example"]
    assert line["demo"] is True


async def test_a_visitor_s_words_are_in_no_log_of_the_front_s(
    front: Any, kit: Any, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    canary = f"CANARY-{uuid.uuid4()}"
    caplog.set_level("DEBUG")

    async def failing(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Step("Read", "Reading")
        raise RuntimeError(canary)

    with capture_logs() as told:
        await front.ask(canary)
        front.runner.script = failing
        await front.ask(canary)
        await front.rpc("message/send", kit.message03(canary, message={"taskId": canary}))
    assert told
    printed = "".join(capfd.readouterr())
    assert canary not in json.dumps(told, default=repr) + caplog.text + printed
