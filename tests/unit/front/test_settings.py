"""The front's settings: one table, every wrong value at once, and a page that is the table."""

from __future__ import annotations

import ipaddress
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runtime.errors import UsageError
from runtime.front import handler, tasks
from runtime.front.admit import WAITING_MAX
from runtime.front.settings import (
    FORWARDED,
    NAMES,
    NUMBERS,
    Forwarders,
    FrontSettings,
    read_settings,
    settings_page,
)


class Named(NamedTuple):
    networks: tuple[str, ...] = ()
    local: bool = False


PAGE = Path(__file__).parents[3] / "docs" / "reference" / "front-settings.md"


def test_defaults_hold_when_nothing_or_emptiness_is_set() -> None:
    assert read_settings({}) == read_settings(dict.fromkeys(NAMES, " ")) == FrontSettings()


def test_the_table_has_a_row_for_each_field_and_its_default_within_its_limits() -> None:
    named = {one.field for one in NUMBERS} | {"forwarded_from"}
    assert named == {one.name for one in fields(FrontSettings)}
    assert all(one.low <= one.default <= one.high for one in NUMBERS)


def test_the_defaults_are_those_of_the_parts() -> None:
    settings = FrontSettings()
    assert (settings.max_readers, settings.max_streams) == (handler.READERS_MAX, handler.STREAMS_MAX)
    assert (settings.max_tasks, settings.store_bytes) == (tasks.MAX_TASKS, tasks.MAX_BYTES)
    assert settings.max_waiting == WAITING_MAX


@pytest.mark.parametrize("one", NUMBERS, ids=lambda one: one.name)
def test_a_number_is_taken_at_its_limits_and_refused_beyond(one: Any) -> None:
    for value in (one.low, one.high):
        assert getattr(read_settings({one.name: f" {value} "}), one.field) == value
    for wrong in (str(one.high + 1), str(one.low - 1), "1e3", "many", "\u0663", "9" * 4000, "1.5"):
        with pytest.raises(UsageError, match=one.name) as raised:
            read_settings({one.name: wrong})
        assert f"{one.low} to {one.high}" in str(raised.value)


def test_every_wrong_value_is_told_at_once_and_none_is_shown() -> None:
    with pytest.raises(UsageError) as raised:
        read_settings({"FRONT_MAX_PARTS": "CANARY", "FRONT_MAX_TASKS": "0", FORWARDED: "CANARY"})
    lines = raised.value.report().splitlines()
    assert [line.split(" is not")[0] for line in lines] == [
        "gatehouse: usage: FRONT_MAX_PARTS",
        "gatehouse: usage: FRONT_MAX_TASKS",
        "gatehouse: usage: FRONT_FORWARDED_FROM",
    ]
    assert all("docs/reference/front-settings.md" in line for line in lines)
    assert "CANARY" not in raised.value.report()
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", Named()),
        ("local", Named(local=True)),
        ("10.0.0.1, 2001:db8::/32 ,local", Named(("10.0.0.1/32", "2001:db8::/32"), local=True)),
    ],
)
def test_proxies_are_addresses_networks_and_local(given: str, expected: Named) -> None:
    networks = tuple(ipaddress.ip_network(one) for one in expected.networks)
    assert read_settings({FORWARDED: given}).forwarded_from == Forwarders(networks, expected.local)


@pytest.mark.parametrize("given", ["0.0.0.0/0", "::/0", "10.0.0.1/8", "proxy.example", "LOCAL", "10.0.0.1;x"])
def test_everybody_names_and_half_networks_are_no_proxies(given: str) -> None:
    with pytest.raises(UsageError, match=FORWARDED):
        read_settings({FORWARDED: given})


def test_the_page_is_the_table() -> None:
    assert PAGE.read_text() == settings_page()
