"""The spawner as a whole: its agents and their packs, the turns that run, the ceilings, and the reaper.

Why one object: a turn may only start when all of it is known to hold (engine, image, volumes, packs), and
everything that ends turns (disconnect, shutdown, reaper) must agree on which of them live.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import structlog

from runtime import layout
from runtime.errors import GatehouseError, HostError, ServiceUnreachable
from runtime.spawner.catalogue import Catalogue, described
from runtime.spawner.ceilings import Ceilings, Decision
from runtime.spawner.host import Volumes, own_container_id, volumes_of
from runtime.spawner.metrics import Metrics
from runtime.spawner.packs import owner_id
from runtime.spawner.policy import Host
from runtime.spawner.reaper import INTERVAL_SECONDS, doomed
from runtime.spawner.turns import Order, Reason, Turn

if TYPE_CHECKING:
    from runtime.spawner.catalogue import Load, Ready
    from runtime.spawner.doors import Doors
    from runtime.spawner.engine import Engine
    from runtime.spawner.request import TurnRequest
    from runtime.spawner.settings import Paths, Settings
    from runtime.spawner.turns import End

TROUBLE_SECONDS = 2.0  # between looks at an engine that did not answer the last one
MOUNTINFO = Path("/proc/self/mountinfo")

log = structlog.get_logger()


class Spawner:
    """Starts turns and sees to it that they end. `load` returns an agent by name, or raises ConfigError."""

    def __init__(self, settings: Settings, paths: Paths, engine: Engine, doors: Doors, load: Load) -> None:
        self._settings = settings
        self._paths = paths
        self._engine = engine
        self._doors = doors
        self._host: Host | None = None
        self._live: dict[str, tuple[Turn, asyncio.Task[End]]] = {}
        self._catalogue = Catalogue(settings.agents, paths.packs, load, self._mounted)
        self._ceilings = Ceilings(settings.max_running, settings.starts_per_minute, settings.memory_bytes)
        self._detail: dict[str, Any] = {}
        self.metrics = Metrics()
        self.not_ready: str | None = "starting"
        self._trouble: str | None = None

    async def prepare(self) -> None:
        """Find engine, image and volumes, remove what an earlier spawner left, build the packs.

        Raises the GatehouseError of what is missing; nothing is half-started then.
        """
        settings = self._settings
        facts = await self._engine.facts()
        if settings.runtime not in facts.runtimes:
            known = ", ".join(facts.runtimes)
            raise HostError(f"the engine has no runtime {settings.runtime} (it has {known})", "configure it")
        volumes = await self._volumes()
        image_id = await self._engine.image_id(settings.turn_image)
        profile = await asyncio.to_thread(self._seccomp)
        owner = await asyncio.to_thread(owner_id, self._paths.packs)
        self._host = Host(
            image_id=image_id,
            packs_volume=volumes.packs,
            doors_volume=volumes.doors,
            owner=owner,
            seccomp=profile,
            runtime=settings.runtime,
            memory_bytes=settings.turn_memory_bytes,
            cpus=min(settings.turn_cpus, facts.cpus),
            pids=settings.turn_pids,
        )
        await self.reap()
        stale = await asyncio.to_thread(self._doors.remove_folders_but, ())
        for name in stale:  # the model proxy counts a door until its deadline, folder or not
            with contextlib.suppress(ServiceUnreachable):
                await self._doors.shut(name)
        await self._catalogue.load()
        self._detail = {
            "engine": facts.version,
            "api": facts.api,
            "runtime": settings.runtime,
            "image": image_id,
            "project": volumes.project,
            "stale_doors": len(stale),
        }
        self._warn_of_ceilings()
        self.not_ready = None
        log.info("spawner-ready", **self._detail, agents=self._agents())

    @property
    def health(self) -> str | None:
        """Why a visitor would not be answered now, or None.

        An engine that does not answer shows here and refuses no turn: it may be back before the next look.
        """
        return self.not_ready or self._trouble

    def agent(self, name: str) -> Ready | None:
        """Return the agent of that id as it is served now, or None."""
        return self._catalogue.get(name)

    def previous(self, name: str) -> Ready | None:
        """Return the definition of the agent that is still run beside the one that is served, or None."""
        return self._catalogue.previous(name)

    def defined(self, name: str, digest: str) -> Ready | None:
        """Return the agent with the definition of that digest, or None when it can be run no more.

        It is for this moment: a reload may drop it.
        """
        return self._catalogue.defined(name, digest)

    async def reload(self) -> dict[str, Any]:
        """Load the instances anew and serve them, all or none; turns that run end on what they began with.

        Returns `{"agents": {name: {"digest", "pack", "changed"}}}`. Raises as `Catalogue.load` does, and
        ServiceUnreachable before the spawner is ready and while it stops.
        """
        if self.not_ready is not None:
            raise ServiceUnreachable(f"the spawner reloads nothing now: {self.not_ready}", "try again later")
        loaded = await self._catalogue.load()
        self._warn_of_ceilings()
        log.info("reloaded", agents=loaded)
        return {"agents": loaded}

    async def is_demo(self) -> bool:
        """Return whether answers come from the demo model. Raises ServiceUnreachable."""
        return await self._doors.is_demo()

    def start(self, ready: Ready, request: TurnRequest) -> Turn | Decision | None:
        """Start a turn; or return the decision that refuses it, or None when not ready.

        `ready` comes from `defined` with nothing awaited in between, so that its pack is still there. The
        caller reads the turn's events and then calls `finished`.
        """
        if self._host is None or self.not_ready is not None:
            return None
        decision = self._ceilings.take(time.monotonic(), self._settings.turn_memory_bytes)
        if not decision.allow:
            self.metrics.refused.labels(decision.reason).inc()
            return decision
        taken = {turn.order.uid for turn, _task in self._live.values()}
        while (uid := secrets.choice(layout.TURN_UIDS)) in taken:
            pass
        order = Order(ready.agent, ready.pack, request, secrets.token_hex(16), uid)
        turn = Turn(self._engine, self._doors, self._host, order)
        task = asyncio.create_task(turn.run())
        self._live[order.turn] = (turn, task)
        self.metrics.running.inc()
        return turn

    async def cancel(self, turn_id: str) -> End | None:
        """End a running turn and return its End, after which its container is gone; None: no such turn."""
        live = self._live.get(turn_id)
        if live is None:
            return None
        turn, task = live
        turn.stop(Reason.CANCELLED)
        await asyncio.wait({task})
        return task.result()

    async def finished(self, turn: Turn) -> None:
        """Wait until the turn's container is gone, then give its place back. Safe against cancellation."""
        _turn, task = self._live[turn.order.turn]
        try:
            while not task.done():
                try:
                    await asyncio.wait({task})
                except asyncio.CancelledError:
                    turn.stop(Reason.DISCONNECT)
                    await asyncio.shield(asyncio.wait({task}))
                    raise
        finally:
            if task.done():
                self._forget(turn, task)
            else:
                task.add_done_callback(lambda done: self._forget(turn, done))

    async def reap(self) -> int:
        """Remove the containers that must go (reaper.py); returns how many went."""
        if self._host is None:
            return 0
        found = await self._engine.containers(layout.LABEL_TURN)
        gone = 0
        for container in doomed(
            found, owner=self._host.owner, image_id=self._host.image_id, live=self._live, now=time.time()
        ):
            try:
                await self._engine.end(container, kill=True, since=time.time())
            except GatehouseError:
                log.exception("reaper-failed", container=container)
                continue
            gone += 1
            self.metrics.reaped.inc()
            log.warning("reaped", container=container)
        return gone

    async def keep_reaping(self) -> None:
        """Reap at intervals until cancelled; an engine that does not answer is tried again."""
        while True:
            await asyncio.sleep(INTERVAL_SECONDS if self._trouble is None else TROUBLE_SECONDS)
            try:
                await self.reap()
            except GatehouseError as error:
                self._trouble = str(error)
                log.warning("reaper-skipped", reason=str(error))
            else:
                self._trouble = None

    async def keep_sweeping(self) -> None:
        """Sweep at intervals until cancelled.

        A clock of its own, because a sweep waits while packs are built: no container may live longer for
        that.
        """
        while True:
            await asyncio.sleep(INTERVAL_SECONDS)
            await self.sweep()

    async def sweep(self) -> None:
        """Remove the packs that can be asked for no more, once the turns that mounted them have ended."""
        await self._catalogue.sweep()

    async def shutdown(self) -> None:
        """Take no more turns and end those that run; returns when their containers are gone."""
        self.not_ready = "stopping"
        running = list(self._live.values())
        for turn, _task in running:
            turn.stop(Reason.SHUTDOWN)
        if running:
            await asyncio.wait({task for _turn, task in running})

    async def status(self) -> dict[str, Any]:
        """Return the detail for operators."""
        try:
            demo = await self.is_demo()
        except ServiceUnreachable:
            demo = None
        return {
            "ready": self.health is None,
            "reason": self.health,
            "running": self._ceilings.active,
            "loaded_at": self._catalogue.loaded_at,
            "demo": demo,
            **self._detail,
            "agents": self._agents(),
        }

    async def status_with_stale(self) -> dict[str, Any]:
        """Return the detail, and of each agent whether its files are still those that are served."""
        compared = await self._catalogue.compare()
        detail = await self.status()
        for name, told in detail["agents"].items():
            told.update(compared.get(name, {}))
        return detail

    def _agents(self) -> dict[str, dict[str, Any]]:
        running = Counter(turn.order.agent.id for turn, _task in self._live.values())
        return {
            one.agent.id: described(one) | {"running": running[one.agent.id]} for one in self._catalogue.all()
        }

    def _mounted(self) -> set[str]:
        """Return the packs of live turns, from `start` on: before the container there is its order."""
        return {turn.order.pack.digest for turn, _task in self._live.values()}

    def _warn_of_ceilings(self) -> None:
        most = self._settings.max_running
        for one in self._catalogue.all():
            if one.agent.limits.max_concurrency > most:
                log.warning(
                    "ceiling-below-agent",
                    agent=one.agent.id,
                    max_concurrency=one.agent.limits.max_concurrency,
                    max_running=most,
                    hint="raise SPAWNER_MAX_RUNNING, or visitors meet the busy message earlier",
                )

    def _forget(self, turn: Turn, task: asyncio.Task[End]) -> None:
        if self._live.pop(turn.order.turn, None) is None:
            return
        self._ceilings.give_back(self._settings.turn_memory_bytes)
        self.metrics.running.dec()
        if turn.started_after_seconds is not None:
            self.metrics.start_seconds.observe(turn.started_after_seconds)
        end = task.result()
        self.metrics.turns.labels(end.reason.value).inc()
        log.info(
            "turn-ended",
            turn=turn.order.turn,
            agent=turn.order.agent.id,
            reason=end.reason.value,
            exit_code=end.exit_code,
            oom=end.oom,
            start_seconds=turn.started_after_seconds,
        )

    def _seccomp(self) -> str:
        path = self._paths.seccomp
        try:
            return json.dumps(json.loads(path.read_text("utf-8")), separators=(",", ":"))
        except (OSError, ValueError) as error:
            raise HostError(f"{path} cannot be read as a seccomp profile: {error}", "restore it") from error

    async def _volumes(self) -> Volumes:
        settings = self._settings
        if settings.packs_volume and settings.doors_volume:
            return Volumes(settings.packs_volume, settings.doors_volume)
        container = own_container_id(await asyncio.to_thread(MOUNTINFO.read_text, "utf-8"))
        if container is None:
            raise HostError("this process runs in no container", "set PACKS_VOLUME and DOORS_VOLUME")
        described = await self._engine.inspect(container)
        if described is None:
            raise HostError(f"the engine knows no container {container[:12]}", "use the engine that runs it")
        return volumes_of(described)
