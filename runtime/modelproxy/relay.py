"""Pass a good answer on, event by event, and read from it what it cost.

An event leaves as soon as it is whole; what is no event of a good answer does not leave at all: an upstream's
words about a failure, and anything that holds the key (control MODEL-05).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from runtime.modelproxy.backend import UpstreamError
from runtime.modelproxy.messages_sse import EVENT_TYPES, EventReader, StreamError
from runtime.modelproxy.prices import Tokens

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from runtime.modelproxy.backend import Backend, Reply

MAX_WHOLE_BYTES: Final = 4 * 1024 * 1024


def _count(usage: dict[str, Any], name: str, default: int) -> int:
    value = usage.get(name)
    fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if fits else default  # type: ignore[return-value]  # `fits` says it is an int


def tokens(usage: Any, before: Tokens | None = None) -> Tokens | None:
    """Read a `usage` object; a count that it leaves out keeps its value from `before`."""
    if not isinstance(usage, dict):
        return before
    old = before or Tokens()
    return Tokens(
        input=_count(usage, "input_tokens", old.input),
        output=_count(usage, "output_tokens", old.output),
        cache_write=_count(usage, "cache_creation_input_tokens", old.cache_write),
        cache_read=_count(usage, "cache_read_input_tokens", old.cache_read),
    )


class Relay:
    """One answer on its way. `used` is set once the answer is complete and said what it cost."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._running: Tokens | None = None
        self.used: Tokens | None = None

    async def events(self, reply: Reply) -> AsyncIterator[bytes]:
        """Yield the events of a streamed answer, those that came together as one piece.

        Raises UpstreamError when the stream breaks off, reports a failure or holds a secret.
        """
        if reply.media_type != "text/event-stream":
            raise UpstreamError("no event stream", sent=True)
        reader = EventReader()
        async for chunk in reply.chunks:
            try:
                events = reader.feed(chunk)
            except StreamError:
                raise UpstreamError("malformed event stream", sent=True) from None
            good = b"".join(raw for raw, event in events if self._passes(raw, event))
            if good:
                yield good
            if self.used is not None:
                return
        raise UpstreamError("answer broke off", sent=True)

    def _passes(self, raw: bytes, event: dict[str, Any]) -> bool:
        kind = event.get("type")
        if kind == "error":
            raise UpstreamError("failure within the stream", sent=True, again=True)
        if kind not in EVENT_TYPES:
            return False
        self._screen(raw, event)
        if kind == "message_start":
            start = event.get("message")
            self._running = tokens(start.get("usage") if isinstance(start, dict) else None)
        elif kind == "message_delta":
            self._running = tokens(event.get("usage"), self._running)
        elif kind == "message_stop":
            self.used = self._running
        return True

    async def whole(self, reply: Reply, *, counting: bool) -> bytes:
        """Return an answer that came in one piece, checked to be a message (or a token count)."""
        body = bytearray()
        async for chunk in reply.chunks:
            body += chunk
            if len(body) > MAX_WHOLE_BYTES:
                raise UpstreamError("answer too long", sent=True)
        try:
            value = json.loads(bytes(body))
        except (ValueError, RecursionError):
            raise UpstreamError("answer is not JSON", sent=True) from None
        expected = isinstance(value, dict) and (
            isinstance(value.get("input_tokens"), int) if counting else value.get("type") == "message"
        )
        if not expected:
            raise UpstreamError("answer of another kind", sent=True)
        self._screen(bytes(body), value)
        self.used = Tokens() if counting else tokens(value.get("usage"))
        return bytes(body)

    def _screen(self, raw: bytes, value: dict[str, Any]) -> None:
        escaped = b"\\" in raw and self._backend.leaks(
            json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
        )
        if escaped or self._backend.leaks(raw):
            raise UpstreamError("secret in the answer", sent=True)
