"""Turn path 5/13: how a planned turn gets run, whoever runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.turn.events import TurnEvent
    from runtime.turn.plan import TurnPlan


class Runner(Protocol):
    """Runs one turn."""

    def run(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        """Yield the turn's events: exactly one terminal one, last, within `plan.timeout_seconds`.

        Raises nothing but `asyncio.CancelledError`. Closing the generator or cancelling its task ends the turn and
        removes its container before it returns.
        """
        ...
