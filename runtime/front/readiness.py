"""Whether the front could answer a visitor now: what `/ready` and `ops.sock` ask, and what a start waits for.

The spawner's word counts: it answers for the engine, the doors and the model proxy. The front refuses to
start against a spawner that loaded another definition of the agent, because then card and limits would
describe something else than what runs.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any, Protocol

import structlog

from runtime.errors import DefinitionMismatch, ServiceUnreachable

if TYPE_CHECKING:
    from collections.abc import Callable

START_SECONDS = 60.0
POLL_SECONDS = 0.5
FRESH_SECONDS = 2.0
REFRESH_SECONDS = 15.0

log = structlog.get_logger("front")


class Spawner(Protocol):
    """Who can describe an agent: SandboxRunner does."""

    async def agent(self, agent: str) -> dict[str, Any]:
        """Return `{"id", "digest", "pack", "demo"}`. Raises OSError when it cannot say."""
        ...


class Readiness:
    """Asks the spawner about one agent, at most every two seconds."""

    def __init__(
        self, spawner: Spawner, agent: str, digest: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spawner = spawner
        self._agent = agent
        self._digest = digest
        self._clock = clock
        self._asked_at: float | None = None
        self._lock = asyncio.Lock()
        self.demo = False
        self.reason: str | None = "the spawner has not been asked yet"

    async def ask(self) -> str | None:
        """Return None when the spawner serves this very definition, else why not, in one sentence."""
        async with self._lock:
            now = self._clock()
            if self._asked_at is None or now - self._asked_at >= FRESH_SECONDS:
                self.reason = await self._ask()
                self._asked_at = self._clock()
            return self.reason

    async def wait(self, seconds: float = START_SECONDS, *, poll_seconds: float = POLL_SECONDS) -> None:
        """Wait for the spawner. Raises DefinitionMismatch, or ServiceUnreachable after `seconds`."""
        deadline = self._clock() + seconds
        said = ""
        while (reason := await self._ask(starting=True)) is not None:
            self.reason = reason
            if self._clock() >= deadline:
                raise ServiceUnreachable(
                    f"The spawner did not serve {self._agent} within {seconds:.0f} s: {reason}.",
                    "see the spawner's log",
                )
            if reason != said:
                log.info("waiting-for-spawner", agent=self._agent, reason=reason)
                said = reason
            await asyncio.sleep(poll_seconds)
        self.reason, self._asked_at = None, self._clock()

    async def keep_fresh(self, *, poll_seconds: float = REFRESH_SECONDS) -> None:
        """Ask again and again until cancelled: so that `demo`, which the card reads, is never old."""
        while True:
            await asyncio.sleep(poll_seconds)
            await self.ask()

    async def _ask(self, *, starting: bool = False) -> str | None:
        try:
            described = await self._spawner.agent(self._agent)
        except OSError as error:
            return str(error)
        if described.get("digest") != self._digest:
            if starting:
                raise DefinitionMismatch(
                    f"The spawner loaded another definition of {self._agent} than the front.",
                    "restart both with the same instance files and environment",
                )
            return "the spawner serves another definition of the agent"
        self.demo = described.get("demo") is True
        return None
