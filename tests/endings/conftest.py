"""One engine, one proxy before it and one set of services for every way to end; rows run side by side."""

from __future__ import annotations

import shutil
import tempfile
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import pytest

from tests.endings.row import Model, Play
from tests.endings.table import TABLE
from tests.faults.conftest import Faults
from tests.harness import contract
from tests.harness.engine import IMAGE, OwnEngine
from tests.harness.engine_proxy import EngineProxy
from tests.harness.processes import SLACK_SECONDS, Processes, terminal
from tests.harness.quick_cli import REAL
from tests.harness.stack import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.endings.row import Row
    from tests.harness.processes import Reply

T = TypeVar("T")

# Turns at once, below every ceiling: the CLI itself needs a processor for its start, a program hardly any.
SIDE_BY_SIDE: Final = {Play: 4, Model: 2}
TIMEOUTS: Final = {"tester": 40.0, "brief": 4.0, "single": 4.0, "poor": 40.0, "patient": 10.0}
PLACES: Final = 8
SHARED: Final = f"max_concurrency: {PLACES}\nmax_input_chars: 32000\ndisconnect_grace: 0.2\n"
# A model whose every request may cost more than the day's money, so that the door refuses the first.
POOR: Final = SHARED + "model: haiku\n"
ENVIRONMENT: Final = {
    "MODEL_PRICES": "claude-haiku-5-5=1000000/1000000",
    "MODEL_DAILY_USD": "1000",
    "SPAWNER_MAX_RUNNING": str(PLACES),
    "SPAWNER_MEMORY_MIB": str(PLACES * 512),
    "TURN_MEMORY_MIB": "512",
    "TURN_PIDS": "96",
}


def in_the_background(work: Callable[[], T]) -> Future[T]:
    """Do something in a thread of its own; what it raises is raised where its result is asked for."""
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:  # noqa: BLE001  the waiting thread raises it
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return done


@dataclass
class Watched:
    """One streamed message, read in a thread of its own for as long as it lasts."""

    services: Processes
    words: str
    persona: str = "tester"
    context: str | None = None
    events: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.ended = in_the_background(self._read)

    def _read(self) -> None:
        with self.services.stream(self.words, self.persona, context=self.context) as events:
            self.events.extend(events)

    def until(self, seen: Callable[[dict[str, Any]], bool], what: str) -> None:
        """Wait for an event."""
        eventually(lambda: any(map(seen, tuple(self.events))), what=what)

    @property
    def task(self) -> str:
        self.until(lambda _: True, "the task")
        return str(self.events[0]["id"])

    def reply(self) -> Reply:
        """Wait for the end, and return what the whole stream told."""
        self.ended.result(TIMEOUTS[self.persona] + SLACK_SECONDS)
        return terminal(self.events, self.persona)


@dataclass(frozen=True, slots=True)
class Played:
    """What the visitors of a row got: one who streams, the same one who reads the task later, one who waits.

    What is read later is what one who waits is given, so the last is asked only where it can differ.
    """

    streamed: Reply
    snapshots: list[str]
    read_later: contract.Told
    waited: Reply | None


@dataclass
class World(Faults):
    """The services, and what a row asks of them."""

    def watch(self, words: str, persona: str = "tester", context: str | None = None) -> Watched:
        return Watched(self.services, words, persona, context)

    def cancelling(self, watched: Watched) -> Future[dict[str, Any]]:
        """Cancel a task, and go on meanwhile."""
        return in_the_background(lambda: self.services.cancel(watched.task, watched.persona))

    def cancelled_reply(self, watched: Watched) -> Reply:
        """Cancel a task and return what its stream told."""
        cancelling = self.cancelling(watched)
        reply = watched.reply()
        cancelling.result(20)
        return reply

    def play(self, row: Row) -> Played:
        """Bring a row about, for a visitor who streams and for one who waits."""
        watched = self.watch(self._words(row), row.persona)
        streamed = watched.reply()
        return Played(
            streamed,
            contract.snapshots(watched.events),
            contract.of_task(self.services.task(watched.task, row.persona)),
            self.services.ask(self._words(row), row.persona) if row.both else None,
        )

    def _words(self, row: Row) -> str:
        if isinstance(row.how, Play):
            return row.how.words
        assert isinstance(row.how, Model)
        return f"What colour is the sky? Answer {REAL}: {self.services.script(*row.how.steps)}"


def told_by(reply: Reply) -> contract.Told:
    return contract.Told(reply.text, reply.outcome, reply.state)


@pytest.fixture(scope="session")
def world() -> Iterator[World]:
    folder = Path(tempfile.mkdtemp(prefix="gh-", dir="/tmp"))
    try:
        with OwnEngine() as engine, EngineProxy(folder / "engine.sock", engine.socket) as proxy:
            services = Processes(
                folder,
                engine,
                proxy.socket,
                image=engine.quick(IMAGE, keep=True),
                timeouts=TIMEOUTS,
                more=dict.fromkeys(TIMEOUTS, SHARED) | {"poor": POOR, "single": "max_concurrency: 1\n"},
                environment=ENVIRONMENT,
            )
            try:
                services.heal()
                yield World(engine, proxy, services)
                services.stop()
            finally:
                services.kill()
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def played(world: World) -> Iterator[dict[str, Future[Played]]]:
    """Every row that a program or a model brings about; they all begin when the first is looked at."""
    rows = [row for row in TABLE if isinstance(row.how, tuple(SIDE_BY_SIDE))]
    rows.sort(key=lambda row: row.reason != "deadline")  # those that wait go first, beside the others
    with ExitStack() as stack:
        pools = {how: stack.enter_context(ThreadPoolExecutor(many)) for how, many in SIDE_BY_SIDE.items()}
        try:
            yield {row.sentence: pools[type(row.how)].submit(world.play, row) for row in rows}
        finally:
            for pool in pools.values():
                pool.shutdown(wait=False, cancel_futures=True)


@pytest.fixture
def alone(world: World) -> Iterator[World]:
    """The services, of which nothing is left by earlier tests, mended and looked at again afterwards."""
    world.nothing_stays()
    yield world
    world.heal()
    world.nothing_stays()
