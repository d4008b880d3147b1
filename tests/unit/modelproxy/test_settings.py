from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from runtime import layout
from runtime.errors import ConfigError
from runtime.modelproxy.prices import Prices
from runtime.modelproxy.settings import Settings, read_settings, settings_page

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "modelproxy-settings.md"


def test_the_defaults_are_finite_and_where_the_layout_says() -> None:
    settings = read_settings({"MODEL_DAILY_USD": "", "PATH": "/bin"})
    assert settings.daily_usd == Decimal(5)
    assert settings.key_file == layout.MODEL_KEY_FILE
    assert settings.upstream_url == "https://api.anthropic.com"
    assert not settings.upstream_is_clear_text
    assert not settings.proxy_from_environment


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MODEL_UPSTREAM_URL", "ftp://x"),
        ("MODEL_UPSTREAM_URL", "https://user:secret-word@x"),
        ("MODEL_UPSTREAM_URL", "https://x/?key=secret-word"),
        ("MODEL_UPSTREAM_URL", "https://x/?"),
        ("MODEL_UPSTREAM_URL", "https://x/#f"),
        ("MODEL_UPSTREAM_URL", "https://"),
        ("MODEL_UPSTREAM_URL", "https://x:99999"),
        ("MODEL_UPSTREAM_URL", "https://x y"),
        ("MODEL_UPSTREAM_URL", "secret-word"),
        ("MODEL_AUTH_HEADER", "cookie"),
        ("MODEL", "live"),
        ("MODEL_DAILY_USD", "-1"),
        ("MODEL_DAILY_USD", "nan"),
        ("MODEL_DAILY_USD", "Infinity"),
        ("MODEL_PRICE_INPUT_USD_PER_MTOK", "free"),
        ("MODEL_PRICE_INPUT_USD_PER_MTOK", "0"),
        ("MODEL_PRICE_INPUT_USD_PER_MTOK", "3"),
        ("MODEL_PRICE_OUTPUT_USD_PER_MTOK", "15"),
        ("MODEL_PRICES", "secret-word"),
        ("MODEL_PRICES", "secret-word=1"),
        ("MODEL_PRICES", "secret-word=0/1"),
        ("MODEL_PRICES", "secret-word=1/0"),
        ("MODEL_PRICES", "secret-word=-1/1"),
        ("MODEL_PRICES", "secret-word=1/NaN"),
        ("MODEL_PRICES", "secret-word=1/Infinity"),
        ("MODEL_PRICES", "secret-word=1/1e9"),
        ("MODEL_PRICES", "secret-word=1/2/3"),
        ("MODEL_PRICES", "secret-word=1/2,"),
        ("MODEL_PRICES", "secret-word=1/2,secret-word=1/2"),
        ("MODEL_PRICES", "opus=1/2"),
        ("MODEL_PRICES", "secret word=1/2"),
    ],
)
def test_a_wrong_setting_is_named_without_its_value(name: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings({name: value})
    assert name in str(caught.value)
    assert "secret-word" not in str(caught.value)


def test_every_mistake_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings({"MODEL_AUTH_HEADER": "x", "MODEL_DAILY_USD": "x"})
    assert len(caught.value.problems) == 2


def test_clear_text_is_known_and_a_path_is_kept() -> None:
    settings = read_settings({"MODEL_UPSTREAM_URL": "http://gateway:8080/anthropic/"})
    assert settings.upstream_is_clear_text
    assert settings.upstream_url == "http://gateway:8080/anthropic"


def test_every_setting_says_what_it_is_for() -> None:
    assert all(field.description and field.alias for field in Settings.model_fields.values())


def test_prices_are_taken_by_exact_id_then_from_the_table_then_from_the_fallback() -> None:
    dollars = {"MODEL_PRICES": "claude-opus-5-5=5/25, local/model:1@x=0.25/0.5"}
    own = read_settings(dollars).price_list(demo=False)
    assert own.of("claude-opus-5-5") == Prices(Decimal(5), Decimal(25))
    assert own.of("local/model:1@x") == Prices(Decimal("0.25"), Decimal("0.5"))
    assert own.of("claude-sonnet-5-5") == Prices(Decimal(2), Decimal(10))
    assert own.of("claude-opus-9") is None
    pair = {"MODEL_PRICE_INPUT_USD_PER_MTOK": "9", "MODEL_PRICE_OUTPUT_USD_PER_MTOK": "10"}
    both = read_settings({**dollars, **pair}).price_list(demo=False)
    assert both.of("claude-opus-9") == Prices(Decimal(9), Decimal(10))
    assert both.of("claude-sonnet-5-5") == Prices(Decimal(2), Decimal(10))


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text() == settings_page()


@pytest.mark.parametrize(
    ("name", "value", "mend"),
    [
        ("MODEL_DAILY_USD", "5,00", "write 5.00; see"),
        ("MODEL_DAILY_USD", "five", "write it like 5.00, or leave it unset; see"),
        ("MODEL_PRICE_INPUT_USD_PER_MTOK", "0,3", "write 0.3; see"),
        ("MODEL_PRICES", "x", "write it like my-model=0.30/1.20, or leave it unset; see"),
        ("MODEL_UPSTREAM_URL", "sk-ant-test-0000,00", "see"),
    ],
)
def test_a_wrong_setting_is_told_with_its_mend_and_the_page(name: str, value: str, mend: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_settings({name: value})
    (problem,) = (one for one in caught.value.problems if one.path == name)
    assert problem.mend == f"{mend} docs/reference/modelproxy-settings.md"
    assert PAGE.name in problem.mend
