"""Loads the front's instance anew while it serves: what `POST /reload` on `ops/front.sock` does.

Why the spawner is asked first: it runs the turns, so the front may only describe what the spawner serves.
Whatever fails, nothing is changed, and the definition that was served is served on: the spawner runs it
beside its new one.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import structlog

from runtime.errors import DefinitionMismatch, ServiceUnreachable
from runtime.front.current import served

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.agents.definition import AgentDefinition, Network
    from runtime.front.current import Current
    from runtime.front.readiness import Spawner

log = structlog.get_logger("front")


class Reload:
    """Reloads one front, one at a time. `load` reads the instance as at start, or raises ConfigError."""

    def __init__(self, current: Current, spawner: Spawner, load: Callable[[], AgentDefinition]) -> None:
        self._current = current
        self._spawner = spawner
        self._load = load
        self._lock = asyncio.Lock()

    async def __call__(self) -> dict[str, Any]:
        """Return `{"agent", "digest", "changed"}`, and `"restart"` with what only a restart changes.

        Raises ConfigError, ServiceUnreachable when the spawner cannot say what it serves, and
        DefinitionMismatch when it serves something else.
        """
        async with self._lock:
            loaded = await asyncio.to_thread(self._load)
            digest = loaded.digest
            try:
                described = await self._spawner.agent(loaded.id)
            except OSError as error:
                raise ServiceUnreachable(f"{error}.", "see the spawner's log") from error
            if described.get("digest") != digest:
                raise DefinitionMismatch(
                    f"The spawner serves another definition of {loaded.id} than the files are now.",
                    "reload the spawner first: ./gatehouse reload does both",
                )
            before = self._current.now
            agent, restart = at_the_same_address(loaded, before.agent.network)
            self._current.swap(served(agent, digest, str(described.get("pack", ""))))
            changed = digest != before.digest
        log.info("reloaded", agent=agent.id, digest=digest, changed=changed, restart=restart)
        answer: dict[str, Any] = {"agent": agent.id, "digest": digest, "changed": changed}
        return answer | {"restart": restart} if restart else answer


def at_the_same_address(loaded: AgentDefinition, now: Network) -> tuple[AgentDefinition, list[str]]:
    """Return `loaded` at the address that is served, and which of `host` and `port` wait for a restart.

    A card that names no address of its own goes on naming the one where somebody listens.
    """
    wanted = loaded.network
    restart = [key for key in ("host", "port") if getattr(wanted, key) != getattr(now, key)]
    card = loaded.card
    if restart and card.public_url == default_url(wanted):
        card = replace(card, public_url=default_url(now))
    network = replace(wanted, host=now.host, port=now.port)
    return replace(loaded, card=card, network=network), restart


def default_url(network: Network) -> str:
    """Return the address that a card names when the instance gives none."""
    host = f"[{network.host}]" if ":" in network.host else network.host
    return f"http://{host}:{network.port}"
