"""The turns that a front has in hand, and everything that ends one before its time.

The first cause counts: a turn that was abandoned and is then cancelled by a client was abandoned.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from runtime.front.audience import Audience
from runtime.turn.events import Cause

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.agents.definition import AgentDefinition
    from runtime.front.presence import Gone
    from runtime.front.telling import Telling

LATE_MAX: Final = 1000


@dataclass(slots=True)
class Turn:
    """One message on its way, on the definition that it began with.

    `definition` is that definition's digest as loaded: what the spawner is asked to run. `grace_seconds` is
    how long nobody may watch it, None for ever. `running` is whether it holds a slot; `ended` is why the
    front ended it, None while it may go on.
    """

    agent: AgentDefinition
    definition: str
    started: float
    deadline: float
    telling: Telling
    context_id: str = ""
    grace_seconds: float | None = None
    forgotten: bool = False
    running: bool = False
    ended: Cause | None = None
    sdk_cancels: bool = False
    settled: asyncio.Event = field(default_factory=asyncio.Event)
    work: asyncio.Task[None] | None = None
    audience: Audience = field(init=False)

    def __post_init__(self) -> None:
        """Let those who watch be counted."""
        self.audience = Audience(self.grace_seconds, self._abandon)

    def end(self, cause: Cause) -> None:
        """End the work; `execute` then writes the one terminal event.

        A turn that has told its answer is left alone: its slot is free, and the answer remembered, when its
        runner has cleaned up and not before.
        """
        if self.ended is None and not self.telling.finished:
            self.ended = cause
            if self.work is not None:
                self.work.cancel()

    def _abandon(self) -> None:
        self.end(Cause.ABANDONED)


class Turns(dict[str, Turn]):
    """Turns that run or wait, by task id; of those that ended lately the ids alone, for `lately`."""

    def __init__(self) -> None:
        super().__init__()
        self._late: OrderedDict[str, str] = OrderedDict()

    def leave(self, task_id: str) -> None:
        """Let go of a turn that has ended."""
        turn = self.pop(task_id, None)
        if turn is not None:
            self._late[task_id] = turn.context_id
            while len(self._late) > LATE_MAX:
                self._late.popitem(last=False)

    def lately(self, wanted: Callable[[str, str], bool]) -> set[str]:
        """Return the chosen tasks whose turns ended lately, and forget these ids.

        The SDK saves a task's last events some time after its turn has ended (seen: up to 50 ms).
        """
        chosen = {task_id for task_id, context_id in self._late.items() if wanted(task_id, context_id)}
        for task_id in chosen:
            del self._late[task_id]
        return chosen

    def context_of(self, task_id: str) -> str | None:
        """Return the context of a task whose turn runs or waits, else None."""
        turn = self.get(task_id)
        return turn.context_id if turn else None

    def watch(self, task_id: str, gone: Gone | None) -> None:
        """Count a reader of a task's turn until `gone` is set; without one nobody can be seen to leave."""
        turn = self.get(task_id)
        if turn is not None and gone is not None:
            turn.audience.join(gone)

    def forget(self, wanted: Callable[[str, str], bool]) -> dict[str, asyncio.Event]:
        """Let no turn that `wanted` chooses by task and context id be remembered; it still has to be ended.

        Returns what each of them sets when it has ended, by task id.
        """
        chosen = {task_id: turn for task_id, turn in self.items() if wanted(task_id, turn.context_id)}
        for turn in chosen.values():
            turn.forgotten = True
        return {task_id: turn.settled for task_id, turn in chosen.items()}

    def end(self, cause: Cause, *, waiting: bool = False) -> None:
        """End every turn, or those alone that wait for another of their context."""
        for turn in self.values():
            if not (waiting and turn.running):
                turn.end(cause)

    async def settled(self, seconds: float, hurry: asyncio.Event | None = None) -> None:
        """Wait until each turn has its terminal event, for `seconds` or until `hurry` is set."""
        if not self:
            return
        ends: list[asyncio.Task[Any]] = [asyncio.create_task(self._all_settled())]
        if hurry is not None:
            ends.append(asyncio.create_task(hurry.wait()))
        try:
            await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for end in ends:
                end.cancel()
            await asyncio.wait(ends)

    async def _all_settled(self) -> None:
        for turn in list(self.values()):
            await turn.settled.wait()
