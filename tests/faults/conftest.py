"""What the tests of faults share: one engine of their own, a proxy before it, and one set of services.

A test breaks something, looks at what the visitor reads, mends it and looks at what is left. The services
last for the whole run, so a slot or a container that one fault leaves behind is met by the next test.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from runtime.spawner.packs import UNFINISHED
from tests.harness.engine import IMAGE, OwnEngine
from tests.harness.engine_proxy import EngineProxy
from tests.harness.processes import MESSAGES, ONE_AT_A_TIME, Processes, terminal
from tests.harness.quick_cli import STAYS
from tests.harness.stack import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from concurrent.futures import Future

    from tests.harness.processes import Reply

FINE: Final = "The sky is blue."
LEFT_SECONDS: Final = 20.0  # for engine calls that were under way, and the reaper after them
HANG: Final = {"hang": True}
# So that a turn which nobody watches is given up long before its own timeout, and by nothing else.
GRACE: Final = "disconnect_grace: 0.5\n"

# What a visitor reads for each outcome; the model's answer has none.
TEXTS: Final = {
    "": FINE,
    "engine": MESSAGES["spawn_error"],
    "spawner": MESSAGES["spawn_error"],
    "timeout": MESSAGES["timeout"],
    "crash": MESSAGES["error"],
    "model": MESSAGES["error"],
    "busy": MESSAGES["busy"],
    "cancelled": MESSAGES["cancelled"],
    "stopping": MESSAGES["stopping"],
}


@dataclass
class Faults:
    """The engine, the proxy and the services, and what every test asks of them."""

    engine: OwnEngine
    proxy: EngineProxy
    services: Processes
    doors: int = 0
    answered: list[Reply] = field(default_factory=list)

    # -- the visitor --------------------------------------------------------------------------------------
    def ask(self, *steps: dict[str, Any], persona: str = "tester") -> Reply:
        """Ask one question of a model that follows these steps and return the answer."""
        marker = self.services.script(*(steps or ({"text": FINE},)))
        return self.services.ask(f"What colour is the sky? {marker}", persona)

    @contextlib.contextmanager
    def asking(self, *steps: dict[str, Any], persona: str = "tester") -> Iterator[Future[Reply]]:
        """Ask one question, and go on meanwhile; leaving the block waits for the answer."""
        with ThreadPoolExecutor(1) as pool:
            yield pool.submit(self.ask, *steps, persona=persona)

    @contextlib.contextmanager
    def in_mid_turn(self) -> Iterator[Future[Reply]]:
        """Ask a question whose turn waits for the model, and go on once the model was asked."""
        marker = self.services.script(HANG)
        with ThreadPoolExecutor(1) as pool:
            reply = pool.submit(self.services.ask, f"Wait {marker}")
            eventually(lambda: self.services.asked(marker), what="the model being asked")
            yield reply

    def cancelled(self) -> Reply:
        """Ask a question that the model never answers, cancel it in mid-turn, and return its answer.

        What runs in the container does not end by itself when the model's door closes.
        """
        marker = self.services.script(HANG)
        with self.services.stream(f"Wait {STAYS} {marker}") as events:
            first = next(events)
            eventually(lambda: self.services.asked(marker), what="the model being asked")
            self.services.cancel(first["id"])
            return terminal([first, *events])

    def told(self, reply: Reply) -> str:
        """Return the outcome that a visitor was told, whose one text the answer must be.

        `nothing_is_left` looks for its receipt.
        """
        assert reply.text == TEXTS[reply.outcome]
        self.answered.append(reply)
        return reply.outcome

    # -- afterwards ---------------------------------------------------------------------------------------
    def heal(self) -> None:
        """Mend everything that a test can break."""
        self.proxy.heal()
        self.engine.heal()
        self.services.heal()

    def a_door_is_left_to_its_deadline(self) -> None:
        """Expect a door that the model proxy was not told to close: it does so itself, and counts it on."""
        self.doors += 1

    def left(self) -> dict[str, Any]:
        """Return what is left of turns, by kind; empty when nothing is."""
        found = {
            "containers": self.engine.turns(),
            "container processes": self.engine.shims(),
            "door folders": [path.name for path in self.services.doors.iterdir()],
            "unfinished packs": [path.name for path in self.services.packs.glob(f"{UNFINISHED}*")],
            "slots": self.services.status("spawner")["running"],
            "doors": max(0, self.services.status("modelproxy")["doors"] - self.doors),
        }
        return {kind: what for kind, what in found.items() if what}

    def nothing_is_left(self) -> None:
        """Check that nothing of any turn is left, and that the next visitor is answered as ever.

        And that a receipt says the cause of each answer: it is written when the turn's place is free again,
        which may be when all is mended.
        """
        self.nothing_stays()
        for persona in {reply.persona for reply in self.answered}:
            outcomes = sorted(reply.outcome for reply in self.answered if reply.persona == persona)
            eventually(partial(self._are_last, persona, outcomes), what=f"receipts that say {outcomes}")
        self.answered.clear()
        assert self.told(self.ask()) == ""

    def _are_last(self, persona: str, outcomes: list[str]) -> bool:
        last = self.services.receipts(persona)[-len(outcomes) :]
        assert all(bool(one["detail"]) == bool(one["cause"]) for one in last), last
        return sorted(one["cause"] for one in last) == outcomes

    def nothing_stays(self) -> None:
        """Check that nothing of any turn is left in the end, whatever is broken still."""
        try:
            eventually(lambda: not self.left(), seconds=LEFT_SECONDS, what="nothing left")
        except AssertionError:
            raise AssertionError(f"left: {self.left()}") from None

    def receipt(self, after: int, persona: str = "tester") -> dict[str, Any]:
        """Return the one receipt since there were `after`; it is written when the front's slot is free."""
        receipts = self.services.receipts
        eventually(lambda: len(receipts(persona)) > after, what="the receipt")
        (receipt,) = receipts(persona)[after:]
        return receipt


@contextlib.contextmanager
def full(folder: Path, options: str) -> Iterator[None]:
    """Cover a folder with a volume that has no room."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="session")
def own_engine() -> Iterator[OwnEngine]:
    with OwnEngine() as engine:
        yield engine


@pytest.fixture(scope="session")
def _world(own_engine: OwnEngine) -> Iterator[Faults]:
    folder = Path(tempfile.mkdtemp(prefix="gh-", dir="/tmp"))
    try:
        with EngineProxy(folder / "engine.sock", own_engine.socket) as proxy:
            services = Processes(
                folder,
                own_engine,
                proxy.socket,
                image=own_engine.quick(IMAGE),
                more={"brief": ONE_AT_A_TIME + GRACE},
            )
            try:
                services.heal()
                yield Faults(own_engine, proxy, services)
                services.stop()
            finally:
                services.kill()
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def faults(_world: Faults) -> Iterator[Faults]:
    _world.answered.clear()
    _world.doors = _world.services.status("modelproxy")["doors"]
    yield _world
    _world.heal()
