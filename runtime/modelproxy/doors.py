"""The doors that are open now: opened and closed by the spawner, closed by themselves at their deadline.

Nothing here survives a restart: a service that forgot its turns refuses them (fail closed, architecture §2).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Final

import structlog

from runtime.modelproxy.app import DoorApp
from runtime.modelproxy.door import DoorServer
from runtime.turn.events import Usage

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.modelproxy.backend import Backend
    from runtime.modelproxy.books import Books
    from runtime.modelproxy.door import Door
    from runtime.modelproxy.metrics import Metrics

log = structlog.get_logger("modelproxy")

MAX_DOORS: Final = 256
FORGET_SECONDS: Final = 600.0  # a door that closed itself is remembered for its DELETE
SOCKET_NAME: Final = "model.sock"


class TooManyDoors(Exception):
    """MAX_DOORS are open."""


class DoorExists(Exception):
    """The turn has a door already."""


def remove_stale(root: Path) -> int:
    """Remove sockets that an earlier process left under `root`; return how many."""
    count = 0
    for path in root.glob(f"*/{SOCKET_NAME}"):
        with contextlib.suppress(OSError):
            path.unlink()
            count += 1
    return count


class Doors:
    """Every door by its turn. `root` holds one folder per turn, made by the spawner."""

    def __init__(self, root: Path, backend: Backend, books: Books, metrics: Metrics) -> None:
        self._root = root
        self._backend = backend
        self._books = books
        self._metrics = metrics
        self._open: dict[str, tuple[Door, DoorServer, asyncio.TimerHandle]] = {}

    def __len__(self) -> int:
        return len(self._open)

    async def open(self, door: Door) -> None:
        """Listen before returning.

        Raises DoorExists, TooManyDoors, DoorStopped when `close` came first, or OSError without a folder.
        """
        if door.turn in self._open:
            raise DoorExists(door.turn)
        if len(self._open) >= MAX_DOORS:
            raise TooManyDoors
        app = DoorApp(door, self._backend, self._books, self._metrics)
        server = DoorServer(door, app, self._root / door.turn / SOCKET_NAME)
        loop = asyncio.get_running_loop()
        timer = loop.call_later(max(0.0, door.deadline - time.time()), self._expire, door.turn)
        self._open[door.turn] = (door, server, timer)
        try:
            await server.start()
        except BaseException:  # cancellation too leaves no half-open door, and passes on
            known = self._open.get(door.turn)
            if known is not None and known[1] is server:
                known[2].cancel()
                del self._open[door.turn]
            raise
        self._metrics.doors.set(len(self._open))

    def _expire(self, turn: str) -> None:
        door, server, _timer = self._open[turn]
        server.stop()
        log.warning("door_expired", turn=turn, agent=door.agent)
        timer = asyncio.get_running_loop().call_later(FORGET_SECONDS, self._forget, turn)
        self._open[turn] = (door, server, timer)

    def _forget(self, turn: str) -> None:
        self._open.pop(turn, None)
        self._metrics.doors.set(len(self._open))

    async def close(self, turn: str) -> Usage | None:
        """Abort what is in flight, remove the socket and return the usage; None for a turn not known."""
        entry = self._open.pop(turn, None)
        if entry is None:
            return None
        door, server, timer = entry
        timer.cancel()
        self._metrics.doors.set(len(self._open))
        await server.close()
        spent = await self._books.spent(turn)
        return Usage(
            spent.requests, spent.input_tokens, spent.output_tokens, door.refused, door.request_bytes
        )

    async def close_all(self) -> None:
        """Close every door, at the end of the process."""
        await asyncio.gather(*(self.close(turn) for turn in list(self._open)))
