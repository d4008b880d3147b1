"""Turn path 5/13: how a planned turn gets run, whoever runs it.

SandboxRunner hands the plan to the spawner and reads its NDJSON (docs/reference/protocols.md). Whatever the
spawner or the turn does, the caller gets exactly one terminal event, and gets it in the turn's own time: the
spawner is given a little less, so that a turn that runs out of it has ended by then, and one that has not is
told as a timeout first and ended after.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import deque
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import httpx2

from runtime import layout
from runtime.turn.events import Answer, Cause, Failed, Usage
from runtime.turn.stream import LINE_MAX_BYTES, TurnStream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable
    from pathlib import Path

    from runtime.turn.events import TurnEvent
    from runtime.turn.plan import TurnPlan

CONNECT_SECONDS = 2.0
END_SECONDS = 1.5  # of a turn's time, for the spawner's end of it: close doors, kill, remove, verify
END_SHARE = 0.25  # the most of a short turn's time that is kept for its end
SPAWNER_MIN_SECONDS = 1.0  # it takes no shorter turn
RESULT_GRACE_SECONDS = 3.0  # after the CLI's result: for the container's removal and the usage
CANCEL_SECONDS = 5.0
CONNECTIONS = 160  # as many turns as max_concurrency can be, the DELETE of each, and questions beside them
TURN_HEADER = "gatehouse-turn"
# A line of 1 MiB can be longer as JSON; six times when every character of it is escaped.
WIRE_LINE_MAX_BYTES = 6 * LINE_MAX_BYTES + 1024

T = TypeVar("T")

_STATUS_CAUSES = {
    429: Cause.BUSY,
    404: Cause.INTERNAL,
    400: Cause.INTERNAL,
    409: Cause.SPAWNER,
    503: Cause.SPAWNER,
}
_STATUS_DETAILS = {
    409: "the spawner runs the definition no more that this turn began with: ./gatehouse reload does both",
}


class Runner(Protocol):
    """Runs one turn."""

    def run(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        """Yield the turn's events: exactly one terminal one, last, within `plan.timeout_seconds`.

        What is left to clean up after the terminal event is done when the generator is run on or closed.
        Raises nothing but `asyncio.CancelledError`. Closing the generator or cancelling its task ends the
        turn and removes its container before it returns.
        """
        ...


class SpawnerError(Exception):
    """What the spawner did instead of running the turn; never leaves this file."""

    def __init__(self, cause: Cause, detail: str) -> None:
        super().__init__(detail)
        self.cause = cause
        self.detail = detail


class SandboxRunner:
    """Runs turns in throw-away containers, through the spawner's socket."""

    def __init__(
        self,
        socket: Path = layout.SPAWN_SOCKET,
        *,
        result_grace_seconds: float = RESULT_GRACE_SECONDS,
        cancel_seconds: float = CANCEL_SECONDS,
    ) -> None:
        self._result_grace_seconds = result_grace_seconds
        self._cancel_seconds = cancel_seconds
        limits = httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=4)
        self._client = httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=str(socket), limits=limits),
            base_url="http://spawner",
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS, write=CONNECT_SECONDS * 5),
            trust_env=False,
        )

    async def aclose(self) -> None:
        """Close idle connections. Running turns must have ended."""
        await self._client.aclose()

    async def agent(self, agent: str) -> dict[str, Any]:
        """Return what the spawner says of an agent; OSError when it cannot say.

        `{"id", "digest", "previous", "pack", "demo", "reason"}` (docs/reference/protocols.md).
        """
        try:
            async with asyncio.timeout(CONNECT_SECONDS * 2):
                response = await self._client.get(f"/agents/{agent}")
            response.raise_for_status()
            value = response.json()
        except (httpx2.HTTPError, TimeoutError, ValueError) as error:
            raise OSError(f"the spawner did not describe agent {agent}: {type(error).__name__}") from error
        if not isinstance(value, dict):
            raise OSError(f"the spawner's description of agent {agent} is no object")
        return value

    async def run(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        """Run one turn; see Runner."""
        deadline = asyncio.get_running_loop().time() + plan.timeout_seconds
        turn = _SpawnedTurn(self._client, deadline)
        stream = TurnStream()
        try:
            await turn.open(plan)
            while not turn.ended:
                message = await turn.next()
                match message.get("event"):
                    case "line":
                        seen = stream.finished
                        for event in stream.feed(_text(message.get("data"))):
                            yield event
                        if stream.finished and not seen:
                            turn.hurry(self._result_grace_seconds)
                    case "end":
                        turn.ended = True
                        yield _conclude(stream, message)
        except SpawnerError as error:
            yield stream.conclude("exited") if stream.finished else Failed(error.cause, error.detail)
        finally:
            await turn.close(self._cancel_seconds)


class _SpawnedTurn:
    """One `POST /turns` and its NDJSON, every wait of it bounded by the turn's deadline."""

    def __init__(self, client: httpx2.AsyncClient, deadline: float) -> None:
        self._client = client
        self._deadline = deadline
        self._response: httpx2.Response | None = None
        self._reading: AsyncIterator[list[bytes]] | None = None
        self._lines: deque[bytes] = deque()  # read and not yet looked at
        self._id = ""
        self.ended = False

    def hurry(self, seconds: float) -> None:
        """Wait at most `seconds` more from now."""
        self._deadline = min(self._deadline, asyncio.get_running_loop().time() + seconds)

    async def open(self, plan: TurnPlan) -> None:
        """Hand the plan over. Raises SpawnerError when the spawner does not take it."""
        body = {
            "agent": plan.agent,
            "definition": plan.definition,
            "context": plan.context,
            "visitor": plan.visitor,
            "prompt": plan.prompt,
            "timeout_seconds": spawner_seconds(plan.timeout_seconds),
        }
        request = self._client.build_request("POST", "/turns", json=body)
        self._response = await self._bounded(self._client.send(request, stream=True))
        if self._response.status_code != httpx2.codes.OK:
            status = self._response.status_code
            detail = _STATUS_DETAILS.get(status, f"the spawner answered {status}")
            raise SpawnerError(_STATUS_CAUSES.get(status, Cause.SPAWNER), detail)
        self._id = self._response.headers.get(TURN_HEADER, "")
        self._reading = _lines(self._response.aiter_raw())

    async def next(self) -> dict[str, Any]:
        """Return the next event. Raises SpawnerError at the deadline and when the connection ends."""
        if self._reading is None:
            raise SpawnerError(Cause.INTERNAL, "the turn was not opened")
        try:
            while not self._lines:
                self._lines.extend(await self._bounded(anext(self._reading)))
        except StopAsyncIteration:
            raise SpawnerError(Cause.SPAWNER, "the spawner's answer ended early") from None
        try:
            message = json.loads(self._lines.popleft())
        except (ValueError, RecursionError):
            raise SpawnerError(Cause.SPAWNER, "the spawner's answer is no JSON") from None
        if not isinstance(message, dict):
            raise SpawnerError(Cause.SPAWNER, "the spawner's answer is no object")
        return message

    async def close(self, seconds: float) -> None:
        """End the turn if it has not ended, wait for its container to be gone, and close the connection.

        Why first DELETE and then the close: the spawner answers the one when the container is gone, while a
        closed connection tells nobody when.
        """
        try:
            if self._reading is not None and not self.ended and self._id:
                with contextlib.suppress(httpx2.HTTPError, TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._client.delete(f"/turns/{self._id}")
        finally:
            if self._response is not None:
                with contextlib.suppress(httpx2.HTTPError, OSError, RuntimeError):
                    await self._response.aclose()

    async def _bounded(self, work: Awaitable[T]) -> T:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await work
        except TimeoutError:
            raise SpawnerError(Cause.TIMEOUT, "the spawner did not end the turn in time") from None
        except (httpx2.HTTPError, OSError) as error:
            raise SpawnerError(
                Cause.SPAWNER, f"the spawner is out of reach: {type(error).__name__}"
            ) from None


def spawner_seconds(timeout_seconds: float) -> float:
    """Return how long the spawner may run a turn whose answer is due in `timeout_seconds`."""
    return max(SPAWNER_MIN_SECONDS, timeout_seconds - min(END_SECONDS, timeout_seconds * END_SHARE))


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield the lines that each chunk completes, together: a turn may write a hundred thousand short ones.

    Split at line feeds only: a line may hold U+2028 and other characters that text iterators split at.
    """
    held = bytearray()
    async for chunk in chunks:
        first, *rest = chunk.split(b"\n")
        held += first
        if rest:
            lines = [bytes(held), *rest[:-1]]
            held = bytearray(rest[-1])
            yield lines
        if len(held) > WIRE_LINE_MAX_BYTES:
            raise SpawnerError(Cause.OUTPUT, "the spawner sent a line that is too long")


def _conclude(stream: TurnStream, end: dict[str, Any]) -> Answer | Failed:
    usage = end.get("usage")
    exit_code = end.get("exit_code")
    return stream.conclude(
        _text(end.get("reason")),
        exit_code=exit_code if isinstance(exit_code, int) else None,
        oom=end.get("oom") is True,
        detail=_text(end.get("detail"))[:2000],
        usage=_usage(usage) if isinstance(usage, dict) else Usage(),
    )


def _usage(value: dict[str, Any]) -> Usage:
    def number(key: str) -> int:
        found = value.get(key)
        return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else 0

    return Usage(**{one.name: number(one.name) for one in fields(Usage)})


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
