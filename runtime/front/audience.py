"""Who watches one turn: its sender and whoever reads its task, and what happens when the last has left.

A turn costs a container and money, so one that nobody watches is given up after a grace, in which a client
whose connection broke can come back by `tasks/resubscribe`. Who sent a message without waiting for its answer
asked to be left alone: such a turn has no grace and is never given up.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.front.presence import Gone


class Audience:
    """Counts who watches a turn and calls `abandoned` once when nobody has for `grace_seconds`.

    With a grace of None it never calls.
    """

    def __init__(self, grace_seconds: float | None, abandoned: Callable[[], None]) -> None:
        self._grace_seconds = grace_seconds
        self._abandoned = abandoned
        self._present = 0
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def join(self, gone: Gone) -> None:
        """Count a watcher until `gone` is set."""
        self._stop()
        self._present += 1
        gone.tell(self._leave)

    def close(self) -> None:
        """Call nobody any more: the turn has ended."""
        self._closed = True
        self._stop()

    def _leave(self) -> None:
        self._present -= 1
        if self._present == 0 and self._grace_seconds is not None and not self._closed:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._grace_seconds, self._abandoned)

    def _stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
