"""What goes over HTTP, before and after the A2A SDK: plain ASGI middlewares.

The SDK checks neither size nor content type nor depth (seen: 20 MB bodies, `text/plain` from any web page,
a recursion error as an answer), so RequestGate does; what it passes on is a body and headers that it has
written itself (jsonrpc.py). ErrorShim rebuilds each error body (see dialects.py). What depends on the agent
is asked of `current` at each request, because a reload may change it.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse

from runtime.front.dialects import INVALID_REQUEST, clean_error, error, response
from runtime.front.identity import FORWARDED_HEADER
from runtime.front.jsonrpc import examine

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from runtime.front.current import Current

BODY_MIN_BYTES: Final = 64 * 1024
BODY_BYTES_PER_CHARACTER: Final = 12  # an emoji as two \uXXXX
BODY_FRAME_BYTES: Final = 16 * 1024
BODY_SECONDS: Final = 15.0
QUERY_MAX_BYTES: Final = 256
VERSION_HEADER: Final = "a2a-version"
# All that anybody behind the gate reads, beside the version. The SDK keeps a request's headers with its task.
PASSED_HEADERS: Final = frozenset({b"content-type", b"host", FORWARDED_HEADER})

SECURITY_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "cross-origin",
}


class SecurityHeaders:
    """Adds the headers that every answer carries; no answer is stored unless it says so itself."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in SECURITY_HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        await self.app(scope, receive, send_with_headers)


class Origins:
    """Lets browsers of the agent's `cors_origins` read its answers; without any it is not there."""

    def __init__(self, app: ASGIApp, current: Current) -> None:
        self.app = app
        self._current = current
        self._allowed: tuple[str, ...] = ()
        self._cors: ASGIApp = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer a browser's preflight."""
        origins = self._current.agent.network.cors_origins
        if origins != self._allowed:
            self._cors = self._allowing(origins)
            self._allowed = origins
        await self._cors(scope, receive, send)

    def _allowing(self, origins: tuple[str, ...]) -> ASGIApp:
        if not origins:
            return self.app
        return CORSMiddleware(
            self.app,
            allow_origins=origins,
            allow_methods=["GET", "POST"],
            allow_headers=["content-type", "a2a-version", "a2a-extensions"],
        )


class RequestGate:
    """Lets through JSON-RPC requests of a sane size, type, depth and version, and no listing of tasks.

    A message of the agent's `max_input_chars` passes however its client escapes it.
    """

    def __init__(self, app: ASGIApp, current: Current, *, body_seconds: float = BODY_SECONDS) -> None:
        self.app = app
        self._current = current
        self._body_seconds = body_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused, pass on any other with its body already read."""
        if scope["type"] != "http" or scope["path"] != "/" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        agent = self._current.agent
        headers = Headers(scope=scope)
        if headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
            refusal = _http_error(415, "The Content-Type must be application/json")
            await refusal(scope, receive, send)
            return
        try:
            async with asyncio.timeout(self._body_seconds):
                body = await _read(receive, headers, body_max_bytes(agent.limits.max_input_chars))
        except TimeoutError:
            await _http_error(408, "The request's body came too slowly")(scope, receive, send)
            return
        if isinstance(body, str):
            await _http_error(413, body)(scope, receive, send)
            return
        if body is None:
            return
        version = headers.get(VERSION_HEADER, "") or _version_parameter(scope)
        found = examine(body, version)
        if found.refusal is not None:
            await JSONResponse(found.refusal)(scope, receive, send)
            return
        passed = [(name, value) for name, value in scope["headers"] if name in PASSED_HEADERS]
        if version:
            passed.append((VERSION_HEADER.encode(), version.encode("latin-1", "replace")))
        app = ErrorShim(self.app, found.method, agent.messages.no_running)
        await app({**scope, "headers": passed, "query_string": b""}, _replay(found.body, receive), send)


class ErrorShim:
    """Rebuilds the error bodies of one request's answer, JSON or SSE."""

    def __init__(self, app: ASGIApp, method: str, no_running: str) -> None:
        self.app = app
        self._method = method
        self._no_running = no_running

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on and its answer back."""
        start: Message = {}
        held = bytearray()
        stream = False

        async def send_clean(message: Message) -> None:
            nonlocal start, stream
            if message["type"] == "http.response.start":
                stream = (
                    Headers(raw=message["headers"]).get("content-type", "").startswith("text/event-stream")
                )
                start = message
                if stream:
                    await send(message)
                return
            if message["type"] != "http.response.body":
                await send(message)
                return
            if stream:
                await send({**message, "body": self._clean_events(bytes(message.get("body", b"")))})
                return
            held.extend(message.get("body", b""))
            if not message.get("more_body"):
                body = self._clean_json(bytes(held))
                MutableHeaders(scope=start)["content-length"] = str(len(body))
                await send(start)
                await send({"type": "http.response.body", "body": body})

        await self.app(scope, receive, send_clean)

    def _clean_events(self, chunk: bytes) -> bytes:
        if b'"error"' not in chunk:
            return chunk
        lines = chunk.split(b"\r\n")
        return b"\r\n".join(
            b"data: " + self._clean_json(line[6:]) if line.startswith(b"data: ") else line for line in lines
        )

    def _clean_json(self, body: bytes) -> bytes:
        if b'"error"' not in body:
            return body
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return body
        if not isinstance(value, dict) or "error" not in value:
            return body
        cleaned = response(value.get("id"), clean_error(value["error"], self._method, self._no_running))
        return json.dumps(cleaned, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _http_error(status: int, sentence: str) -> JSONResponse:
    headers = {"connection": "close"}
    return JSONResponse(response(None, error(INVALID_REQUEST, sentence)), status_code=status, headers=headers)


def body_max_bytes(max_input_chars: int) -> int:
    """Return how large a request may be, in bytes."""
    return max(BODY_MIN_BYTES, max_input_chars * BODY_BYTES_PER_CHARACTER + BODY_FRAME_BYTES)


def _version_parameter(scope: Scope) -> str:
    """Return the version that the address names (A2A 1.0 §3.6.1); the SDK reads only the header."""
    query = scope["query_string"]
    if len(query) > QUERY_MAX_BYTES:
        return ""
    values: list[str] = parse_qs(query.decode("latin-1")).get("A2A-Version", [""])
    return values[0]


async def _read(receive: Receive, headers: Headers, most: int) -> bytes | str | None:
    """Return the body, a sentence when it is larger than `most` bytes, None when the client has gone."""
    too_large = f"The request is larger than {most} bytes"
    length = headers.get("content-length", "")
    if length.isdecimal() and int(length[:20]) > most:
        return too_large
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        body += message.get("body", b"")
        if len(body) > most:
            return too_large
        if not message.get("more_body"):
            return bytes(body)


def _replay(body: bytes, receive: Receive) -> Receive:
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay
