"""Visitors who hang up or cancel while their turn runs, and while the engine fails too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx2 as httpx
import pytest

from tests.faults.conftest import HANG
from tests.harness.engine_proxy import Fault, Kind, Operation
from tests.harness.processes import terminal

if TYPE_CHECKING:
    from tests.faults.conftest import Faults

pytestmark = pytest.mark.engine


@pytest.mark.control("LIFE-01")
def test_a_visitor_who_hangs_up_on_a_stream_leaves_nothing(faults: Faults) -> None:
    marker = faults.services.script(HANG)
    receipts = len(faults.services.receipts("brief"))
    with faults.services.stream(f"Hello {marker}", "brief") as events:
        next(events)
    faults.nothing_stays()
    assert faults.receipt(receipts, "brief")["cause"] == "abandoned"
    faults.nothing_is_left()


@pytest.mark.control("LIFE-01")
def test_a_visitor_who_hangs_up_on_a_blocking_call_leaves_nothing(faults: Faults) -> None:
    marker = faults.services.script(HANG)
    receipts = len(faults.services.receipts("brief"))
    with pytest.raises(httpx.ReadTimeout):
        faults.services.ask(f"Hello {marker}", "brief", seconds=0.5)
    faults.nothing_stays()
    assert faults.receipt(receipts, "brief")["cause"] == "abandoned"
    faults.nothing_is_left()


@pytest.mark.parametrize("step", [Operation.CREATE, Operation.ATTACH, Operation.START])
def test_a_visitor_who_hangs_up_on_an_engine_that_hangs_leaves_nothing(
    faults: Faults, step: Operation
) -> None:
    faults.proxy.breaks(Fault(step, Kind.HANG))
    with pytest.raises(httpx.ReadTimeout):
        faults.services.ask("Hello", "brief", seconds=0.5)
    faults.proxy.heal()
    faults.nothing_is_left()


def test_a_visitor_who_cancels_on_an_engine_that_hangs_is_told_so(faults: Faults) -> None:
    with faults.proxy.at(Operation.CREATE) as gate, faults.services.stream("Hello") as events:
        first = next(events)
        assert gate.reached.wait(timeout=10)
        faults.engine.freeze()
        gate.opened.set()
        reply = faults.services.cancel(first["id"])
        assert faults.told(terminal([first, *events])) == "cancelled"
    assert reply["result"]["status"]["state"] == "canceled"
    faults.engine.thaw()
    faults.nothing_is_left()


def test_a_visitor_who_hangs_up_on_a_frozen_engine_leaves_nothing(faults: Faults) -> None:
    with faults.proxy.at(Operation.START) as gate, faults.services.stream("Hello") as events:
        next(events)
        assert gate.reached.wait(timeout=10)
        faults.engine.freeze()
    faults.engine.thaw()
    faults.nothing_is_left()
