"""Plays the course of tests/clients with the Python SDK 1.3, as its defaults are, and prints what it saw.

python_1_3.py URL      prints one JSON object for each step
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, create_client
from a2a.client.client import ClientCallContext
from a2a.helpers import new_raw_part, new_text_message, new_text_part
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    StreamResponse,
    Task,
    TaskState,
)
from a2a.utils.errors import JSON_RPC_ERROR_CODE_MAP, A2AError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a.client import Client

TEXT = "grüße 🦉 مرحبا"


def tell(step: str, **seen: Any) -> None:
    print(json.dumps({"step": step} | seen), flush=True)  # noqa: T201 - what it saw is what the program is for


def state(value: TaskState) -> str:
    return str(TaskState.Name(value)).removeprefix("TASK_STATE_").lower()


def told(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the answer, which is the first part, and whether the notice follows it."""
    kinds = [dict(part.metadata["gatehouse"]).get("kind") for part in parts[1:]]
    return {"answer": parts[0].text, "notice": kinds == ["notice"]}


def result(task: Task) -> dict[str, Any]:
    return {"state": state(task.status.state)} | (told(task.artifacts[0].parts) if task.artifacts else {})


def request(text: str, context: str | None = None) -> SendMessageRequest:
    return SendMessageRequest(message=new_text_message(text, context_id=context, role=Role.ROLE_USER))


async def failing(step: str, call: Any) -> None:
    try:
        await call
    except A2AError as error:
        code = JSON_RPC_ERROR_CODE_MAP.get(type(error))
        tell(step, error=type(error).__name__, code=code)
    else:
        tell(step, error="", code=0)


async def sent(client: Client, message: SendMessageRequest, **options: Any) -> Task:
    events = [event async for event in client.send_message(message, **options)]
    return events[-1].task


async def streamed(step: str, client: Client, text: str, *, cancel: bool = False) -> None:
    states: list[str] = []
    texts: list[str] = []
    ended: dict[str, Any] = {}
    event: StreamResponse
    async for event in client.send_message(request(text)):
        if event.HasField("task"):
            states.append(state(event.task.status.state))
        elif event.HasField("status_update"):
            states.append(state(event.status_update.status.state))
        elif event.HasField("artifact_update"):
            texts.append(event.artifact_update.artifact.parts[0].text)
            ended = told(event.artifact_update.artifact.parts)
            if cancel and len(texts) == 1:
                task = await client.cancel_task(CancelTaskRequest(id=event.artifact_update.task_id))
                tell("cancel", state=state(task.status.state))
    tell(
        step,
        states=[one for at, one in enumerate(states) if states[at - 1 : at] != [one]],
        texts=texts,
        **ended,
    )


async def main(url: str) -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, url).get_agent_card()
    blocking = await create_client(card, ClientConfig(streaming=False))
    streaming = await create_client(card)
    tell(
        "card",
        name=card.name,
        skills=[skill.id for skill in card.skills],
        streams=card.capabilities.streaming,
    )
    first = await sent(blocking, request(TEXT))
    tell("send", **result(first))
    tell("again", **result(await sent(blocking, request("before", first.context_id))))
    tell("get", **result(await blocking.get_task(GetTaskRequest(id=first.id))))
    await streamed("stream", streaming, "grow")
    await streamed("quiet", streaming, "quiet")
    await streamed("cancelled", streaming, "wait", cancel=True)
    await failing("unknown task", blocking.get_task(GetTaskRequest(id="nobody-knows")))
    lost = Message(
        role=Role.ROLE_USER, message_id="lost", task_id="nobody-knows", parts=[new_text_part("hello")]
    )
    await failing("unknown task, streamed", sent(streaming, SendMessageRequest(message=lost)))
    await failing("ended task", blocking.cancel_task(CancelTaskRequest(id=first.id)))
    part = new_raw_part(b"\x89PNG", media_type="image/png")
    message = Message(role=Role.ROLE_USER, message_id="picture", parts=[part])
    await failing("picture", sent(blocking, SendMessageRequest(message=message)))
    context = ClientCallContext(service_parameters={"A2A-Version": "0.3"})
    await failing("version", sent(blocking, request("hello"), context=context))
    await blocking.close()
    await streaming.close()


asyncio.run(main(sys.argv[1]))
