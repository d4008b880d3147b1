"""Build and read answers of the Messages API, whole or as server-sent events. Pure, standard library only.

One builder for the demo model and the tests' scripted model, so that what the CLI is tested against has the
shape of what it is served; and the reading side (`EventReader`) that the proxy uses on the real upstream.
Shapes are those of the public Messages API, streaming version 2023-06-01.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

EVENT_TYPES = frozenset(
    {
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
        "ping",
    }
)
"""The events of a good stream. `error` is not among them: what an upstream says of a failure never passes."""

MAX_EVENT_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Text:
    """A text block; `chunks` is the number of deltas it streams as."""

    text: str
    chunks: int = 1


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of one of the tools that the request offered."""

    name: str
    input: Mapping[str, Any]


Block = Text | ToolUse


def _id(prefix: str, seed: str) -> str:
    return f"{prefix}_01{hashlib.sha256(seed.encode('utf-8', 'surrogatepass')).hexdigest()[:22]}"


def _tokens(value: str) -> int:
    return max(1, len(value.encode("utf-8", "surrogatepass")) // 4)


def estimate_tokens(body: bytes) -> int:
    """Input tokens that a request body of this size roughly stands for: four bytes a token."""
    return max(1, len(body) // 4)


def message(model: str, blocks: Sequence[Block], *, input_tokens: int, seed: str = "") -> dict[str, Any]:
    """Return a whole assistant message; ids follow from `seed` and position."""
    content: list[dict[str, Any]] = []
    output_tokens = 0
    for position, block in enumerate(blocks):
        if isinstance(block, Text):
            content.append({"type": "text", "text": block.text})
            output_tokens += _tokens(block.text)
        else:
            identity = _id("toolu", f"{seed}/{position}/{block.name}")
            content.append(
                {"type": "tool_use", "id": identity, "name": block.name, "input": dict(block.input)}
            )
            output_tokens += _tokens(json.dumps(dict(block.input))) + 20
    uses_tool = any(isinstance(block, ToolUse) for block in blocks)
    return {
        "id": _id("msg", seed + "/message"),
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if uses_tool else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": output_tokens,
        },
    }


def sse(event: Mapping[str, Any]) -> bytes:
    """Frame one event as it goes over the wire."""
    data = json.dumps(event, separators=(",", ":"), ensure_ascii=True)
    return f"event: {event['type']}\ndata: {data}\n\n".encode("ascii")


def pieces(text: str, count: int) -> list[str]:
    """Cut `text` into at most `count` non-empty pieces of nearly equal length."""
    count = max(1, min(count, len(text)))
    step, extra = divmod(len(text), count)
    cuts = [index * step + min(index, extra) for index in range(count + 1)]
    return [text[start:end] for start, end in itertools.pairwise(cuts)]


def _block_events(index: int, content: Mapping[str, Any], block: Block) -> Iterator[bytes]:
    def delta(body: dict[str, Any]) -> bytes:
        return sse({"type": "content_block_delta", "index": index, "delta": body})

    empty = {**content, "text": ""} if isinstance(block, Text) else {**content, "input": {}}
    yield sse({"type": "content_block_start", "index": index, "content_block": empty})
    if isinstance(block, Text):
        for piece in pieces(block.text, block.chunks):
            yield delta({"type": "text_delta", "text": piece})
    else:
        yield delta({"type": "input_json_delta", "partial_json": json.dumps(content["input"])})
    yield sse({"type": "content_block_stop", "index": index})


def stream(model: str, blocks: Sequence[Block], *, input_tokens: int, seed: str = "") -> Iterator[bytes]:
    """Yield the same message as `message` as events, one `bytes` an event."""
    whole = message(model, blocks, input_tokens=input_tokens, seed=seed)
    usage = {**whole["usage"], "output_tokens": 1}
    yield sse(
        {
            "type": "message_start",
            "message": {**whole, "content": [], "stop_reason": None, "usage": usage},
        }
    )
    for index, (content, block) in enumerate(zip(whole["content"], blocks, strict=True)):
        yield from _block_events(index, content, block)
    yield sse(
        {
            "type": "message_delta",
            "delta": {"stop_reason": whole["stop_reason"], "stop_sequence": None},
            "usage": whole["usage"],
        }
    )
    yield sse({"type": "message_stop"})


def error_body(kind: str, sentence: str) -> bytes:
    """Return an error as the Messages API words it, with our own sentence."""
    error = {"type": "error", "error": {"type": kind, "message": sentence}}
    return json.dumps(error, separators=(",", ":")).encode()


class StreamError(Exception):
    """An upstream stream broke its framing, grew an event past MAX_EVENT_BYTES, or reported a failure."""


class EventReader:
    """Cut an upstream's bytes into whole events, so that each can be judged before it passes.

    Nothing is held longer than its own event: a delta leaves as soon as its blank line has come.
    """

    __slots__ = ("_buffer",)

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, chunk: bytes) -> list[tuple[bytes, dict[str, Any]]]:
        r"""Take bytes; return finished events as (bytes as they came, parsed data). Comments are left out.

        Raises StreamError on data that is no JSON object, or an event past MAX_EVENT_BYTES. Lines may end
        with \n or \r\n.
        """
        found: list[tuple[bytes, dict[str, Any]]] = []
        searched = max(0, len(self._buffer) - 3)
        self._buffer += chunk
        start = 0
        while (end := self._event_end(searched)) is not None:
            raw = bytes(self._buffer[start:end])
            data = b"\n".join(
                line[5:].removeprefix(b" ") for line in raw.splitlines() if line.startswith(b"data:")
            )
            if data:
                found.append((raw, self._parse(data)))
            start = searched = end
        del self._buffer[:start]
        if len(self._buffer) > MAX_EVENT_BYTES:
            raise StreamError("event too long")
        return found

    def _event_end(self, start: int) -> int | None:
        ends = [
            at + len(blank) for blank in (b"\n\n", b"\n\r\n") if (at := self._buffer.find(blank, start)) >= 0
        ]
        return min(ends) if ends else None

    @staticmethod
    def _parse(data: bytes) -> dict[str, Any]:
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            raise StreamError("data is not JSON") from None
        if not isinstance(value, dict):
            raise StreamError("data is not an object")
        return value
