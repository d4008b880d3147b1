"""Plays the course of tests/clients with the Python SDK 0.3, as its defaults are, and prints what it saw.

python_0_3.py URL      prints one JSON object for each step; runs in the environment of that SDK
"""

# mypy: ignore-errors
# The names are those of another version of the SDK than the one that mypy finds.

from __future__ import annotations

import asyncio
import base64
import json
import sys
import uuid
from typing import TYPE_CHECKING, Any

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientJSONRPCError
from a2a.client.middleware import ClientCallContext
from a2a.types import (
    FilePart,
    FileWithBytes,
    Message,
    Part,
    Role,
    Task,
    TaskArtifactUpdateEvent,
    TaskIdParams,
    TaskQueryParams,
    TaskStatusUpdateEvent,
    TextPart,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a.client import Client

TEXT = "grüße 🦉 مرحبا"


def tell(step: str, **seen: Any) -> None:
    print(json.dumps({"step": step} | seen), flush=True)  # noqa: T201 - what it saw is what the program is for


def told(parts: Sequence[Part]) -> dict[str, Any]:
    """Return the answer, which is the first part, and whether the notice follows it."""
    kinds = [(part.root.metadata or {}).get("gatehouse", {}).get("kind") for part in parts[1:]]
    return {"answer": parts[0].root.text, "notice": kinds == ["notice"]}


def result(task: Task) -> dict[str, Any]:
    return {"state": task.status.state.value} | (told(task.artifacts[0].parts) if task.artifacts else {})


def message(text: str, context: str | None = None) -> Message:
    part = Part(root=TextPart(text=text))
    return Message(role=Role.user, message_id=str(uuid.uuid4()), context_id=context, parts=[part])


async def failing(step: str, call: Any) -> None:
    try:
        await call
    except A2AClientJSONRPCError as error:
        tell(step, error=type(error).__name__, code=error.error.code)
    else:
        tell(step, error="", code=0)


async def sent(client: Client, request: Message, **options: Any) -> Task:
    events = [event async for event in client.send_message(request, **options)]
    return events[-1][0]


async def streamed(step: str, client: Client, text: str, *, cancel: bool = False) -> None:
    states: list[str] = []
    texts: list[str] = []
    ended: dict[str, Any] = {}
    async for task, update in client.send_message(message(text)):
        if update is None:
            states.append(task.status.state.value)
        elif isinstance(update, TaskStatusUpdateEvent):
            states.append(update.status.state.value)
        elif isinstance(update, TaskArtifactUpdateEvent):
            texts.append(update.artifact.parts[0].root.text)
            ended = told(update.artifact.parts)
            if cancel and len(texts) == 1:
                stopped = await client.cancel_task(TaskIdParams(id=task.id))
                tell("cancel", state=stopped.status.state.value)
    tell(
        step,
        states=[one for at, one in enumerate(states) if states[at - 1 : at] != [one]],
        texts=texts,
        **ended,
    )


async def main(url: str) -> None:
    async with httpx.AsyncClient() as http:
        card = await A2ACardResolver(http, url).get_agent_card()
    blocking = await ClientFactory.connect(card, ClientConfig(streaming=False))
    streaming = await ClientFactory.connect(card)
    skills = [skill.id for skill in card.skills]
    tell("card", name=card.name, skills=skills, streams=card.capabilities.streaming)
    first = await sent(blocking, message(TEXT))
    tell("send", **result(first))
    tell("again", **result(await sent(blocking, message("before", first.context_id))))
    tell("get", **result(await blocking.get_task(TaskQueryParams(id=first.id))))
    await streamed("stream", streaming, "grow")
    await streamed("quiet", streaming, "quiet")
    await streamed("cancelled", streaming, "wait", cancel=True)
    await failing("unknown task", blocking.get_task(TaskQueryParams(id="nobody-knows")))
    lost = message("hello").model_copy(update={"task_id": "nobody-knows"})
    await failing("unknown task, streamed", sent(streaming, lost))
    await failing("ended task", blocking.cancel_task(TaskIdParams(id=first.id)))
    picture = FileWithBytes(bytes=base64.b64encode(b"\x89PNG").decode(), mime_type="image/png")
    parts = [Part(root=FilePart(file=picture))]
    await failing("picture", sent(blocking, Message(role=Role.user, message_id="picture", parts=parts)))
    context = ClientCallContext(state={"http_kwargs": {"headers": {"A2A-Version": "1.0"}}})
    await failing("version", sent(blocking, message("hello"), context=context))


asyncio.run(main(sys.argv[1]))
