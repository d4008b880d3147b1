"""One turn, step by step: doors, create, attach, start, one line in, lines out, and the end in order.

The order, and what may overlap (a cold start is what a visitor waits for):

    1  make the folder doors/<turn>/            before create: the mount needs it
    2  PUT the door                             while 3 to 5 run; the CLI asks nothing before its line
    3  create   4  attach   5  start            attach first, so that no byte is missed
    6  the line on stdin, then end of file      only with the door open
    7  read until the end, the deadline, a cap or a stop; reading never pauses, even while 8 begins, but what
       comes after a turn that was ended is thrown away: a CLI whose door closes says that the model failed
    8  close the door, close the attach, kill, remove, verify gone, remove the folder; then `end`

A turn is its own task and is never cancelled from outside: whoever wants it to end calls `stop` and waits,
so that no cancellation can leave a container behind.
"""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import structlog

from runtime.errors import GatehouseError, ServiceUnreachable
from runtime.spawner.doors import DoorFacts
from runtime.spawner.engine import Ended
from runtime.spawner.frame import framed
from runtime.spawner.output import Dropped, Line, MalformedStreamError, Output
from runtime.spawner.policy import TurnFacts, create_body
from runtime.turn.events import Usage

if TYPE_CHECKING:
    from runtime.agents.definition import AgentDefinition
    from runtime.spawner.doors import Doors
    from runtime.spawner.engine import Attached, Engine
    from runtime.spawner.packs import Pack
    from runtime.spawner.policy import Host
    from runtime.spawner.request import TurnRequest

CONTAINER_PREFIX = "gatehouse-turn-"
INNER_SLACK_SECONDS = 1.0  # turn_init's clock, for a spawner that is gone: ours ends a turn first
DOOR_SLACK_SECONDS = 5.0
LABEL_SLACK_SECONDS = 15.0
TOGETHER_BYTES = 64 * 1024  # of lines that are sent as one piece
LINE_BYTES = 32  # what the wire adds to a line
MAX_BACKLOG_BYTES = 16 * 1024 * 1024  # unread by the front; more is the front's fault and ends the turn

log = structlog.get_logger()


class Reason(StrEnum):
    """Why a turn ended, as `end` says it; DISCONNECT is seen in logs alone: there is no one left to tell."""

    EXITED = "exited"
    DEADLINE = "deadline"
    OUTPUT_CAP = "output-cap"
    ENGINE = "engine"
    SHUTDOWN = "shutdown"
    CANCELLED = "cancelled"
    DISCONNECT = "disconnect"


@dataclass(frozen=True, slots=True)
class Started:
    """The container runs."""

    turn: str


@dataclass(frozen=True, slots=True)
class End:
    """The turn is over and its container and doors are gone."""

    reason: Reason
    exit_code: int | None
    oom: bool
    usage: Usage
    untrusted_detail: str


Event = Started | Line | Dropped | End


@dataclass(frozen=True, slots=True)
class Order:
    """What one turn runs: the agent, its pack, the checked request, and the turn's own id and uid."""

    agent: AgentDefinition
    pack: Pack
    request: TurnRequest
    turn: str
    uid: int


