"""How a service serves an ASGI app, bounds what a connection may wait for, and stops when it is told to.

Why not `uvicorn.run`: a process serves two sockets (its own and `ops`), must end its work before uvicorn
waits for open connections, and must be the only one that handles SIGTERM. Why a protocol of our own: uvicorn
waits for ever for the rest of a request head, and for a reader that does not read (seen, 0.54).
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import logging
import os
import socket
import stat
import sys
import termios
from http import HTTPStatus
from typing import TYPE_CHECKING

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from runtime.inflow import HELD_MAX_BYTES, SLICE_BYTES, Inflow, StrictConnection

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator, Sequence
    from pathlib import Path
    from typing import Any, ClassVar

    from starlette.types import ASGIApp, Receive, Scope, Send
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

BACKLOG = 128
HEAD_SECONDS = 10.0
UNREAD_SECONDS = 30.0
UNREAD_LEAST_BYTES = 4096  # that a slow reader takes in that time
# The kernel counts bytes of a Unix socket as read by whole pieces, as large as the buffer allows (seen):
# small ones let a slow reader be told from one who reads nothing.
UNIX_SEND_BYTES = 8192
CONNECTIONS_MAX = 600
TRAILING_MAX_BYTES = 16 * 1024

# What uvicorn warns of here (no HTTP, an upgrade) anybody can make it say at will; an error is our own.
_VISITORS_LOG = logging.getLogger("uvicorn.error.visitors")
_VISITORS_LOG.setLevel(logging.ERROR)
_SENTENCES = {
    HTTPStatus.BAD_REQUEST: "This is no HTTP/1.1 request",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "The request comes in too many small pieces",
    HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE: "The request has too many headers",
    HTTPStatus.HTTP_VERSION_NOT_SUPPORTED: "Only HTTP/1.1 and HTTP/1.0 are spoken here",
}


class DeadlineProtocol(H11Protocol):
    """uvicorn's strict HTTP/1.1 parser that cuts a connection which keeps it waiting.

    A request head has `head_seconds`: the first of a connection from its beginning, any later one from its
    first byte (until then uvicorn's own keep-alive limit counts). A client that reads less than
    UNREAD_LEAST_BYTES of what waits for it in `unread_seconds` is cut; a slow one is not. While a request is
    being answered no other time counts here: how long that and its body may take is the app's business.

    The parser gets SLICE_BYTES in a turn of the loop. While a request is being answered reading goes on, or a
    client that sends a byte too many could hide that it has left: what follows is kept for later, and past
    the largest head the connection is ended at once.

    Past `connections_max` open ones a request is answered 503 and its connection ended, past twice as many
    the connection is ended at once. What is no HTTP is answered 400, a head too large for h11 431, another
    version 505, a body in tiny pieces 413. All carry `said_always`, like every answer of the app.
    """

    head_seconds: ClassVar[float] = HEAD_SECONDS
    unread_seconds: ClassVar[float] = UNREAD_SECONDS
    connections_max: ClassVar[int] = CONNECTIONS_MAX
    said_always: ClassVar[Sequence[tuple[bytes, bytes]]] = ()
    _head_timer: asyncio.TimerHandle | None = None
    _unread_timer: asyncio.TimerHandle | None = None
    _feeding: asyncio.Handle | None = None
    flow: Inflow

    def __init__(self, config: uvicorn.Config, *arguments: Any, **options: Any) -> None:
        super().__init__(config, *arguments, **options)
        self._trailing_max = config.h11_max_incomplete_event_size or TRAILING_MAX_BYTES
        self.conn = StrictConnection(h11.SERVER, self._trailing_max)
        self.logger = _VISITORS_LOG
        self._held = bytearray()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection and wait for its first head."""
        super().connection_made(transport)
        # Whatever waits here waits for the client: so its time runs, even when uvicorn has closed already.
        transport.set_write_buffer_limits(high=0)
        connection = transport.get_extra_info("socket")
        if connection is not None and connection.family == socket.AF_UNIX:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, UNIX_SEND_BYTES)
        self.flow = Inflow(transport, self._feed_soon)
        if len(self.connections) > 2 * self.connections_max:
            transport.abort()
            return
        if len(self.connections) > self.connections_max:
            self.app = self._crowded
        self._expect_head()

    def data_received(self, data: bytes) -> None:
        """Keep what was read, and parse of it what this turn of the loop may."""
        if self.transport.is_closing():
            return
        self._held += data
        if self._feeding is None:
            self._feed()
        elif len(self._held) > HELD_MAX_BYTES:
            self.transport.abort()

    def handle_events(self) -> None:
        """Act on what is parsed; a request that is wholly here is no reason to stop reading."""
        super().handle_events()
        if self._asked():
            self.flow.resume_reading()

    def _feed(self) -> None:
        """Give the parser its next bytes, unless it has a whole request or the app must read its body first.

        Bytes that do not complete a head do not give it more time.
        """
        self._feeding = None
        if self.transport.is_closing():
            self._held.clear()
            return
        if self._held and not self._asked() and not self.flow.read_paused:
            data = bytes(self._held[:SLICE_BYTES])
            del self._held[:SLICE_BYTES]
            if not self._answering():
                self._expect_head()
            super().data_received(data)
            if self._answering():
                self._head_arrived()
        asked = self._asked()
        if asked and len(self._held) + len(self.conn.trailing_data[0]) > self._trailing_max:
            self.transport.abort()
            return
        self.flow.set_backlog(there_is=bool(self._held) and not asked)
        if not asked and not self.flow.read_paused:
            self._feed_soon()

    def _feed_soon(self) -> None:
        if self._held and self._feeding is None:
            self._feeding = self.loop.call_soon(self._feed)

    def _asked(self) -> bool:
        """Say whether a whole request is here and the next may not be parsed yet."""
        return self.conn.their_state not in {h11.IDLE, h11.SEND_BODY}

    def on_response_complete(self) -> None:
        """Wait for the next request; one that was already read goes on at once."""
        self._head_arrived()
        super().on_response_complete()
        self._feed_soon()

    def pause_writing(self) -> None:
        """Stop writing to a client that does not read, and give it `unread_seconds` to begin."""
        super().pause_writing()
        if self._unread_timer is None:
            self._expect_reading()

    def _expect_reading(self) -> None:
        waits = unread_bytes(self.transport)
        self._unread_timer = self.loop.call_later(self.unread_seconds, self._look_at_reading, waits)

    def _look_at_reading(self, waited: int) -> None:
        if waited - unread_bytes(self.transport) < UNREAD_LEAST_BYTES:
            self.transport.abort()
        else:
            self._expect_reading()

    def resume_writing(self) -> None:
        """Go on writing."""
        self._reading_again()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._head_arrived()
        self._reading_again()
        self._held.clear()
        if self._feeding is not None:
            self._feeding.cancel()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, unless an answer has begun: uvicorn would raise then (seen)."""
        del msg  # uvicorn's own
        if self.conn.our_state in {h11.IDLE, h11.SEND_RESPONSE}:
            found = sys.exc_info()[1]  # uvicorn calls this while it handles what h11 found wrong
            hint = getattr(found, "error_status_hint", HTTPStatus.BAD_REQUEST)
            status = HTTPStatus(hint if hint in _SENTENCES else HTTPStatus.BAD_REQUEST)
            body = _refusal(_SENTENCES[status])
            head = h11.Response(
                status_code=status, headers=self._headers_of(body), reason=status.phrase.encode()
            )
            with contextlib.suppress(h11.LocalProtocolError):  # a HEAD's answer has no body
                for event in (head, h11.Data(data=body), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    async def _crowded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request on a connection too many."""
        del scope, receive
        body = _refusal("Too many connections are open")
        start = {"type": "http.response.start", "status": 503, "headers": self._headers_of(body)}
        await send(start)
        await send({"type": "http.response.body", "body": body})

    def _headers_of(self, body: bytes) -> list[tuple[bytes, bytes]]:
        return [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
            *self.said_always,
        ]

    def _answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None until the first request
        return cycle is not None and not cycle.response_complete

    def _expect_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = self.loop.call_later(self.head_seconds, self.transport.abort)

    def _head_arrived(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _reading_again(self) -> None:
        if self._unread_timer is not None:
            self._unread_timer.cancel()
            self._unread_timer = None


def unread_bytes(transport: asyncio.Transport) -> int:
    """Return how many bytes wait for the other end of a connection: the process's and the kernel's."""
    waiting = transport.get_write_buffer_size()
    connection = transport.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):
            told = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, bytes(4))
            waiting += int.from_bytes(told, sys.byteorder, signed=True)
    return waiting


