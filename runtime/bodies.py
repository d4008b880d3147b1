"""Read the body of an HTTP request, never more of it than a cap and never longer than a time.

ASGI servers hand a body over in pieces and check neither; Starlette's `request.body()` keeps whatever comes.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Receive


class ClientGone(Exception):
    """The client closed the connection before its request was whole."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body as far as it was read. `data` is empty when it was too long.

    `size` is the bytes that came; `ended` is false when the client was not heard to the end, so that the
    connection cannot serve another request.
    """

    data: bytes
    size: int
    ended: bool
    too_long: bool


async def read_body(receive: Receive, max_bytes: int, *, seconds: float, drain_bytes: int = 0) -> Body:
    """Read a body of at most `max_bytes` within `seconds`.

    Of a longer one, up to `drain_bytes` more are thrown away, so that a client that is still writing can read
    the refusal. Raises ClientGone when the client leaves, TimeoutError when it is too slow.
    """
    data = bytearray()
    size = 0
    async with asyncio.timeout(seconds):
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise ClientGone
            piece = event.get("body", b"")
            size += len(piece)
            if size <= max_bytes:
                data += piece
            else:
                data.clear()
            ended = not event.get("more_body", False)
            if ended or size > max_bytes + drain_bytes:
                return Body(bytes(data), size, ended, size > max_bytes)
