from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.modelproxy.ledger import KEEP_DAYS, Ledger, Limits, utc_day
from runtime.modelproxy.prices import Bill, Prices, Tokens

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.control("MODEL-04")

NOW = 1_790_000_000.0
LIMITS = Limits(requests=3, input_tokens=10_000, output_tokens=1000)
PRICES = Prices(Decimal(3), Decimal(15))


def bill(**tokens: int) -> Bill:
    return PRICES.bill(Tokens(**tokens))


WORST = bill(input=2000, output=1000)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    ledger = Ledger(tmp_path / "ledger.sqlite3", 1_000_000)
    yield ledger
    ledger.close()


def test_a_reservation_counts_until_it_is_settled(ledger: Ledger) -> None:
    reserved = ledger.reserve("t", "ada", WORST, LIMITS, NOW)
    assert ledger.day_micro_usd("ada", utc_day(NOW)) == 2000 * 3 + 1000 * 15
    ledger.settle(reserved.id, bill(input=100, output=10))
    assert ledger.day_micro_usd("ada", utc_day(NOW)) == 450
    assert (ledger.spent("t").input_tokens, ledger.spent("t").output_tokens) == (100, 10)


def test_a_released_reservation_costs_nothing_but_is_a_request(ledger: Ledger) -> None:
    ledger.release(ledger.reserve("t", "ada", WORST, LIMITS, NOW).id)
    assert (ledger.spent("t").requests, ledger.spent("t").output_tokens) == (1, 0)


def test_a_reservation_is_settled_once(ledger: Ledger) -> None:
    reserved = ledger.reserve("t", "ada", WORST, LIMITS, NOW)
    ledger.settle(reserved.id, bill(input=100))
    ledger.release(reserved.id)
    assert ledger.spent("t").input_tokens == 100


def test_requests_input_and_output_of_a_turn_are_each_finite(ledger: Ledger) -> None:
    assert ledger.reserve("a", "ada", bill(input=10_001), LIMITS, NOW).decision.reason == (
        "turn's input tokens spent"
    )
    assert ledger.reserve("a", "ada", bill(output=3001), LIMITS, NOW).decision.reason == (
        "turn's output tokens spent"
    )
    for _ in range(3):
        assert ledger.reserve("b", "ada", WORST, LIMITS, NOW).decision.allow
    refused = ledger.reserve("b", "ada", bill(), LIMITS, NOW).decision
    assert (refused.reason, refused.control) == ("turn's requests spent", "MODEL-04")


def test_the_day_is_finite_for_each_agent_alone_and_begins_anew(ledger: Ledger) -> None:
    big = Limits(1000, 10**9, 10**6)
    dear = bill(output=60_000)
    assert ledger.reserve("a", "ada", dear, big, NOW).decision.allow
    refused = ledger.reserve("b", "ada", dear, big, NOW).decision
    assert (refused.reason, refused.control) == ("agent's daily budget spent", "MODEL-04")
    assert ledger.reserve("c", "bob", dear, big, NOW).decision.allow
    assert ledger.reserve("d", "ada", dear, big, NOW + 86_400).decision.allow
    assert ledger.days(utc_day(NOW)) == {"ada": 900_000, "bob": 900_000}


def test_reservations_survive_a_restart_without_a_close(tmp_path: Path) -> None:
    first = Ledger(tmp_path / "l", 1_000_000)
    first.reserve("t", "ada", WORST, LIMITS, NOW)
    second = Ledger(tmp_path / "l", 1_000_000)
    assert second.spent("t").output_tokens == 1000
    first.close()
    second.close()


def test_old_days_are_forgotten(ledger: Ledger) -> None:
    ledger.reserve("old", "ada", WORST, LIMITS, NOW)
    ledger.reserve("new", "ada", WORST, LIMITS, NOW + (KEEP_DAYS + 1) * 86_400)
    assert (ledger.spent("old").requests, ledger.spent("new").requests) == (0, 1)


def test_having_run_live_is_remembered(ledger: Ledger) -> None:
    assert not ledger.has_run_live()
    ledger.mark_live()
    ledger.mark_live()
    assert ledger.has_run_live()


@given(st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 1000), st.sampled_from("ksr")), max_size=12))
def test_whatever_happens_neither_turn_nor_day_goes_over(steps: list[tuple[int, int, str]]) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(Path(folder) / "l", 40_000)
        for given_input, given_output, end in steps:
            reserved = ledger.reserve("t", "ada", bill(input=given_input, output=given_output), LIMITS, NOW)
            if reserved.decision.allow and end == "s":
                ledger.settle(reserved.id, bill(input=given_input // 2, output=given_output // 2))
            elif reserved.decision.allow and end == "r":
                ledger.release(reserved.id)
        spent = ledger.spent("t")
        assert spent.requests <= 3
        assert spent.input_tokens <= 10_000
        assert spent.output_tokens <= 3000
        assert ledger.day_micro_usd("ada", utc_day(NOW)) <= 40_000
        ledger.close()
