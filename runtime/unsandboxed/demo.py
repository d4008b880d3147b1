"""The demo model for turns without a sandbox: the real door, on a loopback port instead of in a container.

The same app judges, answers and counts as in the stack (runtime/modelproxy), so that the requests, tokens and
bytes of a turn mean the same here. A port of 127.0.0.1 can be asked by every user of the machine; there is
nothing behind it but the demo.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runtime.ingress.forward import Forwarder
from runtime.modelproxy import ledger
from runtime.modelproxy.books import Books
from runtime.modelproxy.demo import Demo
from runtime.modelproxy.door import Door
from runtime.modelproxy.doors import SOCKET_NAME, Doors, TooManyDoors
from runtime.modelproxy.grammar import Terms
from runtime.modelproxy.metrics import Metrics
from runtime.modelproxy.prices import FREE, exact
from runtime.spawner.cli_call import MODEL_OUTPUT_TOKENS, MODEL_REQUESTS
from runtime.spawner.doors import limits
from runtime.turn.events import Usage

if TYPE_CHECKING:
    from runtime.turn.plan import TurnPlan

SLACK_SECONDS: Final = 5.0  # after the turn's own time: whoever runs the turn closes its door
DRAIN_SECONDS: Final = 0.5
IN_MEMORY: Final = Path(":memory:")
SOCKET_PATH_MAX_BYTES: Final = 107  # unix(7), without its final zero
TURN_CHARS: Final = 16
FOLDER_MAX_BYTES: Final = SOCKET_PATH_MAX_BYTES - len(f"/{'0' * TURN_CHARS}/{SOCKET_NAME}")


class DemoDoors:
    """One door and one loopback port for each turn.

    `folder` must exist and have a path of at most FOLDER_MAX_BYTES.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._books = Books(ledger.Ledger(IN_MEMORY, 0))
        self._doors = Doors(folder, Demo(), self._books, Metrics())
        self._ports: dict[str, Forwarder] = {}

    async def open(self, turn: str, plan: TurnPlan, model: str, persona_bytes: int) -> str:
        """Listen for one turn and return the address for ANTHROPIC_BASE_URL. Raises OSError."""
        allowed = limits(persona_bytes, MODEL_REQUESTS, MODEL_OUTPUT_TOKENS)
        (self._folder / turn).mkdir(0o700)
        door = Door(
            turn=turn,
            agent=plan.agent,
            context=plan.context,
            terms=Terms(exact(model), plan.visitor, allowed["output_tokens"]),
            prices=FREE,
            limits=ledger.Limits(allowed["requests"], allowed["input_tokens"], allowed["output_tokens"]),
            body_bytes=allowed["body_bytes"],
            deadline=time.time() + plan.timeout_seconds + SLACK_SECONDS,
        )
        try:
            await self._doors.open(door)
        except TooManyDoors as error:
            raise OSError("too many turns at once for the demo model") from error
        forwarder = Forwarder(self._folder / turn / SOCKET_NAME)
        self._ports[turn] = forwarder
        await forwarder.start("127.0.0.1", 0)
        return f"http://127.0.0.1:{forwarder.port}"

    async def close(self, turn: str) -> Usage:
        """End a turn's requests and return what it used; zeros for a turn that has no door."""
        usage = await self._doors.close(turn)
        forwarder = self._ports.pop(turn, None)
        if forwarder is not None:
            await forwarder.stop(DRAIN_SECONDS)
        if (self._folder / turn).is_dir():
            (self._folder / turn).rmdir()
        return usage or Usage()

    async def aclose(self) -> None:
        """Close every door and the books."""
        for turn in list(self._ports):
            await self.close(turn)
        await self._doors.close_all()
        self._books.close()
