"""Turn path 6/13: {agent, context, visitor, prompt} in, NDJSON events out; a disconnect cancels the turn.

Served on `spawn/spawn.sock` for the front alone. The front faces the internet, so nothing it sends chooses
anything but an agent by name, and which of its two latest definitions: image, mounts, arguments and limits
come from this side's disk (architecture §3).
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from runtime.bodies import ClientGone, read_body
from runtime.errors import ServiceUnreachable
from runtime.spawner.ceilings import Decision
from runtime.spawner.output import Dropped, Line
from runtime.spawner.request import MAX_BODY_BYTES, BadRequestError, parse_turn_request
from runtime.spawner.turns import End, Reason, Started

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

    from runtime.spawner.service import Spawner
    from runtime.spawner.turns import Event, Turn

BODY_SECONDS = 10.0
FLUSH_SECONDS = 15.0  # for a front that reads slowly, after the turn's own time
NDJSON = "application/x-ndjson"
TURN_HEADER = "gatehouse-turn"


class SpawnerRoutes:
    """What the front may ask for."""

    def __init__(self, spawner: Spawner) -> None:
        self._spawner = spawner

    async def turns(self, request: Request) -> Response:
        """Run one turn: 200 and its events, or the reason why not."""
        spawner = self._spawner
        if spawner.not_ready is not None:
            return _error(503, "not-ready")
        try:
            order = parse_turn_request(await _body(request))
        except BadRequestError as error:
            return _error(400, "bad-request", detail=str(error))
        except ClientGone:
            return Response(status_code=400)
        if spawner.agent(order.agent) is None:
            return _error(404, "unknown-agent")
        ready = spawner.defined(order.agent, order.definition)
        if ready is None:
            return _error(409, "definition-mismatch")
        most = ready.agent.limits.timeout_seconds
        if order.timeout_seconds > most:
            return _error(400, "bad-request", detail=f"timeout_seconds: more than {most}")
        turn = spawner.start(ready, order)
        if isinstance(turn, Decision):
            wait = turn.retry_after_seconds
            return _error(429, "busy", retry_after_seconds=wait, headers={"retry-after": str(wait)})
        if turn is None:
            return _error(503, "not-ready")
        return TurnStream(spawner, turn)

    async def cancel(self, request: Request) -> Response:
        """End a running turn: 200 when its container and doors are gone, 503 when the engine failed at that.

        404 when there is no such turn.
        """
        end = await self._spawner.cancel(request.path_params["turn"])
        if end is None:
            return _error(404, "unknown-turn")
        return _error(503, "not-removed") if end.reason is Reason.ENGINE else JSONResponse({})

    async def agent(self, request: Request) -> Response:
        """Tell which definitions and which pack of an agent are in use, and why none would answer now.

        Why the digests do not depend on that: they are known, and a front's half of a reload must not fail
        for a model proxy or an engine that is away, when the spawner's half is done.
        """
        if self._spawner.not_ready is not None:
            return _error(503, "not-ready")
        reason, demo = self._spawner.health, None
        try:
            demo = await self._spawner.is_demo()
        except ServiceUnreachable as error:
            reason = reason or str(error)
        name = request.path_params["agent"]
        ready, previous = self._spawner.agent(name), self._spawner.previous(name)
        if ready is None:
            return _error(404, "unknown-agent")
        return JSONResponse(
            {
                "id": ready.agent.id,
                "digest": ready.agent.digest,
                "previous": previous.agent.digest if previous else None,
                "pack": ready.pack.digest,
                "demo": demo,
                "reason": reason,
            }
        )

    async def health(self, _request: Request) -> Response:
        """Tell whether a turn would be answered."""
        reason = self._spawner.health
        if reason is not None:
            return JSONResponse({"status": "not-ready", "reason": reason}, status_code=503)
        return JSONResponse({"status": "ok"})


def spawner_app(spawner: Spawner) -> Starlette:
    """Return the app for the front's socket."""
    routes = SpawnerRoutes(spawner)
    return Starlette(
        routes=[
            Route("/turns", routes.turns, methods=["POST"]),
            Route("/turns/{turn}", routes.cancel, methods=["DELETE"]),
            Route("/agents/{agent}", routes.agent, methods=["GET"]),
            Route("/health", routes.health, methods=["GET"]),
        ]
    )


class TurnStream(Response):
    """The events of a running turn as NDJSON, one a line, sent as they happen.

    When the front is gone, whether it closed or stopped reading, the turn is ended and its container removed
    before this returns.
    """

    def __init__(self, spawner: Spawner, turn: Turn) -> None:
        super().__init__(media_type=NDJSON)
        del self.headers["content-length"]
        self.headers[TURN_HEADER] = turn.order.turn
        self._spawner = spawner
        self._turn = turn

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream until `end`."""
        del scope
        watching = asyncio.create_task(self._watch(receive))
        seconds = self._turn.order.request.timeout_seconds + FLUSH_SECONDS
        try:
            async with asyncio.timeout(seconds):
                await send(
                    {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
                )
                await self._stream(send)
        finally:
            watching.cancel()
            self._turn.stop(Reason.DISCONNECT)
            await self._spawner.finished(self._turn)

    async def _stream(self, send: Send) -> None:
        ended = False
        while not ended:
            events = await self._turn.next_events()
            ended = isinstance(events[-1], End)
            body = b"".join(map(encode, events))
            await send({"type": "http.response.body", "body": body, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._turn.stop(Reason.DISCONNECT)


def encode(event: Event) -> bytes:
    """Return one event as its NDJSON line."""
    value: dict[str, object]
    if isinstance(event, Started):
        value = {"event": "started", "turn": event.turn}
    elif isinstance(event, Line):
        value = {"event": "line", "data": event.untrusted_data.decode("utf-8", "replace")}
    elif isinstance(event, Dropped):
        value = {"event": "dropped", "bytes": event.size}
    else:
        value = {
            "event": "end",
            "reason": event.reason.value,
            "exit_code": event.exit_code,
            "oom": event.oom,
            "usage": asdict(event.usage),
            "detail": event.untrusted_detail,
        }
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


async def _body(request: Request) -> bytes:
    """Return the body, refused as soon as it is too large, of another type, or too slow."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise BadRequestError("content-type is not application/json")
    try:
        body = await read_body(request.receive, MAX_BODY_BYTES, seconds=BODY_SECONDS)
    except TimeoutError as error:
        raise BadRequestError("the body came too slowly") from error
    if body.too_long:
        raise BadRequestError(f"more than {MAX_BODY_BYTES} bytes")
    return body.data


def _error(status: int, code: str, *, headers: dict[str, str] | None = None, **fields: object) -> Response:
    return JSONResponse({"error": code, **fields}, status_code=status, headers=headers)
