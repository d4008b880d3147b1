"""Single operations of the engine fail, hang or lose their answers, while all the others work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.harness.engine_proxy import Fault, Kind, Operation

if TYPE_CHECKING:
    from tests.faults.conftest import Faults

pytestmark = pytest.mark.engine


@dataclass(frozen=True, slots=True)
class Row:
    """What breaks, and the outcome that the visitor's answer has ("" for the model's answer)."""

    sentence: str
    faults: tuple[Fault, ...]
    outcome: str

    @property
    def stays(self) -> bool:
        """Whether nothing is left even while it stays broken: one thing that fails, and is not waited for."""
        return len(self.faults) == 1 and self.outcome != "timeout"


def row(sentence: str, outcome: str, *faults: Fault) -> Row:
    return Row(sentence, faults, outcome)


CREATE, ATTACH, START = Operation.CREATE, Operation.ATTACH, Operation.START
WAIT, KILL, REMOVE = Operation.WAIT, Operation.KILL, Operation.REMOVE
INSPECT, LIST, EVENTS = Operation.INSPECT, Operation.LIST, Operation.EVENTS

BEFORE_THE_ANSWER = (
    row("create is refused with 500", "engine", Fault(CREATE, Kind.STATUS, 500)),
    row("create is refused with 409", "engine", Fault(CREATE, Kind.STATUS, 409)),
    row("create finds no image", "engine", Fault(CREATE, Kind.STATUS, 404)),
    row("create is answered with something that is no JSON", "engine", Fault(CREATE, Kind.NONSENSE)),
    row("create is not answered", "timeout", Fault(CREATE, Kind.HANG)),
    row("create has its connection closed", "engine", Fault(CREATE, Kind.CLOSE)),
    row("create is done and its answer lost", "engine", Fault(CREATE, Kind.LOSE)),
    row("create is done and never answered", "timeout", Fault(CREATE, Kind.SWALLOW)),
    row("create is slow", "", Fault(CREATE, Kind.DELAY, seconds=0.7)),
    row("attach is slow", "", Fault(ATTACH, Kind.DELAY, seconds=0.7)),
    row("attach is refused with 500", "engine", Fault(ATTACH, Kind.STATUS, 500)),
    row("attach finds no container", "engine", Fault(ATTACH, Kind.STATUS, 404)),
    row("attach is answered with something else", "engine", Fault(ATTACH, Kind.NONSENSE)),
    row("attach is not answered", "timeout", Fault(ATTACH, Kind.HANG)),
    row("attach has its connection closed", "engine", Fault(ATTACH, Kind.CLOSE)),
    row("attach is done and its answer lost", "engine", Fault(ATTACH, Kind.LOSE)),
    row("start is slow", "", Fault(START, Kind.DELAY, seconds=0.7)),
    row("start is refused with 500", "engine", Fault(START, Kind.STATUS, 500)),
    row("start finds no container", "engine", Fault(START, Kind.STATUS, 404)),
    row("start is not answered", "timeout", Fault(START, Kind.HANG)),
    row("start has its connection closed", "engine", Fault(START, Kind.CLOSE)),
    row("start is done and its answer lost", "engine", Fault(START, Kind.LOSE)),
    row("start is done and never answered", "timeout", Fault(START, Kind.SWALLOW)),
    row(
        "create is lost and remove is refused",
        "engine",
        Fault(CREATE, Kind.LOSE),
        Fault(REMOVE, Kind.STATUS, 500),
    ),
    row(
        "start is lost and nothing that ends a container works",
        "engine",
        Fault(START, Kind.LOSE),
        Fault(KILL, Kind.STATUS, 500),
        Fault(REMOVE, Kind.CLOSE),
        Fault(WAIT, Kind.STATUS, 500),
        Fault(LIST, Kind.STATUS, 500),
    ),
)
AFTER_THE_ANSWER = (
    row("wait is slow", "", Fault(WAIT, Kind.DELAY, seconds=0.7)),
    row("wait is refused with 500", "", Fault(WAIT, Kind.STATUS, 500)),
    row("wait is not answered", "", Fault(WAIT, Kind.HANG)),
    row("wait has its connection closed", "", Fault(WAIT, Kind.CLOSE)),
    row("inspect is refused with 500", "", Fault(INSPECT, Kind.STATUS, 500)),
    row("inspect is not answered", "", Fault(INSPECT, Kind.HANG)),
    row("list is refused with 500", "", Fault(LIST, Kind.STATUS, 500)),
    row("list is not answered", "", Fault(LIST, Kind.HANG)),
    row("events are refused with 500", "", Fault(EVENTS, Kind.STATUS, 500)),
    row("events are not answered", "", Fault(EVENTS, Kind.HANG)),
    row("events break off", "", Fault(EVENTS, Kind.BREAK)),
)
AT_THE_END = (
    row("kill is slow", "cancelled", Fault(KILL, Kind.DELAY, seconds=0.7)),
    row("kill is refused with 500", "cancelled", Fault(KILL, Kind.STATUS, 500)),
    row("kill finds no container", "cancelled", Fault(KILL, Kind.STATUS, 404)),
    row("kill conflicts", "cancelled", Fault(KILL, Kind.STATUS, 409)),
    row("kill is not answered", "cancelled", Fault(KILL, Kind.HANG)),
    row("kill has its connection closed", "cancelled", Fault(KILL, Kind.CLOSE)),
    row("kill is done and its answer lost", "cancelled", Fault(KILL, Kind.LOSE)),
    row("remove is slow", "cancelled", Fault(REMOVE, Kind.DELAY, seconds=0.7)),
    row("remove is refused with 500", "cancelled", Fault(REMOVE, Kind.STATUS, 500)),
    row("remove is not answered", "cancelled", Fault(REMOVE, Kind.HANG)),
    row("remove is done and its answer lost", "cancelled", Fault(REMOVE, Kind.LOSE)),
    row("remove is answered and not done", "cancelled", Fault(REMOVE, Kind.NONSENSE)),
)


@pytest.mark.control("ANS-01", "LIFE-01", "WIRE-01")
@pytest.mark.parametrize("row", [*BEFORE_THE_ANSWER, *AFTER_THE_ANSWER], ids=lambda row: row.sentence)
def test_one_answer_and_nothing_left_when(faults: Faults, row: Row) -> None:
    persona = "brief" if row.outcome == "timeout" else "tester"
    receipts = len(faults.services.receipts(persona))
    faults.proxy.breaks(*row.faults)
    reply = faults.ask(persona=persona)
    assert faults.told(reply) == row.outcome
    if row.stays:
        faults.nothing_stays()
    faults.proxy.heal()
    assert faults.receipt(receipts, persona)["cause"] == row.outcome
    faults.nothing_is_left()


@pytest.mark.control("ANS-01", "LIFE-01")
@pytest.mark.parametrize("row", AT_THE_END, ids=lambda row: row.sentence)
def test_a_cancelled_turn_is_told_so_and_leaves_nothing_when(faults: Faults, row: Row) -> None:
    receipts = len(faults.services.receipts())
    faults.proxy.breaks(*row.faults)
    reply = faults.cancelled()
    assert faults.told(reply) == row.outcome
    faults.receipt(receipts)
    assert faults.engine.turns() == [], "it is gone when the visitor's place is free"
    faults.nothing_stays()
    faults.proxy.heal()
    faults.nothing_is_left()