class Turn:
    """One turn. `run` it as a task, read `next_events` until End, `stop` it at any time."""

    def __init__(self, engine: Engine, doors: Doors, host: Host, order: Order) -> None:
        self._engine = engine
        self._doors = doors
        self._host = host
        self.order = order
        self._events: asyncio.Queue[Event] = asyncio.Queue()
        self._backlog_bytes = 0
        self._stop = asyncio.Event()
        self._stop_reason = Reason.EXITED
        self._output = Output()
        self._ended_early = False
        self._attached: Attached | None = None
        self._opening: asyncio.Task[None] | None = None
        self._reading: asyncio.Task[None] | None = None
        self._began = time.time()
        self._deadline = asyncio.get_running_loop().time() + order.request.timeout_seconds
        self.started_after_seconds: float | None = None

    @property
    def name(self) -> str:
        """The container's name: known before the engine answers, so that a lost answer leaves nothing."""
        return f"{CONTAINER_PREFIX}{self.order.turn}"

    def stop(self, reason: Reason) -> None:
        """Have the turn end for `reason`; the first reason counts."""
        if not self._stop.is_set():
            self._stop_reason = reason
            self._stop.set()

    async def next_events(self) -> list[Event]:
        """Wait for the next event; return it and what has come since, up to TOGETHER_BYTES. End is the last.

        Together, because a turn may write a hundred thousand lines, and each piece of an answer that is sent
        costs the spawner and the front more than a short line does.
        """
        events: list[Event] = []
        size = 0
        while not events or (size < TOGETHER_BYTES and not self._events.empty()):
            event = await self._events.get()
            events.append(event)
            if isinstance(event, Line):
                self._backlog_bytes -= len(event.untrusted_data)
                size += len(event.untrusted_data) + LINE_BYTES
        return events

    async def run(self) -> End:
        """Run the turn to its End, which is also the last event; raises nothing that a turn can cause."""
        setting_up = asyncio.create_task(self._set_up(), name=f"turn {self.order.turn}")
        reason, notes = await self._outcome(setting_up)
        talking: asyncio.Task[None] | None = None
        if reason is Reason.EXITED and self._attached is not None:
            talking = asyncio.create_task(self._talk(self._attached))
            reason, notes = await self._outcome(talking)
        end = await self._finish(reason, notes, setting_up, talking)
        self._events.put_nowait(end)
        return end

    async def _outcome(self, step: asyncio.Task[None]) -> tuple[Reason, list[str]]:
        """Wait for a step, a stop or the deadline; EXITED means that the step did all it should."""
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait({step, stopping}, timeout=self._left(), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if self._stop.is_set():
            return self._stop_reason, []
        if not step.done():
            return Reason.DEADLINE, []
        if (error := step.exception()) is not None:
            return Reason.ENGINE, [_told(error)]
        return Reason.EXITED, []

    async def _set_up(self) -> None:
        """Do steps 1 to 5. Never cancelled: engine calls have deadlines, and their results must be known."""
        order = self.order
        self._doors.make_folder(order.turn)
        wall_deadline = self._began + order.request.timeout_seconds
        door = DoorFacts(
            agent=order.agent.id,
            context=order.request.context,
            visitor=order.request.visitor,
            model=order.agent.model,
            persona_bytes=order.pack.persona_bytes,
            deadline=wall_deadline + DOOR_SLACK_SECONDS,
        )
        self._opening = asyncio.create_task(self._doors.open(order.turn, door))
        facts = TurnFacts(order.turn, order.uid, wall_deadline + LABEL_SLACK_SECONDS)
        body = create_body(order.agent, order.pack.digest, self._host, facts)
        container = await self._engine.create(body, self.name)
        if self._stop.is_set():
            return
        self._attached = await self._engine.attach(container)
        self._reading = asyncio.create_task(self._read(self._attached))
        if self._stop.is_set():
            return
        await self._engine.start(container)
        self._say_started()

    async def _talk(self, attached: Attached) -> None:
        """Do steps 6 and 7."""
        if self._opening is not None:
            await asyncio.shield(self._opening)
        await attached.send_and_end(self._line())
        if self._reading is not None:
            await asyncio.shield(self._reading)

    def _say_started(self) -> None:
        """Tell once that the container runs: its first byte may overtake the engine's answer to `start`."""
        if self.started_after_seconds is None:
            self.started_after_seconds = time.time() - self._began
            self._events.put_nowait(Started(self.order.turn))

    async def _read(self, attached: Attached) -> None:
        """Read for as long as there is anything, keeping what the caps allow."""
        while chunk := await attached.read():
            self._say_started()
            self._put(self._output.feed(chunk))
            if self._output.capped or self._backlog_bytes > MAX_BACKLOG_BYTES:
                self.stop(Reason.OUTPUT_CAP)
        self._put(self._output.finish())

    def _put(self, found: list[Line | Dropped]) -> None:
        for event in found:
            if self._ended_early or self._backlog_bytes > MAX_BACKLOG_BYTES:
                return
            if isinstance(event, Line):
                self._backlog_bytes += len(event.untrusted_data)
            self._events.put_nowait(event)

    async def _finish(
        self,
        reason: Reason,
        notes: list[str],
        setting_up: asyncio.Task[None],
        talking: asyncio.Task[None] | None,
    ) -> End:
        """Step 8: end the turn in the fixed order, whatever each part of it says, and tell how it went."""
        self._ended_early = reason is not Reason.EXITED
        await asyncio.wait({setting_up})
        if not notes and (error := setting_up.exception()) is not None:
            notes.append(_told(error))
        usage = await self._shut_door(notes)
        if self._attached is not None:
            self._attached.close()
        for task in (talking, self._reading):
            if task is not None:
                task.cancel()
                await asyncio.wait({task})
        ended = Ended()
        try:
            ended = await self._engine.end(self.name, kill=reason is not Reason.EXITED, since=self._began)
        except GatehouseError as error:
            log.exception("turn-not-removed", turn=self.order.turn)
            reason = Reason.ENGINE
            notes.append(_told(error))
        self._doors.remove_folder(self.order.turn)
        if self._output.untrusted_stderr_tail:
            notes.append(self._output.untrusted_stderr_tail)
        return End(reason, ended.exit_code, ended.oom, usage, "\n".join(notes))

    async def _shut_door(self, notes: list[str]) -> Usage:
        if self._opening is None:
            return Usage()
        await asyncio.wait({self._opening})
        if (error := self._opening.exception()) is not None:
            told = _told(error)
            if told not in notes:
                notes.append(told)
            if isinstance(error, ServiceUnreachable):
                return Usage()
        try:
            return await self._doors.shut(self.order.turn)
        except ServiceUnreachable as unreachable:
            notes.append(_told(unreachable))
            return Usage()

    def _line(self) -> bytes:
        """Return the one line that turn_init reads (docs/reference/protocols.md)."""
        value: dict[str, Any] = {
            "v": 1,
            "context": self.order.request.context,
            "deadline_seconds": round(self._left() + INNER_SLACK_SECONDS, 3),
            "message": framed(self.order.request.prompt),
        }
        return json.dumps(value).encode() + b"\n"

    def _left(self) -> float:
        return max(0.0, self._deadline - asyncio.get_running_loop().time())


def _told(error: BaseException) -> str:
    """Name a failure for the log; a bug of ours is logged with its traceback as well."""
    if not isinstance(error, (GatehouseError, OSError, MalformedStreamError)):
        log.error("turn-bug", exc_info=error)
    return f"{type(error).__name__}: {error}"
