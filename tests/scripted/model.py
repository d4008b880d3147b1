"""A Messages API that follows a script: it makes the real CLI call any tool with any input, and breaks on
command.

    python tests/scripted/model.py --port 9000          # 127.0.0.1; --host to change
    python tests/scripted/model.py --uds /tmp/model.sock

It speaks `POST /v1/messages` (streamed or whole) and `POST /v1/messages/count_tokens` like the upstream it
stands for, with the event builder of the built-in demo model, and imports nothing else of the product.

`PUT /script` sets a script, replacing an earlier one with the same marker:

    {"marker": "q-1234",                  text that only this test's visitor writes; "" is the default script
     "steps": [STEP, STEP, ...]}

A request is matched to the script whose marker comes last in its `messages` (then: anywhere in the body),
so parallel tests do not mix and an earlier turn's marker in a transcript does not win. Which step is played
is the number of assistant messages with a tool call that `messages` already holds, plus the number of
one-off steps that a retry should see past (see "times"); so the server keeps no conversation state. Past
the last step, and where no script matches, the answer is the text `DEFAULT_TEXT`.

A STEP is an object with any of:

    "text": str            said (before the tool calls of the same step); "chunks": n deltas (default 1),
    "delay_seconds": x     waited before each delta
    "tool_use": {"name", "input"} or a list of these
    "status": 500          answer with that status instead; "body" (str or JSON), "headers" (object)
    "cut": true            break the connection after the text's deltas ("before": after the head)
    "hang": true           send nothing more after the text's deltas ("before": no byte at all)
                           a request that is not streamed is cut or hangs as with "before"
    "hold": true           send nothing before `POST /release?marker=M`
    "echo": true           the text is the request's headers as JSON (what a reflecting upstream would leak)
    "raw": [str, ...]      these bytes as the event stream, one body chunk each
    "usage": {...}         put into the message's usage instead of the estimate
    "times": n             play this step for n requests at this position, then go on with the next one

`DELETE /script?marker=M` removes one script, without `marker` all. `GET /requests?marker=M` returns what
came, oldest first, at most the last 1000: `[{"marker", "method", "path", "query", "headers": [[name, value]],
"body", "bytes", "completed"}]`; `body` is the parsed JSON or the text. `DELETE /requests` forgets them.
`GET /health` answers `{"status": "ok"}`.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import json
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from runtime.modelproxy.messages_sse import (
    Block,
    Text,
    ToolUse,
    error_body,
    estimate_tokens,
    message,
    sse,
    stream,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

DEFAULT_TEXT = "The documents say: office hours are on Tuesday from 10:00 to 12:00."
JSON = [(b"content-type", b"application/json")]
EVENTS = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"cache-control", b"no-cache")]


@dataclass(slots=True)
class Script:
    """One marker's steps, and how often each was played (for `times`)."""

    steps: list[dict[str, Any]]
    played: collections.Counter[int] = field(default_factory=collections.Counter)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    def step(self, position: int) -> dict[str, Any] | None:
        """Return the step for a request that already holds `position` tool calls."""
        cursor = position
        for number, step in enumerate(self.steps):
            one_off = "times" in step
            if one_off and number <= cursor and self.played[number] >= step["times"]:
                cursor += 1
            elif number == cursor:
                self.played[number] += one_off
                return step
        return None


def tool_turns(body: dict[str, Any]) -> int:
    """Count the assistant messages in `messages` that called a tool."""
    messages = body.get("messages")
    count = 0
    for entry in messages if isinstance(messages, list) else []:
        content = entry.get("content") if entry.get("role") == "assistant" else None
        if isinstance(content, list) and any(block.get("type") == "tool_use" for block in content):
            count += 1
    return count


def blocks_of(step: dict[str, Any], headers: Sequence[tuple[str, str]]) -> list[Block]:
    """Return what a step says and calls."""
    text = json.dumps(dict(headers)) if step.get("echo") else step.get("text")
    blocks: list[Block] = [] if text is None else [Text(text, step.get("chunks", 1))]
    uses = step.get("tool_use", [])
    called = uses if isinstance(uses, list) else [uses]
    blocks.extend(ToolUse(use["name"], use.get("input", {})) for use in called)
    return blocks or [Text(DEFAULT_TEXT)]


