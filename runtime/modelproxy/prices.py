"""What each model costs, and which one an agent's alias stands for: one table, and the operator's own prices.

Why a model without a price is refused: the daily cap is in dollars, so a model that costs nothing on paper
has no cap at all. The table was taken from the pinned CLI (what `--model ALIAS` sends, and what the CLI
reckons a million tokens cost), and agrees with the provider's published list of November 2026;
tests/contract/test_cli_models.py holds it against the CLI of the turn image.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

CACHE_WRITE: Final = (
    2  # a written token's price ÷ an input token's: the hour's 2, though five minutes cost 1.25
)
CACHE_READ: Final = Decimal("0.1")  # the same for a read token: at most this for every model of the table


@dataclass(frozen=True, slots=True)
class Tokens:
    """What one request used, as the upstream reports it."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0

    @property
    def all_input(self) -> int:
        """Every token the model read, however it was priced."""
        return self.input + self.cache_write + self.cache_read


@dataclass(frozen=True, slots=True)
class Bill:
    """Tokens and what they cost in micro-USD."""

    tokens: Tokens
    micro_usd: int


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars a million tokens; numerically the same as micro-USD a token."""

    input: Decimal
    output: Decimal

    def bill(self, tokens: Tokens) -> Bill:
        """Return what `tokens` cost, rounded up."""
        weighed = tokens.input + CACHE_WRITE * tokens.cache_write + CACHE_READ * tokens.cache_read
        return Bill(tokens, math.ceil(weighed * self.input + tokens.output * self.output))


FREE: Final = Prices(Decimal(0), Decimal(0))
"""The demo model's. No live model has it."""


@dataclass(frozen=True, slots=True)
class Model:
    """One model: the exact id in a request, the alias that the pinned CLI turns into it, and its prices."""

    id: str
    alias: str
    prices: Prices


MODELS: Final = (
    Model("claude-sonnet-5-5", "sonnet", Prices(Decimal(2), Decimal(10))),
    Model("claude-opus-5-5", "opus", Prices(Decimal(4), Decimal(20))),
    # A prompt of up to 100,000 tokens costs a fifth of this. Every one is counted as a longer one.
    Model("claude-haiku-5-5", "haiku", Prices(Decimal("0.5"), Decimal("2.5"))),
    Model("claude-sonnet-4-5", "", Prices(Decimal(3), Decimal(15))),
)
"""Every model that was recorded from the pinned CLI (tests/unit/modelproxy/recorded)."""

ALIASES: Final[Mapping[str, str]] = MappingProxyType({one.alias: one.id for one in MODELS if one.alias})


TABLE: Final[Mapping[str, Prices]] = MappingProxyType({one.id: one.prices for one in MODELS})


@dataclass(frozen=True, slots=True)
class PriceList:
    """The prices in force: the operator's own by id, then the table's, then the operator's for any other id.

    `demo` makes every model free, since none is asked.
    """

    own: Mapping[str, Prices]
    other: Prices | None = None
    demo: bool = False

    def of(self, model: str) -> Prices | None:
        """Return the prices of an exact id; None when nobody said what it costs."""
        if self.demo:
            return FREE
        return self.own.get(model) or TABLE.get(model) or self.other


def exact(model: str) -> str:
    """Return the one id that requests of an agent may name; a name that is no alias stands for itself."""
    return ALIASES.get(model, model)
