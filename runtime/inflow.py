"""What of a connection's bytes the HTTP parser gets, and when: the reading half of serving.py.

Why: h11 makes an event of each chunk that it finds, and uvicorn takes all events of a read without a pause
(seen: 256 KiB of one-byte chunks hold the event loop for 1.7 s). And uvicorn stops reading when bytes follow
a request that is being answered, and then never sees that its client has left (seen, 0.54).
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Final

import h11
from uvicorn.protocols.http.flow_control import FlowControl

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

SLICE_BYTES: Final = 4096  # what the parser gets in one turn of the loop
HELD_MAX_BYTES: Final = 1024 * 1024  # a transport reads 256 KiB at once and is then paused
PIECES_FREE: Final = 1000
PIECE_MEAN_BYTES: Final = 64
VERSIONS: Final = frozenset({b"1.0", b"1.1"})


class StrictConnection(h11.Connection):
    """h11's parser that refuses other versions than HTTP/1, and a body that comes in very many tiny pieces.

    A client's chunks are kilobytes: past PIECES_FREE pieces their mean must be PIECE_MEAN_BYTES.
    """

    _pieces = 0
    _piece_bytes = 0

    def next_event(self) -> type[h11.NEED_DATA | h11.PAUSED] | h11.Event:
        """Return the next event; raise RemoteProtocolError with the answer's status for what is refused."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._pieces = self._piece_bytes = 0
            if event.http_version not in VERSIONS:
                _refuse("another version of HTTP", HTTPStatus.HTTP_VERSION_NOT_SUPPORTED)
        elif isinstance(event, h11.Data):
            self._pieces += 1
            self._piece_bytes += len(event.data)
            if self._pieces > PIECES_FREE and self._piece_bytes < PIECE_MEAN_BYTES * self._pieces:
                _refuse("too many small pieces", HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
        return event


def _refuse(why: str, status: HTTPStatus) -> None:
    raise h11.RemoteProtocolError(why, error_status_hint=status)


class Inflow(FlowControl):
    """uvicorn's flow control with a second reason not to read: bytes that the parser has not had yet.

    `resumed` is called when an app takes on reading a body whose parsing was stopped.
    """

    def __init__(self, transport: asyncio.Transport, resumed: Callable[[], None]) -> None:
        super().__init__(transport)
        self._resumed = resumed
        self._backlog = False

    def pause_reading(self) -> None:
        """Stop reading: the app has not taken what is there."""
        self.read_paused = True
        self._apply()

    def resume_reading(self) -> None:
        """Go on reading, as soon as the parser has had what was read."""
        if self.read_paused:
            self.read_paused = False
            self._apply()
            self._resumed()

    def set_backlog(self, *, there_is: bool) -> None:
        """Say whether bytes wait for the parser."""
        self._backlog = there_is
        self._apply()

    def _apply(self) -> None:
        if self._transport.is_closing():
            return
        if self.read_paused or self._backlog:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
