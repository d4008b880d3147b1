"""How much the spawner runs at once, whatever the front asks for. Pure: the clock is passed in.

Why here as well as in the front: the front faces the internet, and a front that was taken over must not be
able to fill the host with containers (architecture §3).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field

WINDOW_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether one more turn may start; if not, why, by which control, and when to ask again."""

    allow: bool
    reason: str = ""
    control: str = ""
    retry_after_seconds: int = 0


@dataclass(slots=True)
class Ceilings:
    """Counts running turns, their memory, and starts within the last minute.

    `memory_bytes` is what all running turns may reserve together; every turn reserves its container's whole
    limit.
    """

    running: int
    starts_per_minute: int
    memory_bytes: int
    _active: int = 0
    _reserved_bytes: int = 0
    _starts: deque[float] = field(default_factory=deque)

    @property
    def active(self) -> int:
        """How many turns hold a place now."""
        return self._active

    def take(self, now: float, turn_memory_bytes: int) -> Decision:
        """Take a place for one turn when all three ceilings allow it; `now` is monotonic, in seconds."""
        while self._starts and self._starts[0] <= now - WINDOW_SECONDS:
            self._starts.popleft()
        if self._active >= self.running:
            return Decision(allow=False, reason="running turns", control="LOAD-04", retry_after_seconds=2)
        if self._reserved_bytes + turn_memory_bytes > self.memory_bytes:
            return Decision(allow=False, reason="memory of turns", control="LOAD-06", retry_after_seconds=2)
        if len(self._starts) >= self.starts_per_minute:
            wait = max(1, math.ceil(self._starts[0] + WINDOW_SECONDS - now))
            return Decision(
                allow=False, reason="starts per minute", control="LOAD-05", retry_after_seconds=wait
            )
        self._starts.append(now)
        self._active += 1
        self._reserved_bytes += turn_memory_bytes
        return Decision(allow=True)

    def give_back(self, turn_memory_bytes: int) -> None:
        """Return the place of one turn that was allowed and is gone."""
        self._active -= 1
        self._reserved_bytes -= turn_memory_bytes
