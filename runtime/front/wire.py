"""What goes over HTTP, before and after the A2A SDK: plain ASGI middlewares.

The SDK checks neither size nor content type nor depth (seen: 20 MB bodies, `text/plain` from any web page,
a recursion error as an answer), so RequestGate does; what it passes on is a body and headers that it has
written itself (jsonrpc.py). ErrorShim rebuilds each error body (see dialects.py). What depends on the agent
is asked of `current` at each request, because a reload may change it. No answer is made of what a request
says of its server (`Host`, `X-Forwarded-Host`, an absolute target): addresses come from the definition alone.
"""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import JSONResponse, Response

from runtime.front.dialects import INVALID_REQUEST, clean_error, error, response
from runtime.front.jsonrpc import Bounds, examine

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from runtime.front.current import Current
    from runtime.front.identity import Identity
    from runtime.front.settings import FrontSettings

BODY_MIN_BYTES: Final = 64 * 1024
BODY_BYTES_PER_CHARACTER: Final = 12  # an emoji as two \uXXXX
BODY_FRAME_BYTES: Final = 16 * 1024
QUERY_MAX_BYTES: Final = 256
ENDPOINT: Final = "/"
VISITOR: Final = "visitor"  # the key in a request's scope; only what came through the gate has it
VERSION_HEADER: Final = b"a2a-version"
# All that anybody behind the gate reads, beside the version. The SDK keeps a request's headers with its task.
PASSED_HEADERS: Final = frozenset({b"content-type", b"host"})
PREFLIGHT_SECONDS: Final = 600

