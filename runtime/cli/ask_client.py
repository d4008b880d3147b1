"""One question to an A2A agent of either generation, over the official client: events, and a way to cancel.

The import of this module is what `ask` pays for and no other command (half a second). What a server may send
instead of an answer ends as one named failure: a sentence, and exit code 8 when it is no working agent or 1
when the agent itself refuses.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from typing import TYPE_CHECKING, Any, Final

import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.errors import A2AClientError
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskState,
)
from a2a.utils.constants import TransportProtocol

from runtime.cli import ask_http
from runtime.cli.ask_failures import NOT_A2A, failure_of
from runtime.cli.ask_view import Begun, Doing, Ended, Partial
from runtime.cli.said import line_of
from runtime.errors import GatehouseError, ServiceUnreachable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from a2a.client import Client
    from a2a.types import AgentCard, Artifact, StreamResponse, TaskArtifactUpdateEvent

    from runtime.cli.ask_view import Event

BINDINGS: Final = [TransportProtocol.JSONRPC, TransportProtocol.HTTP_JSON]
INTERFACES_MAX: Final = 8
POLL_SECONDS: Final = 1.0
CANCEL_SECONDS: Final = 10.0
METADATA: Final = "gatehouse"
NOTICE_KIND: Final = "notice"  # of a part that no model wrote
ENDS: Final = {
    TaskState.TASK_STATE_COMPLETED: "completed",
    TaskState.TASK_STATE_FAILED: "failed",
    TaskState.TASK_STATE_CANCELED: "canceled",
    TaskState.TASK_STATE_REJECTED: "rejected",
    TaskState.TASK_STATE_INPUT_REQUIRED: "input-required",
    TaskState.TASK_STATE_AUTH_REQUIRED: "auth-required",
}


class Agent:
    """One agent that can be asked one question. `url` is its address, as `ask_http.base_address` returns it.

    `own` says that it is this checkout's stack: then the card's public address is not asked. `elsewhere`
    names the hosts that the card sends the question on to, once it has been read.
    """

    def __init__(self, url: str, *, own: bool) -> None:
        self._url = url
        self._own = own
        self._http = ask_http.client(url)
        self._client: Client | None = None
        self._task = ""
        self.elsewhere = ""
        self.afterwards = "the agent had not begun"
        for name in ("a2a", "httpx", "httpcore"):
            # They log what a server sent, and Python prints warnings of loggers without a handler.
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)

    async def ask(self, question: str, context: str) -> AsyncGenerator[Event]:
        """Send the question; yields events, the last an Ended.

        Raises ServiceUnreachable when there is no working A2A agent, GatehouseError when the agent refuses.
        """
        try:
            client = await self._connect()
            message = Message(role=Role.ROLE_USER, message_id=str(uuid.uuid4()), parts=[Part(text=question)])
            if context:
                message.context_id = context
            async with contextlib.aclosing(self._events(client, message)) as events:
                async for event in events:
                    yield event
        except NOT_A2A as error:
            raise failure_of(error, self._url, own=self._own) from error

    async def cancel(self) -> None:
        """Cancel the task on the server, if there is one; `afterwards` says what has become of it."""
        if self._client is None or not self._task:
            return
        self.afterwards = "the agent may be at work on it still"
        with contextlib.suppress(TimeoutError, GatehouseError, *NOT_A2A):
            async with asyncio.timeout(CANCEL_SECONDS):
                task = await self._client.cancel_task(CancelTaskRequest(id=self._task))
                if task.status.state in ENDS:
                    self.afterwards = "the agent has ended the task"

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _connect(self) -> Client:
        card = await self._card()
        del card.supported_interfaces[INTERFACES_MAX:]  # each may cost a look-up of its name
        for interface in card.supported_interfaces:
            named = interface.url
            interface.url = (
                f"{self._url}/" if self._own else await asyncio.to_thread(ask_http.endpoint, self._url, named)
            )
        config = ClientConfig(
            httpx_client=self._http, supported_protocol_bindings=list(BINDINGS), use_client_preference=True
        )
        try:
            self._client = ClientFactory(config).create(card)
        except ValueError as error:
            raise ServiceUnreachable(
                f"the agent at {self._url} speaks neither JSON-RPC nor HTTP+JSON",
                "ask it with another client",
            ) from error
        hosts = {httpx.URL(interface.url).host for interface in card.supported_interfaces}
        self.elsewhere = ", ".join(sorted(hosts - {httpx.URL(self._url).host}))
        return self._client

    async def _card(self) -> AgentCard:
        resolver = A2ACardResolver(self._http, self._url)
        first, second = ask_http.CARD_PATHS
        try:
            return await resolver.get_agent_card(relative_card_path=first)
        except A2AClientError as error:
            if getattr(error, "status_code", None) != httpx.codes.NOT_FOUND:
                raise
        return await resolver.get_agent_card(relative_card_path=second)

    async def _events(self, client: Client, message: Message) -> AsyncGenerator[Event]:
        answer = _Answer()
        request = SendMessageRequest(message=message)
        async with contextlib.aclosing(client.send_message(request)) as stream:  # type: ignore[type-var]
            async for response in stream:
                async for event in self._told(client, response, answer):
                    yield event
                    if isinstance(event, Ended):
                        return
        raise ServiceUnreachable("the agent stopped talking before its answer was complete", "ask again")

    async def _told(self, client: Client, response: StreamResponse, answer: _Answer) -> AsyncGenerator[Event]:
        """Yield what one response of the stream says."""
        if response.HasField("message"):
            untrusted = response.message
            yield Ended(
                "completed",
                _text(untrusted.parts),
                _outcome(untrusted),
                untrusted.task_id,
                untrusted.context_id,
            )
        elif response.HasField("task"):
            task = response.task
            self._task = task.id
            yield Begun(task.id, task.context_id)
            answer.replace(task.artifacts)
            if task.status.state not in ENDS and not client_streams(client):
                task = await self._finished(client, task.id)
                answer.replace(task.artifacts)
            if task.status.state in ENDS:
                yield answer.end(task)
        elif response.HasField("artifact_update"):
            answer.update(response.artifact_update)
            yield Partial(answer.text)
        elif response.HasField("status_update"):
            update = response.status_update
            if update.status.state in ENDS:
                yield answer.end(Task(id=update.task_id, context_id=update.context_id, status=update.status))
            elif text := _text(update.status.message.parts):
                yield Doing(text)

    async def _finished(self, client: Client, task_id: str) -> Task:
        """Ask for a task until it has ended: an agent without streams may answer before it has."""
        while True:
            task = await client.get_task(GetTaskRequest(id=task_id))
            if task.status.state in ENDS:
                return task
            await asyncio.sleep(POLL_SECONDS)


class _Answer:
    """The answer as it builds up: the text of each artifact, in the order in which they came."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}
        self._outcome = ""

    @property
    def text(self) -> str:
        return "\n\n".join(text for text in self._texts.values() if text)

    def replace(self, artifacts: Sequence[Artifact]) -> None:
        self._texts.update((one.artifact_id, _text(one.parts)) for one in artifacts)
        self._outcome = next(filter(None, map(_outcome, artifacts)), self._outcome)

    def update(self, event: TaskArtifactUpdateEvent) -> None:
        name = event.artifact.artifact_id
        before = self._texts.get(name, "") if event.append else ""
        self._texts[name] = before + _text(event.artifact.parts)
        self._outcome = _outcome(event.artifact) or self._outcome

    def end(self, task: Task) -> Ended:
        said = _text(task.status.message.parts)
        state = ENDS[task.status.state]
        return Ended(
            state,
            self.text if self.text and state == "completed" else said or self.text,
            self._outcome or _outcome(task.status.message),
            task.id,
            task.context_id,
        )


def client_streams(client: Client) -> bool:
    """Say whether the agent streams, as its card has it."""
    card: AgentCard | None = getattr(client, "_card", None)
    return card is not None and bool(card.capabilities.streaming)


def _text(parts: Sequence[Part]) -> str:
    """Return the text of parts; what is no text has its kind in its place, a notice stands apart."""
    said = ""
    for part in parts:
        apart = "\n\n" if said and _word(part, "kind") == NOTICE_KIND else ""
        said += apart + (part.text if part.HasField("text") else "[a part that is no text]")
    return said


def _outcome(untrusted: Artifact | Message) -> str:
    """Return Gatehouse's word for a text that is not the model's, or ""."""
    return _word(untrusted, "outcome")


def _word(untrusted: Artifact | Message | Part, key: str) -> str:
    """Return what Gatehouse's metadata has under a key, in one short line, or ""."""
    metadata: Any = untrusted.metadata
    try:
        found = metadata[METADATA][key]
    except (KeyError, TypeError, ValueError, IndexError):
        return ""
    return line_of(found, 40) if isinstance(found, str) else ""
