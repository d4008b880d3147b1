"""The agents that can be asked for, each with its pack: loaded at start, and anew when an operator asks.

Why a reload is one step: all instances are loaded and all packs built first, beside those in use, and then
one assignment puts them in the place of the old. A turn has its agent and its pack from its start to its
end; a pack leaves the disk when nothing serves it any more and no live turn mounts it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import structlog

from runtime.errors import ConfigError, GatehouseError
from runtime.spawner.packs import build_pack, prune

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from runtime.agents.definition import AgentDefinition
    from runtime.errors import Problem
    from runtime.spawner.packs import Pack

    Load = Callable[[str], AgentDefinition]

NAMES_MAX = 100  # of files left out, in a status

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Ready:
    """One agent that can be asked for.

    `asked_seconds_max` is the longest turn that a front may ask for. It is more than the agent's own timeout
    when a reload has lowered that: a front that has not been reloaded yet asks for what it knows, and gets
    the agent's own.
    """

    agent: AgentDefinition
    pack: Pack
    asked_seconds_max: float


class Catalogue:
    """The agents of `names` and their packs below `folder`.

    `load` returns an agent by name, or raises ConfigError. `in_use` returns the digests of the packs that
    live turns mount or are about to.
    """

    def __init__(
        self, names: Sequence[str], folder: Path, load: Load, in_use: Callable[[], Collection[str]]
    ) -> None:
        self._names = names
        self._folder = folder
        self._load = load
        self._in_use = in_use
        self._agents: Mapping[str, Ready] = {}
        self._lock = asyncio.Lock()  # one that writes or removes packs at a time
        self._old_in_use = False
        self.loaded_at: float | None = None

    def get(self, name: str) -> Ready | None:
        """Return the agent of that id, or None."""
        return self._agents.get(name)

    def all(self) -> tuple[Ready, ...]:
        """Return every agent that is served."""
        return tuple(self._agents.values())

    async def load(self) -> dict[str, Any]:
        """Load every instance, build its pack and serve them, all or none.

        Returns `{name: {"digest", "pack", "changed"}}`. Raises ConfigError with the problems of all
        instances, or HostError when a pack cannot be written; then what was served is served on. Once begun
        it is carried out, whether somebody waits for it or not.
        """
        return await asyncio.shield(asyncio.create_task(self._replace()))

    async def sweep(self) -> None:
        """Remove the packs of turns that have ended meanwhile; does nothing when there are none."""
        if self._old_in_use:
            async with self._lock:
                await self._prune()

    async def compare(self) -> dict[str, dict[str, Any]]:
        """Return `{name: {"stale": …}}`: whether a reload now would serve something else.

        It builds each pack anew and keeps none, so it takes as long as a reload. An instance whose files are
        wrong now is stale and has its `problems`; `stale` is None when it cannot be said, with the `detail`.
        """
        async with self._lock:
            return await asyncio.to_thread(lambda: {one.agent.id: self._compared(one) for one in self.all()})

    async def _replace(self) -> dict[str, Any]:
        async with self._lock:
            before = self._agents
            try:
                self._agents = await asyncio.to_thread(self._built, before)
                self.loaded_at = time.time()
            finally:
                await self._prune()
            return {
                name: {
                    "digest": one.agent.digest,
                    "pack": one.pack.digest,
                    "changed": name not in before or not _same(one, before[name]),
                }
                for name, one in self._agents.items()
            }

    async def _prune(self) -> None:
        """Remove what nothing serves and no live turn has. Only under the lock, and never a failure."""
        if not self._agents:
            return
        serving = {one.pack.digest for one in self.all()}
        in_use = set(self._in_use())
        self._old_in_use = not in_use <= serving
        try:
            await asyncio.to_thread(prune, self._folder, serving | in_use)
        except OSError as error:
            self._old_in_use = True  # so that it is tried again
            log.warning("packs-not-pruned", reason=str(error))

    def _built(self, before: Mapping[str, Ready]) -> dict[str, Ready]:
        built: dict[str, Ready] = {}
        problems: list[Problem] = []
        for name in self._names:
            try:
                agent = self._load(name)
                pack = build_pack(agent, self._folder)
            except ConfigError as error:
                problems.extend(error.problems)
                continue
            longest = agent.limits.timeout_seconds
            if agent.id in before:
                longest = max(longest, before[agent.id].asked_seconds_max)
            built[agent.id] = Ready(agent, pack, longest)
        if problems:
            raise ConfigError(tuple(problems))
        return built

    def _compared(self, served: Ready) -> dict[str, Any]:
        try:
            agent = self._load(served.agent.id)
            pack = build_pack(agent, self._folder, keep=False)
        except ConfigError as error:
            return {"stale": True, "problems": [problem.as_json() for problem in error.problems]}
        except GatehouseError as error:
            return {"stale": None, "detail": str(error)}
        return {"stale": not _same(replace(served, agent=agent, pack=pack), served)}


def _same(one: Ready, other: Ready) -> bool:
    return (one.agent.digest, one.pack.digest) == (other.agent.digest, other.pack.digest)


def described(one: Ready) -> dict[str, Any]:
    """Return what a status tells of an agent."""
    return {
        "digest": one.agent.digest,
        "pack": one.pack.digest,
        "hidden": list(one.pack.hidden[:NAMES_MAX]),
        "not_inlined": list(one.pack.not_inlined[:NAMES_MAX]),
    }
