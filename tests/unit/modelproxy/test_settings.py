from __future__ import annotations

from decimal import Decimal

import pytest

from runtime import layout
from runtime.errors import ConfigError
from runtime.modelproxy.settings import Settings, read_settings


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