SECURITY_HEADERS: Final = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "cross-origin",
}
NO_STORE: Final = (b"cache-control", b"no-store")
RAW_SECURITY_HEADERS: Final = tuple(
    (name.encode(), value.encode()) for name, value in SECURITY_HEADERS.items()
)
# What this server may be asked for by a page of an allowed origin: both dialects, and no credentials.
METHODS: Final = ("GET", "POST", "OPTIONS")
PREFLIGHT: Final = {
    "access-control-allow-methods": ", ".join(METHODS),
    "access-control-allow-headers": "content-type, a2a-version, a2a-extensions",
    "access-control-max-age": str(PREFLIGHT_SECONDS),
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
                headers = [*message.get("headers", ()), *RAW_SECURITY_HEADERS]
                if not any(name == NO_STORE[0] for name, _ in headers):
                    headers.append(NO_STORE)
                message = {**message, "headers": headers}
            await send(message)

        await self.app(scope, receive, send_with_headers)


class HeadBounds:
    """Answers 431 to a request with too many headers or too much in them, and 404 to a path with a line feed.

    Why here too: h11 counts only a head that comes in pieces, and puts no bound on the number (seen, 0.16).
    And a route at `/` takes the path `/` with a line feed behind it (`$` in its pattern; seen, starlette
    1.10), so that the gate, which takes `/` alone, would have been passed by.
    """

    def __init__(self, app: ASGIApp, settings: FrontSettings) -> None:
        self.app = app
        self._max_count = settings.head_max_count
        self._max_bytes = settings.head_max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http":
            headers = scope["headers"]
            size = len(scope["raw_path"]) + len(scope["query_string"])
            size += sum(len(name) + len(value) for name, value in headers)
            if len(headers) > self._max_count or size > self._max_bytes:
                await plain_error(431, "The request has too many headers", close=True)(scope, receive, send)
                return
            if "\n" in scope["path"]:
                await plain_error(404, "Not Found")(scope, receive, send)
                return
        await self.app(scope, receive, send)


class Origins:
    """Lets pages of the agent's `cors_origins`, and no others, read its answers; without credentials.

    It withholds the header that a browser wants to see, and no more: a page can send what needs a preflight
    only after one, and what needs none is no request here (RequestGate). `Vary` is on every answer, because
    a cache must not give one origin's answer to another.
    """

    def __init__(self, app: ASGIApp, current: Current) -> None:
        self.app = app
        self._current = current

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer a browser's preflight."""
        origins = self._current.agent.network.cors_origins
        if not origins or scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        asked = Headers(scope=scope)
        origin = asked.get("origin", "")
        added = [(b"vary", b"Origin")]
        if origin in origins:
            added.append((b"access-control-allow-origin", origin.encode("latin-1")))

        async def send_with_origin(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        method = asked.get("access-control-request-method", "")
        if scope["method"] == "OPTIONS" and origin and method:
            answer: Response = Response(headers=PREFLIGHT)
            if origin not in origins:
                answer = plain_error(403, "Not from this origin")
            elif method not in METHODS:
                answer = plain_error(400, "Not by this method")
            await answer(scope, receive, send_with_origin)
            return
        await self.app(scope, receive, send_with_origin)


class RequestGate:
    """Lets through JSON-RPC requests of a sane size, type, depth and version, and no listing of tasks.

    A message of the agent's `max_input_chars` passes however its client escapes it. The visitor's address
    ends here: what goes on has its HMAC in the scope.
    """

    def __init__(
        self,
        app: ASGIApp,
        current: Current,
        identity: Identity,
        settings: FrontSettings,
    ) -> None:
        self.app = app
        self._current = current
        self._identity = identity
        self._settings = settings
        self._bounds = Bounds(settings.max_depth, settings.max_values, settings.max_parts)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that is refused, pass on any other with its body already read."""
        if scope["type"] != "http" or scope["path"] != ENDPOINT or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        agent = self._current.agent
        asked = dict(reversed(scope["headers"]))  # of a header that comes twice, the first
        if not _is_json(asked.get(b"content-type", b"")):
            refusal = _http_error(415, "The Content-Type must be application/json")
            await refusal(scope, receive, send)
            return
        most = self._settings.body_max_bytes or body_max_bytes(agent.limits.max_input_chars)
        try:
            async with asyncio.timeout(self._settings.body_seconds):
                body = await _read(receive, asked.get(b"content-length", b""), most)
        except TimeoutError:
            await _http_error(408, "The request's body came too slowly")(scope, receive, send)
            return
        if isinstance(body, str):
            await _http_error(413, body)(scope, receive, send)
            return
        if body is None:
            return
        version = asked.get(VERSION_HEADER, b"").decode("latin-1").strip() or _version_parameter(scope)
        found = examine(body, version, self._bounds)
        if found.refusal is not None:
            await JSONResponse(found.refusal)(scope, receive, send)
            return
        passed = [(name, value) for name, value in scope["headers"] if name in PASSED_HEADERS]
        if version:
            passed.append((VERSION_HEADER, version.encode("latin-1", "replace")))
        app = ErrorShim(self.app, found.method, found.request_id, agent.messages.no_running)
        visitor = self._identity.visitor(self._identity.address(scope))
        behind = {**scope, "headers": passed, "query_string": b"", VISITOR: visitor}
        await app(behind, _replay(found.body, receive), send)


class ErrorShim:
    """Rebuilds the error bodies of one request's answer, JSON or SSE, and gives them the request's id."""

    def __init__(self, app: ASGIApp, method: str, request_id: str | int | None, no_running: str) -> None:
        self.app = app
        self._method = method
        self._request_id = request_id
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
        if self._is_right(chunk):
            return chunk
        lines = chunk.split(b"\r\n")
        return b"\r\n".join(
            b"data: " + self._clean_json(line[6:]) if line.startswith(b"data: ") else line for line in lines
        )

    def _clean_json(self, body: bytes) -> bytes:
        if self._is_right(body):
            return body
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return body
        if not isinstance(value, dict):
            return body
        if "error" in value:
            value = response(self._request_id, clean_error(value["error"], self._method, self._no_running))
        elif self._request_id is None:
            value = {**value, "id": None}
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")

    def _is_right(self, body: bytes) -> bool:
        """Say whether a body can only be a result with its id: text in it has its quotes escaped."""
        return b'"error"' not in body and self._request_id is not None


def plain_error(status: int, sentence: str, *, close: bool = False) -> JSONResponse:
    """Return the answer to what is no request of A2A's: `{"error": SENTENCE}`."""
    return JSONResponse({"error": sentence}, status, {"connection": "close"} if close else None)


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


def _is_json(content_type: bytes) -> bool:
    return content_type.partition(b";")[0].strip().lower() == b"application/json"


async def _read(receive: Receive, length: bytes, most: int) -> bytes | str | None:
    """Return the body, a sentence when it is larger than `most` bytes, None when the client has gone."""
    too_large = f"The request is larger than {most} bytes"
    if length.isdigit() and int(length[:20]) > most:
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
