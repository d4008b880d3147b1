"""Whether the front could answer a visitor now: what `/ready` and `ops.sock` ask, and what a start waits for.

The spawner's word counts: it answers for the engine, the doors and the model proxy. The front refuses to
start against a spawner that loaded another definition of the agent, because then card and limits would
describe something else than what is meant to run. A front that already serves goes on: the spawner runs the
definition before its own too, so visitors get the old one whole. When that lasts longer than a reload of both
takes it is not ready all the same, so that somebody sees that half of a reload failed; where the spawner runs
the front's definition no more, it is not ready at once.
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
LASTING_SECONDS = 20.0  # longer than a healthcheck's interval; a reload of both takes a second or two

log = structlog.get_logger("front")


class Spawner(Protocol):
    """Who can describe an agent: SandboxRunner does."""

    async def agent(self, agent: str) -> dict[str, Any]:
        """Return `{"id", "digest", "pack", "demo"}`. Raises OSError when it cannot say.

        `previous` (a digest or None) and `reason` (None, or why a visitor would not be answered now) may be
        in it too; `demo` is None when it is not known.
        """
        ...


class Readiness:
    """Asks the spawner about one agent, at most every two seconds."""

    def __init__(
        self, spawner: Spawner, agent: str, digest: str, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._spawner = spawner
        self._agent = agent
        self._clock = clock
        self._asked_at: float | None = None
        self._differs_since: float | None = None
        self._lock = asyncio.Lock()
        self.digest = digest
        self.spawner_digest = ""
        self.pack = ""
        self.demo = False
        self.reason: str | None = "the spawner has not been asked yet"

    def expect(self, digest: str, pack: str) -> None:
        """Serve the definition of this digest from now on: the spawner has just said that it does.

        `pack` is the pack that it named, "" where it was not asked.
        """
        self.digest = self.spawner_digest = digest
        self.pack = pack
        self._differs_since = self._asked_at = self.reason = None

    async def ask(self) -> str | None:
        """Return None when the spawner serves this very definition, else why not, in one sentence.

        Another definition, with the front's own still run, counts once it has been there for LASTING_SECONDS.
        """
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
        self.spawner_digest, self.pack = str(described.get("digest", "")), str(described.get("pack", ""))
        if (demo := described.get("demo")) is not None:
            self.demo = demo is True
        if self.spawner_digest == self.digest:
            self._differs_since = None
        elif starting:
            raise DefinitionMismatch(
                f"The spawner loaded another definition of {self._agent} than the front.",
                "run ./gatehouse reload, or restart both with the same instance files and environment",
            )
        elif self._differs_for() >= LASTING_SECONDS:
            return "the spawner serves another definition of the agent"
        elif described.get("previous", self.digest) != self.digest:
            return "the spawner runs the definition no more that the front serves"
        reason = described.get("reason")
        return None if reason is None else str(reason)

    def _differs_for(self) -> float:
        """Return for how many seconds the definitions are known to differ."""
        now = self._clock()
        if self._differs_since is None:
            self._differs_since = now
            log.info("definitions-differ", agent=self._agent, own=self.digest, spawner=self.spawner_digest)
        return now - self._differs_since