def deadline_protocol(
    *,
    head_seconds: float,
    unread_seconds: float,
    connections_max: int,
    said_always: Sequence[tuple[bytes, bytes]],
) -> type[DeadlineProtocol]:
    """Return DeadlineProtocol with other limits: uvicorn makes an object of it for each connection."""
    limits = {
        "head_seconds": head_seconds,
        "unread_seconds": unread_seconds,
        "connections_max": connections_max,
        "said_always": tuple(said_always),
    }
    return type("FrontProtocol", (DeadlineProtocol,), limits)


def _refusal(sentence: str) -> bytes:
    return json.dumps({"error": sentence}).encode()


class QuietServer(uvicorn.Server):
    """uvicorn without its signal handlers: the process that serves decides when to stop."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.accepting = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start as uvicorn does, and say so."""
        await super().startup(sockets)
        self.accepting.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave SIGTERM and SIGINT to the process."""
        yield


def bind(path: Path, mode: int = 0o666) -> socket.socket:
    """Listen on a Unix socket at `path` with exactly `mode`, replacing a socket that a dead process left.

    Raises FileExistsError when something other than a socket is there, and OSError as `bind` does.
    Why the mode is set here: a bare bind leaves it to the umask, and the directory is the gate (layout.py).
    """
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(path.lstat().st_mode):
            raise FileExistsError(f"{path} is not a socket")
        path.unlink()
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(mode)
        listener.listen(BACKLOG)
        listener.setblocking(False)  # noqa: FBT003  the only form it has
    except OSError:
        listener.close()
        raise
    return listener


@contextlib.asynccontextmanager
async def serving(
    app: ASGIApp, path: Path, *, mode: int = 0o666, grace_seconds: int = 10, connections: int = 64
) -> AsyncGenerator[QuietServer, None]:
    """Serve `app` on the socket at `path` inside the `async with`; yields once it accepts connections.

    Past `connections` open ones a client reads 503: whoever holds the other end of a socket cannot fill this
    process's memory with requests that it never finishes.
    On leaving, requests in flight get `grace_seconds` to finish, then are cancelled; the socket file is
    removed.
    """
    listener = bind(path, mode)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        ws="none",
        limit_concurrency=connections + 1,  # uvicorn refuses at the limit, and counts the asking connection
        timeout_graceful_shutdown=grace_seconds,
    )
    server = QuietServer(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name=f"serve {path.name}")
    try:
        accepting = asyncio.create_task(server.accepting.wait())
        await asyncio.wait({accepting, task}, return_when=asyncio.FIRST_COMPLETED)
        accepting.cancel()
        if task.done():
            await task
        yield server
    finally:
        server.should_exit = True
        await task
        listener.close()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)  # noqa: PTH108  the twin of bind, and no Path method is more careful
