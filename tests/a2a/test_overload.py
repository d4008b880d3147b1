"""A front with all places taken: who comes then is told so at once, in a task that is complete."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from runtime.front.admit import RETRY_MAX_SECONDS, Pace, within
from runtime.turn.events import Answer, TurnEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.turn.plan import TurnPlan


@pytest.mark.control("LOAD-01")
@pytest.mark.parametrize("version", ["0.3", "1.0"])
@pytest.mark.parametrize("stream", [True, False])
async def test_past_the_places_a_message_is_busy_at_once_and_says_when_to_ask_again(
    kit: Any, version: str, stream: bool
) -> None:
    go_on = asyncio.Event()

    async def held(_plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        await go_on.wait()
        yield Answer("done")

    async with kit.serving(kit.Runner(held), kit.definition(max_concurrency=2)) as front:
        running = [asyncio.create_task(front.ask("hello")) for _ in range(2)]
        async with asyncio.timeout(5):
            while front.executor.running < 2:  # noqa: ASYNC110  a state of the object, not an event of ours
                await asyncio.sleep(0)
        task = await refused(front, kit, version, stream=stream)
        assert task["status"]["state"] in {"completed", "TASK_STATE_COMPLETED"}
        assert kit.texts(task) == (front.agent.messages.busy,) * 2
        for told in (task["status"]["message"]["metadata"], task["artifacts"][0]["metadata"]):
            assert told["gatehouse"]["outcome"] == "busy"
            seconds = told["gatehouse"]["retryAfterSeconds"]
            assert seconds == int(seconds)
            assert 1 <= seconds <= RETRY_MAX_SECONDS
        assert len(task["artifacts"][0]["parts"]) == 1, "no notice after a text that is no answer"
        assert len(front.runner.plans) == 2
        go_on.set()
        for answer in await asyncio.gather(*running):
            assert kit.texts(answer)[0] == "done"
            assert "metadata" not in answer["status"]["message"]
        assert kit.texts(await front.ask("again"))[0] == "done"


async def refused(front: Any, kit: Any, version: str, *, stream: bool) -> dict[str, Any]:
    """Send a message in a dialect and return its task, read back."""
    old = version == "0.3"
    params = kit.message03("hello") if old else kit.message10("hello")
    if stream:
        method = "message/stream" if old else "SendStreamingMessage"
        events = [event["result"] async for event in front.events(method, params, version=version)]
        task_id = (events[0] if old else events[0]["task"])["id"]
    else:
        method = "message/send" if old else "SendMessage"
        result = (await front.rpc(method, params, version=version))["result"]
        task_id = (result if old else result["task"])["id"]
    get = "tasks/get" if old else "GetTask"
    task: dict[str, Any] = (await front.rpc(get, {"id": task_id}, version=version))["result"]
    return task


@pytest.mark.parametrize(
    ("seconds", "whole"), [(0.0, 1), (0.2, 1), (1.0, 1), (1.1, 2), (59.5, 60), (1e9, 60)]
)
def test_what_a_client_is_told_to_wait_is_whole_and_within_a_minute(seconds: float, whole: int) -> None:
    assert within(seconds) == whole


def test_the_guess_follows_the_turns_of_late_and_the_places() -> None:
    pace = Pace()
    assert pace.retry_seconds(2) == 5
    for _ in range(20):
        pace.held(40.0)
    assert pace.retry_seconds(1) == 40
    assert pace.retry_seconds(4) == 10
    assert pace.retry_seconds(0) == 40
    for _ in range(20):
        pace.held(0.1)
    assert pace.retry_seconds(1) == 1
