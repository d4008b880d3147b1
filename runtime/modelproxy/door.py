"""One turn's door: its terms, its counters, and the Unix socket server that is nothing but this turn's.

Possession of the socket is the turn's identity (architecture §2), so every limit here is per door: a turn
that floods, stalls or garbles its connections closes its own door and slows nobody else's.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import h11
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle
from uvicorn.server import ServerState

from runtime.modelproxy.messages_sse import error_body
from runtime.serving import bind

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp

    from runtime.modelproxy.decision import Decision
    from runtime.modelproxy.grammar import Terms
    from runtime.modelproxy.ledger import Limits
    from runtime.modelproxy.prices import Prices

CONNECTIONS: Final = 16
CONNECTIONS_IN_ALL: Final = 512
REFUSALS: Final = 16
HEAD_SECONDS: Final = 10.0
IDLE_SECONDS: Final = 30
HEAD_BYTES: Final = 32 * 1024
ABORT_SECONDS: Final = 2.0

SILENT = logging.getLogger("runtime.modelproxy.h11")
SILENT.setLevel(logging.CRITICAL)
SILENT.disabled = True  # a turn can make the parser complain as often as it likes; `app.py` logs what matters


class DoorStopped(Exception):
    """The door was closed before it listened."""


@dataclass(slots=True)
class Door:
    """A turn as its door knows it. `deadline` is Unix time in seconds, `prices` are its model's.

    `exhausted` is the verdict on every further request once the turn's requests are spent; `checking` lets
    one large body of the turn be parsed at a time.
    """

    turn: str
    agent: str
    context: str
    terms: Terms
    prices: Prices
    limits: Limits
    body_bytes: int
    deadline: float
    refused: int = 0
    request_bytes: int = 0
    counted: int = 0
    accepted: int = 0
    exhausted: Decision | None = None
    checking: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)
    server: DoorServer | None = field(default=None, repr=False)

    @property
    def stopped(self) -> bool:
        """Whether the door has closed, so that nothing more is worth doing for it."""
        return self.server is not None and self.server.stopped

    def refuse(self) -> None:
        """Count a refusal; a turn that is refused REFUSALS times has no business here and loses its door."""
        self.refused += 1
        if self.refused >= REFUSALS and self.server is not None:
            self.server.stop()


class DoorProtocol(H11Protocol):
    """uvicorn's strict HTTP/1.1 parser with this door's limits: connections, head deadline, own words."""

    def __init__(self, server: DoorServer, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(server.config, server.state, {}, loop)
        self.logger = SILENT
        self.access_log = False
        self._door_server = server
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, or close it at once when the door has enough."""
        if not self._door_server.admit():
            self.transport = transport
            transport.abort()
            return
        super().connection_made(transport)
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Parse, and give a request head HEAD_SECONDS from its first byte to its end."""
        if self.transport.is_closing():
            return
        if self._head_timer is None and not self._answering():
            self._expect_head()
        super().data_received(data)
        if self._answering():
            self._head_arrived()

    def on_response_complete(self) -> None:
        """Wait for the next request for IDLE_SECONDS; a request that was already read goes on at once."""
        self._head_arrived()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._head_arrived()
        super().connection_lost(exc)

    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None until the first request
        return cycle is not None and not cycle.response_complete

    def _expect_head(self) -> None:
        self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def _head_arrived(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  their words; we answer in ours
        """Answer what is no HTTP with 403 (a 400 would make the CLI try again), and close."""
        self._door_server.door.refuse()
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE} and not self.transport.is_closing():
            body = error_body("permission_error", "This request is not allowed here.")
            headers = [
                (b"content-type", b"application/json"),
                (b"content-length", str(len(body)).encode()),
                (b"connection", b"close"),
            ]
            for event in (
                h11.Response(status_code=403, headers=headers, reason=b"Forbidden"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()


class DoorServer:
    """Listens on one door's socket from `start` to `close`."""

    def __init__(self, door: Door, app: ASGIApp, path: Path) -> None:
        self.door = door
        self.path = path
        self.state = ServerState()
        self.config = Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=IDLE_SECONDS,
            h11_max_incomplete_event_size=HEAD_BYTES,
        )
        self._server: asyncio.Server | None = None
        self.stopped = False

    async def start(self) -> None:
        """Listen. Raises OSError when the folder is not there, DoorStopped when `stop` came meanwhile.

        The server is known before it begins to serve, so that whoever stops the door in between stops it too.
        """
        loop = asyncio.get_running_loop()
        self.config.load()
        listener = bind(self.path, 0o666)
        self.door.server = self
        try:
            self._server = await loop.create_unix_server(
                lambda: DoorProtocol(self, loop), sock=listener, start_serving=False
            )
            await self._server.start_serving()
        except BaseException:  # cancellation too leaves no listener behind, and passes on
            self.stop()
            listener.close()
            raise
        if self.stopped:
            self._stop_listening()
            raise DoorStopped

    def admit(self) -> bool:
        """Whether one more connection may come in; past CONNECTIONS_IN_ALL the door stops listening."""
        self.door.accepted += 1
        if self.door.accepted >= CONNECTIONS_IN_ALL:
            self._stop_listening()
        return not self.stopped and len(self.state.connections) < CONNECTIONS

    def _stop_listening(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._unlink()

    def _unlink(self) -> None:
        with contextlib.suppress(OSError):
            self.path.unlink()

    def stop(self) -> None:
        """Stop listening and cut every connection, now. The requests in flight end by themselves."""
        self.stopped = True
        self._stop_listening()
        for protocol in list(self.state.connections):
            transport: Any = protocol.transport
            if transport is not None:
                transport.abort()

    async def close(self) -> None:
        """Stop, and return when no request of this door is in flight any more."""
        self.stop()
        tasks = set(self.state.tasks)
        if tasks:
            _done, stuck = await asyncio.wait(tasks, timeout=ABORT_SECONDS)
            for task in stuck:
                task.cancel()
            if stuck:
                await asyncio.wait(stuck, timeout=ABORT_SECONDS)
