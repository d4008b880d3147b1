from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.modelproxy.prices import ALIASES, FREE, MODELS, TABLE, PriceList, Prices, Tokens, exact

DOCS = Path(__file__).parents[3] / "docs"

pytestmark = pytest.mark.control("MODEL-04")


def test_the_table_holds_the_models_that_were_recorded_and_no_other(recordings: dict[str, Any]) -> None:
    recorded = {request["body"]["model"] for request in recordings.values()}
    assert recorded == TABLE.keys()
    assert len(TABLE) == len(MODELS)


def test_the_pages_say_what_the_table_says() -> None:
    money = (DOCS / "explanation" / "money.md").read_text()
    grammar = (DOCS / "reference" / "model-grammar.md").read_text()
    for one in MODELS:
        name = one.alias or one.id
        assert f"| `{name}` | `{one.id}` | {one.prices.input} | {one.prices.output} |" in money
        assert not one.alias or f"`{one.alias}` → `{one.id}`" in grammar


def test_an_alias_stands_for_one_id_and_any_other_name_for_itself() -> None:
    assert ALIASES == {
        "sonnet": "claude-sonnet-5-5",
        "opus": "claude-opus-5-5",
        "haiku": "claude-haiku-5-5",
    }
    assert [exact(name) for name in ("opus", "claude-opus-5-5", "best")] == [
        "claude-opus-5-5",
        "claude-opus-5-5",
        "best",
    ]


def test_opus_costs_more_than_sonnet_and_no_live_model_is_free() -> None:
    sonnet, opus = TABLE["claude-sonnet-5-5"], TABLE["claude-opus-5-5"]
    assert opus.input > sonnet.input
    assert opus.output > sonnet.output
    assert all(prices.input > 0 and prices.output > 0 for prices in TABLE.values())


def test_a_model_of_which_nobody_said_what_it_costs_has_no_price_save_in_the_demo() -> None:
    assert PriceList({}).of("claude-opus-9") is None
    assert PriceList({}, demo=True).of("claude-opus-9") == FREE


def test_cached_tokens_are_priced_by_their_kind_and_rounded_up() -> None:
    prices = Prices(Decimal(3), Decimal(15))
    assert prices.bill(Tokens(cache_write=100)).micro_usd == 600
    assert prices.bill(Tokens(cache_read=100)).micro_usd == 30
    assert prices.bill(Tokens(cache_read=1)).micro_usd == 1


@given(st.sampled_from(MODELS), st.lists(st.integers(0, 200_000), min_size=4, max_size=4))
def test_what_is_settled_is_never_more_than_what_was_reserved_for_as_many_tokens(
    model: Any, counts: list[int]
) -> None:
    fresh, written, read, output = counts
    used = Tokens(input=fresh, output=output, cache_write=written, cache_read=read)
    worst = Tokens(cache_write=fresh + written + read, output=output)
    assert model.prices.bill(used).micro_usd <= model.prices.bill(worst).micro_usd
