"""The arithmetic of the figures: quantiles, ratios, and whether a value is what is wanted. Pure."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Bound(StrEnum):
    """Which way a figure is wanted."""

    AT_LEAST = "at least"
    AT_MOST = "at most"
    BELOW = "below"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a figure should be, as people read it and as a program compares it."""

    bound: Bound
    value: float
    unit: str = ""

    def met(self, measured: float) -> bool:
        if self.bound is Bound.AT_LEAST:
            return measured >= self.value
        if self.bound is Bound.BELOW:
            return measured < self.value
        return measured <= self.value

    def __str__(self) -> str:
        return f"{self.bound} {self.value:g}{f' {self.unit}' if self.unit else ''}"


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a figure: a value, what is wanted of it (if anything is), and how it came about.

    `said` is for people, `parts` the same for a program.
    """

    name: str
    value: float
    unit: str = ""
    digits: int = 2
    wanted: Wanted | None = None
    said: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)

    @property
    def missed(self) -> bool:
        """Whether something is wanted of the value that it is not."""
        return self.wanted is not None and not self.wanted.met(self.value)

    def line(self) -> str:
        """Return the row as one line for people."""
        unit = f" {self.unit}" if self.unit else ""
        text = f"{self.name}: {self.value:.{self.digits}f}{unit}"
        if self.said:
            text += f" ({self.said})"
        if self.wanted is not None:
            text += f"; wanted: {self.wanted}{' -- NOT MET' if self.missed else ''}"
        return text

    def as_json(self) -> dict[str, Any]:
        """Return the row for a program."""
        row: dict[str, Any] = {"name": self.name, "value": self.value, "unit": self.unit}
        row["parts"] = dict(self.parts)
        if self.wanted is not None:
            row |= {"wanted": str(self.wanted), "met": not self.missed}
        return row


def quantile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed (nearest rank)."""
    if not values or not 0 < share <= 1:
        raise ValueError("a quantile needs values, and a share above 0 and at most 1")
    ordered = sorted(values)
    # In thousandths: 0.07 * 100 is 7.000000000000001, whose ceiling is one rank too many.
    rank = -(-round(share * 1000) * len(ordered) // 1000)
    return ordered[max(1, rank) - 1]


def median_ratio(ours: Sequence[float], theirs: Sequence[float]) -> float:
    """Return the median of the ratios of values that were measured in pairs, one after the other.

    Why not the ratio of medians: a machine that slows down in mid-run slows down both halves of a pair.
    """
    return statistics.median(one / other for one, other in zip(ours, theirs, strict=True))


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the median and the 95th percentile."""
    return {"p50": statistics.median(values), "p95": quantile(values, 0.95)}