class ScriptedModel:
    """The two API paths, and what the scripts say."""

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.requests: collections.deque[dict[str, Any]] = collections.deque(maxlen=1000)

    def match(self, body: Any, text: str) -> str:
        """Return the marker of the script that a request belongs to; "" when none does."""
        messages = json.dumps(body.get("messages"), ensure_ascii=False) if isinstance(body, dict) else ""
        for place in (messages, text):
            found = {place.rfind(marker): marker for marker in self.scripts if marker and marker in place}
            if found:
                return found[max(found)]
        return ""

    async def messages(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer `POST /v1/messages` as the script says."""
        raw, body, headers = await self._read(receive, scope)
        record = self._record(scope, raw, body, headers)
        script = self.scripts.get(record["marker"])
        position = tool_turns(body)
        step = (script.step(position) if script else None) or {"text": DEFAULT_TEXT}
        if script and step.get("hold"):
            await script.released.wait()
        if "status" in step:
            await self._fail(step, send)
        elif step.get("hang") == "before" or (step.get("hang") and not body.get("stream")):
            await self._hang(receive)
            return
        elif step.get("cut") == "before" or (step.get("cut") and not body.get("stream")):
            length = (b"content-length", b"1000")
            await send({"type": "http.response.start", "status": 200, "headers": [*JSON, length]})
            return
        elif body.get("stream"):
            if not await self._stream(step, (body, raw, headers), receive, send):
                return
        else:
            whole = message(
                str(body.get("model")),
                blocks_of(step, headers),
                input_tokens=estimate_tokens(raw),
                seed=f"{record['marker']}/{position}",
            )
            if "usage" in step:
                whole["usage"] = step["usage"]
            await self._send(send, 200, JSON, json.dumps(whole).encode())
        record["completed"] = True

    async def count_tokens(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer `POST /v1/messages/count_tokens` with the estimate."""
        raw, body, headers = await self._read(receive, scope)
        record = self._record(scope, raw, body, headers)
        await self._send(send, 200, JSON, json.dumps({"input_tokens": estimate_tokens(raw)}).encode())
        record["completed"] = True

    def _record(self, scope: Scope, raw: bytes, body: Any, headers: list[tuple[str, str]]) -> dict[str, Any]:
        text = raw.decode("utf-8", "replace")
        record = {
            "marker": self.match(body, text),
            "method": scope["method"],
            "path": scope["raw_path"].decode("latin-1"),
            "query": scope["query_string"].decode("latin-1"),
            "headers": [list(pair) for pair in headers],
            "body": body or text,
            "bytes": len(raw),
            "completed": False,
        }
        self.requests.append(record)
        return record

    @staticmethod
    async def _read(receive: Receive, scope: Scope) -> tuple[bytes, dict[str, Any], list[tuple[str, str]]]:
        raw = bytearray()
        while True:
            event = await receive()
            raw += event.get("body", b"")
            if not event.get("more_body"):
                break
        try:
            body = json.loads(bytes(raw))
        except ValueError:
            body = {}
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]]
        return bytes(raw), body if isinstance(body, dict) else {}, headers

    async def _stream(
        self,
        step: dict[str, Any],
        request: tuple[dict[str, Any], bytes, list[tuple[str, str]]],
        receive: Receive,
        send: Send,
    ) -> bool:
        body, raw, headers = request
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        breaks = bool(step.get("cut") or step.get("hang"))
        for event in self._events(step, body, raw, headers):
            if breaks and b"event: content_block_stop" in event:
                if step.get("hang"):
                    await self._hang(receive)
                return False
            if b"event: content_block_delta" in event and step.get("delay_seconds"):
                await asyncio.sleep(step["delay_seconds"])
            await send({"type": "http.response.body", "body": event, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        return True

    @staticmethod
    def _events(
        step: dict[str, Any], body: dict[str, Any], raw: bytes, headers: list[tuple[str, str]]
    ) -> list[bytes]:
        if "raw" in step:
            return [piece.encode() for piece in step["raw"]]
        blocks = blocks_of(step, headers)
        seed = f"{tool_turns(body)}/{len(raw)}"
        events = list(stream(str(body.get("model")), blocks, input_tokens=estimate_tokens(raw), seed=seed))
        if "usage" in step:
            delta = {"stop_reason": "end_turn", "stop_sequence": None}
            events[-2] = sse({"type": "message_delta", "delta": delta, "usage": step["usage"]})
        return events

    @staticmethod
    async def _hang(receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async def _fail(self, step: dict[str, Any], send: Send) -> None:
        body = step.get("body", json.loads(error_body("api_error", "scripted failure")))
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        extra = [(name.encode(), value.encode()) for name, value in step.get("headers", {}).items()]
        await self._send(send, step["status"], JSON + extra, content)

    @staticmethod
    async def _send(send: Send, status: int, headers: list[tuple[bytes, bytes]], content: bytes) -> None:
        length = (b"content-length", str(len(content)).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": content, "more_body": False})


class Endpoint:
    """A raw ASGI endpoint for one POST path: scripts may break a response half-way, which Response cannot."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        await self.answer(scope, receive, send)


def application(model: ScriptedModel | None = None) -> Starlette:
    """Return the ASGI app; give a `ScriptedModel` to look into it from the same process."""
    model = model or ScriptedModel()

    async def script(request: Request) -> Response:
        if request.method == "PUT":
            wanted = json.loads(await request.body())
            model.scripts[wanted.get("marker", "")] = Script(wanted["steps"])
            return Response(status_code=204)
        marker = request.query_params.get("marker")
        if marker is None:
            model.scripts.clear()
        else:
            model.scripts.pop(marker, None)
        return Response(status_code=204)

    async def release(request: Request) -> Response:
        model.scripts[request.query_params["marker"]].released.set()
        return Response(status_code=204)

    async def requests(request: Request) -> Response:
        if request.method == "DELETE":
            model.requests.clear()
            return Response(status_code=204)
        marker = request.query_params.get("marker")
        return JSONResponse([item for item in model.requests if marker in {None, item["marker"]}])

    async def health(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    return Starlette(
        routes=[
            Route("/v1/messages", Endpoint(model.messages), methods=["POST"]),
            Route("/v1/messages/count_tokens", Endpoint(model.count_tokens), methods=["POST"]),
            Route("/script", script, methods=["PUT", "DELETE"]),
            Route("/release", release, methods=["POST"]),
            Route("/requests", requests, methods=["GET", "DELETE"]),
            Route("/health", health, methods=["GET"]),
        ]
    )


def main() -> None:
    """Serve until a signal comes."""
    parser = argparse.ArgumentParser(description="The tests' scripted model.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=9000)
    parser.add_argument("--uds", default=None)
    options = parser.parse_args()
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # broken answers are its job
    uvicorn.run(
        application(),
        host=options.host,
        port=options.port,
        uds=options.uds,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=1,
    )


if __name__ == "__main__":
    main()
