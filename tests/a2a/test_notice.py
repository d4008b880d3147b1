"""The first answer of a conversation says that an automated representative speaks, in a part of its own."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

from runtime.turn.events import Answer, Cause, Failed, Snapshot, TurnEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.turn.plan import TurnPlan

NOTICE = {"gatehouse": {"kind": "notice"}}


def parts(task: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """Return the parts of the artifact and of the status message."""
    return task["artifacts"][0]["parts"], task["status"]["message"]["parts"]


async def asked(front: Any, kit: Any, version: str, context: str, *, stream: bool) -> dict[str, Any]:
    """Ask in a dialect and return artifact and status as its last events or its task have them."""
    old = version == "0.3"
    params = (kit.message03 if old else kit.message10)("hello", context)
    if not stream:
        answer = await front.rpc("message/send" if old else "SendMessage", params, version=version)
        task: dict[str, Any] = answer["result"] if old else answer["result"]["task"]
        return task
    method = "message/stream" if old else "SendStreamingMessage"
    events = [event["result"] async for event in front.events(method, params, version=version)]
    artifacts = [
        e if old else e["artifactUpdate"] for e in events if "artifact" in e or "artifactUpdate" in e
    ]
    for event in artifacts[:-1]:
        assert len(event["artifact"]["parts"]) == 1, "a snapshot carries no notice"
    last = events[-1] if old else events[-1]["statusUpdate"]
    return {"artifacts": [artifacts[-1]["artifact"]], "status": last["status"]}


async def growing(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
    yield Snapshot("so far " * 20)
    yield Answer("so far " * 40)


@pytest.mark.control("REP-01")
@pytest.mark.parametrize("version", ["0.3", "1.0"])
@pytest.mark.parametrize("stream", [True, False])
async def test_the_first_answer_is_followed_by_the_notice_and_the_second_is_not(
    front: Any, kit: Any, version: str, stream: bool
) -> None:
    front.runner.script = growing
    context = str(uuid.uuid4())
    first = await asked(front, kit, version, context, stream=stream)
    for answer, notice in parts(first):
        assert answer["text"] == ("so far " * 40).strip()
        assert "metadata" not in answer
        assert notice["text"] == front.agent.messages.notice
        assert notice["metadata"] == NOTICE
    assert "metadata" not in first["status"]["message"], "an answer of the model has no outcome"
    second = await asked(front, kit, version, context, stream=stream)
    assert [len(shown) for shown in parts(second)] == [1, 1]
    remembered = [line["text"] for line in front.runner.prompt()]
    assert remembered == ["hello", ("so far " * 40).strip(), "hello"], "the notice is not remembered"


async def test_after_a_failed_first_turn_the_notice_comes_with_the_first_answer(front: Any) -> None:
    async def failing(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        yield Failed(Cause.CRASH, "")

    context, script = str(uuid.uuid4()), front.runner.script
    front.runner.script = failing
    assert [len(shown) for shown in parts(await front.ask("hello", context))] == [1, 1]
    front.runner.script = script
    assert [len(shown) for shown in parts(await front.ask("hello", context))] == [2, 2]
    assert [len(shown) for shown in parts(await front.ask("hello", context))] == [1, 1]


async def test_in_a_context_without_memory_every_answer_is_a_first_one(front: Any) -> None:
    for _ in range(2):
        assert [len(shown) for shown in parts(await front.ask("hello", "a-name"))] == [2, 2]


async def test_a_task_that_is_read_back_has_the_notice_too(front: Any) -> None:
    task = await front.ask("hello")
    again = (await front.rpc("GetTask", {"id": task["id"]}, version="1.0"))["result"]
    assert [part["text"] for part in parts(again)[0]] == ["echo: hello", front.agent.messages.notice]
