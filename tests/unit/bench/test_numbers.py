"""The arithmetic of the figures."""

from __future__ import annotations

import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.numbers import Bound, Row, Wanted, median_ratio, percentiles, quantile


@pytest.mark.parametrize(
    ("share", "expected"), [(0.01, 1), (0.5, 50), (0.95, 95), (0.99, 99), (0.07, 7), (1, 100)]
)
def test_a_quantile_of_a_hundred_values_is_the_value_of_its_rank(share: float, expected: float) -> None:
    assert quantile([float(n) for n in range(100, 0, -1)], share) == expected


def test_p99_of_few_values_is_the_largest() -> None:
    assert quantile([3.0, 1.0, 2.0], 0.99) == 3.0


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=200), st.integers(1, 1000))
def test_a_quantile_is_the_smallest_value_that_its_share_does_not_exceed(
    values: list[float], thousandths: int
) -> None:
    found = quantile(values, thousandths / 1000)
    assert found in values
    assert sum(value <= found for value in values) * 1000 >= thousandths * len(values)
    assert sum(value < found for value in values) * 1000 < thousandths * len(values)


@pytest.mark.parametrize(("values", "share"), [([], 0.5), ([1.0], 0), ([1.0], 1.5)])
def test_a_quantile_of_nothing_or_of_no_share_is_refused(values: list[float], share: float) -> None:
    with pytest.raises(ValueError, match="quantile"):
        quantile(values, share)


def test_a_ratio_is_of_pairs_so_that_a_machine_that_slows_down_does_not_change_it() -> None:
    theirs = [100.0, 50.0, 10.0]
    ours = [80.0, 40.0, 8.0]
    assert median_ratio(ours, theirs) == pytest.approx(0.8)


def test_one_pair_out_of_line_does_not_move_the_ratio() -> None:
    assert median_ratio([1.0, 1.0, 99.0], [1.0, 1.0, 1.0]) == 1.0


def test_pairs_that_lack_a_half_are_refused() -> None:
    with pytest.raises(ValueError, match="longer"):
        median_ratio([1.0], [1.0, 2.0])


def test_percentiles_are_the_median_and_the_95th() -> None:
    values = [float(n) for n in range(1, 21)]
    assert percentiles(values) == {"p50": statistics.median(values), "p95": 19.0}


@pytest.mark.parametrize(
    ("bound", "met"),
    [
        (Bound.AT_LEAST, [False, True, True]),
        (Bound.AT_MOST, [True, True, False]),
        (Bound.BELOW, [True, False, False]),
    ],
)
def test_a_bound_holds_below_at_and_above_its_value_as_its_name_says(bound: Bound, met: list[bool]) -> None:
    assert [Wanted(bound, 1.0).met(value) for value in (0.9, 1.0, 1.1)] == met


def test_a_row_says_what_was_wanted_and_that_it_was_not_met() -> None:
    row = Row("a figure", 0.7, wanted=Wanted(Bound.AT_LEAST, 0.8), said="7 ÷ 10")
    assert row.line() == "a figure: 0.70 (7 ÷ 10); wanted: at least 0.8 -- NOT MET"
    assert row.as_json() == {
        "name": "a figure",
        "value": 0.7,
        "unit": "",
        "parts": {},
        "wanted": "at least 0.8",
        "met": False,
    }


def test_a_row_of_which_nothing_is_wanted_says_nothing_of_it() -> None:
    row = Row("memory", 12.4, "MB", digits=0)
    assert row.line() == "memory: 12 MB"
    assert "wanted" not in row.as_json()
