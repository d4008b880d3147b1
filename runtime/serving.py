"""How a service serves an ASGI app on a Unix socket, and stops when it is told to.

Why not `uvicorn.run`: a process serves two sockets (its own and `ops`), must end its work before uvicorn
waits for open connections, and must be the only one that handles SIGTERM.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from pathlib import Path

    from starlette.types import ASGIApp

BACKLOG = 128


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
