"""The agents that can be asked for, each with its pack: loaded at start, and anew when an operator asks.

Why a reload is one step: all instances are loaded and all packs built first, beside those in use, and then
one assignment puts them in the place of the old.

Why the definition before it stays: the front is reloaded after the spawner, and a message may wait in its
conversation over both. Each turn names the definition that it began with and gets that one, with its pack,
or none; so nothing that a visitor meets is half of one and half of another. A pack leaves the disk when
neither of the two needs it and no live turn mounts it.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
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
    """One definition of an agent that can be asked for, with its pack."""

    agent: AgentDefinition
    pack: Pack


@dataclass(frozen=True, slots=True)
class _Kept:
    """What of one agent can be asked for: what is served now, and the definition that was before it."""

    now: Ready
    before: Ready | None


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
        self._agents: Mapping[str, _Kept] = {}
        self._lock = asyncio.Lock()  # one that writes or removes packs at a time
        self._old_in_use = False
        self.loaded_at: float | None = None

    def get(self, name: str) -> Ready | None:
        """Return the agent of that id as it is served now, or None."""
        kept = self._agents.get(name)
        return kept.now if kept else None

    def previous(self, name: str) -> Ready | None:
        """Return the definition that the agent had before, until the next one takes its place; or None.

        A reload that changes documents alone, or nothing, leaves it: a front that is still to be reloaded has
        it.
        """
        kept = self._agents.get(name)
        return kept.before if kept else None

    def defined(self, name: str, digest: str) -> Ready | None:
        """Return the agent with the definition of that digest, or None when it is neither of the two."""
        for one in (self.get(name), self.previous(name)):
            if one is not None and one.agent.digest == digest:
                return one
        return None

    def all(self) -> tuple[Ready, ...]:
        """Return every agent as it is served now."""
        return tuple(one.now for one in self._agents.values())

    async def load(self) -> dict[str, Any]:
        """Load every instance, build its pack and serve them, all or none.

        Returns `{name: {"digest", "pack", "changed"}}`. Raises ConfigError with the problems of all
        instances, or HostError when a pack cannot be written; then what was served is served on. Once begun
        it is carried out, whether somebody waits for it or not.
        """
        return await asyncio.shield(asyncio.create_task(self._replace()))

    async def sweep(self) -> None:
        """Remove the packs of turns that have ended meanwhile; does nothing when there are none.

        It waits for a load or a comparison that is under way: seconds, with many documents.
        """
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
                built = await asyncio.to_thread(self._built)
                self._agents = {
                    name: _Kept(one, _previous(one, before.get(name))) for name, one in built.items()
                }
                self.loaded_at = time.time()
            finally:
                await self._prune()
            return {
                name: {
                    "digest": one.agent.digest,
                    "pack": one.pack.digest,
                    "changed": name not in before or not _same(one, before[name].now),
                }
                for name, one in built.items()
            }

    async def _prune(self) -> None:
        """Remove what can be asked for no more and no live turn has. Only under the lock, never a failure."""
        if not self._agents:
            return
        kept = (ready for one in self._agents.values() for ready in (one.now, one.before))
        serving = {one.pack.digest for one in kept if one is not None}
        in_use = set(self._in_use())
        self._old_in_use = not in_use <= serving
        try:
            await asyncio.to_thread(prune, self._folder, serving | in_use)
        except OSError as error:
            self._old_in_use = True  # so that it is tried again
            log.warning("packs-not-pruned", reason=str(error))

    def _built(self) -> dict[str, Ready]:
        built: dict[str, Ready] = {}
        problems: list[Problem] = []
        for name in self._names:
            try:
                agent = self._load(name)
                pack = build_pack(agent, self._folder)
            except ConfigError as error:
                problems.extend(error.problems)
                continue
            built[agent.id] = Ready(agent, pack)
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
        return {"stale": not _same(Ready(agent, pack), served)}


def _previous(now: Ready, before: _Kept | None) -> Ready | None:
    """Return which definition stays beside `now`, of what was kept before it."""
    if before is None:
        return None
    return before.before if before.now.agent.digest == now.agent.digest else before.now


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
