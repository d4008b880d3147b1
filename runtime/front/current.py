"""The definition that the front serves now: whoever needs it asks here, at each request.

Why one holder: a reload swaps it in one step, so that card, limits, messages and origins are never of two
definitions at once, and nothing has to be built anew around it. A turn takes the definition once, when its
message arrives, and keeps it to its end: the spawner is asked for that one, by its digest.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.front.card import CardBody, card_bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from runtime.agents.definition import AgentDefinition


@dataclass(frozen=True, slots=True)
class Served:
    """One definition with what is made of it once, so that a reload fails before it changes anything.

    `digest` is what the spawner must serve too; it is not `agent.digest` where this process listens on an
    address of its own. `pack` is the spawner's of it, "" before it is known. `cards` holds the card by
    whether the demo model answers; `loaded_at` is Unix time.
    """

    agent: AgentDefinition
    digest: str
    pack: str
    cards: Mapping[bool, CardBody]
    loaded_at: float


def served(agent: AgentDefinition, digest: str, pack: str = "") -> Served:
    """Return `agent` ready to be served, loaded now."""
    return Served(agent, digest, pack, card_bodies(agent), time.time())


class Current:
    """Holds what is served. `follow` is for what keeps a bound of its own and must be told of a new one."""

    def __init__(self, now: Served) -> None:
        self._now = now
        self._followers: list[Callable[[Served], None]] = []

    @property
    def now(self) -> Served:
        """What is served."""
        return self._now

    @property
    def agent(self) -> AgentDefinition:
        """The definition that is served."""
        return self._now.agent

    def follow(self, follower: Callable[[Served], None]) -> None:
        """Have `follower` called at each swap, within the same step. It must not raise."""
        self._followers.append(follower)

    def swap(self, now: Served) -> None:
        """Serve `now` from here on. Nothing is awaited, so no request sees a part of it."""
        self._now = now
        for follower in self._followers:
            follower(now)
