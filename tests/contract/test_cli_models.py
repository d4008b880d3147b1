"""What an alias becomes in the pinned CLI, and that our price of it is not below what the CLI reckons."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from runtime.modelproxy.prices import MODELS, Model, Tokens

if TYPE_CHECKING:
    from tests.contract.conftest import Cli

pytestmark = [pytest.mark.engine, pytest.mark.control("MODEL-04")]

USED = Tokens(input=200_000, output=100_000, cache_write=300_000, cache_read=400_000)
USAGE = {
    "input_tokens": USED.input,
    "output_tokens": USED.output,
    "cache_creation_input_tokens": USED.cache_write,
    "cache_read_input_tokens": USED.cache_read,
}


@pytest.mark.parametrize("model", MODELS, ids=[one.id for one in MODELS])
def test_each_model_of_the_table_is_asked_for_by_its_exact_id_and_costs_no_less_than_the_cli_says(
    cli: Cli, model: Model
) -> None:
    cli.script({"text": "Said.", "usage": USAGE})
    ran = cli.run("hello", agent=dataclasses.replace(cli.agent(), model=model.alias or model.id))
    assert {body["model"] for body in ran.bodies} == {model.id}
    reckoned = ran.result["modelUsage"][model.id]["costUSD"]
    assert 0 < reckoned * 1_000_000 <= model.prices.bill(USED).micro_usd
