from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.spawner.ceilings import Ceilings


@pytest.mark.control("LOAD-04")
def test_no_more_turns_run_than_may() -> None:
    ceilings = Ceilings(running=2, starts_per_minute=100, memory_bytes=100)
    assert ceilings.take(0, 1).allow
    assert ceilings.take(0, 1).allow
    refused = ceilings.take(0, 1)
    assert (refused.allow, refused.control) == (False, "LOAD-04")
    ceilings.give_back(1)
    assert ceilings.take(0, 1).allow


@pytest.mark.control("LOAD-05")
def test_starts_within_a_minute_are_counted_and_the_wait_is_told() -> None:
    ceilings = Ceilings(running=100, starts_per_minute=2, memory_bytes=100)
    assert ceilings.take(0, 1).allow
    assert ceilings.take(10, 1).allow
    refused = ceilings.take(20, 1)
    assert (refused.control, refused.retry_after_seconds) == ("LOAD-05", 40)
    assert ceilings.take(60, 1).allow


@pytest.mark.control("LOAD-06")
def test_memory_is_reserved_whole() -> None:
    ceilings = Ceilings(running=100, starts_per_minute=100, memory_bytes=10)
    assert ceilings.take(0, 6).allow
    assert ceilings.take(0, 6).control == "LOAD-06"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 30))))
def test_no_order_of_events_breaks_a_ceiling(steps: list[tuple[bool, int]]) -> None:
    ceilings = Ceilings(running=3, starts_per_minute=5, memory_bytes=25)
    now, held, starts = 0.0, 0, []
    for take, after in steps:
        now += after
        if take and ceilings.take(now, 10).allow:
            held += 1
            starts.append(now)
        elif not take and held:
            held -= 1
            ceilings.give_back(10)
        assert ceilings.active == held <= 2
        assert len([start for start in starts if start > now - 60]) <= 5
