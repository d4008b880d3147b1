"""Names of visitors and conversations: stable within a day and a process, and forged by no header."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runtime.front.identity import Identity, canonical

TUNNEL = Path("/run/gatehouse/front/tunnel.sock")
HEADERS = [(b"cf-connecting-ip", b"203.0.113.9"), (b"x-forwarded-for", b"198.51.100.1")]


def scope(server: str, client: Any = None) -> dict[str, Any]:
    return {"type": "http", "server": (server, None), "client": client, "headers": HEADERS}


@pytest.mark.control("ADDR-01")
def test_a_forwarded_address_is_believed_on_the_tunnel_s_socket_only() -> None:
    identity = Identity(tunnel=TUNNEL)
    assert identity.address(scope(str(TUNNEL))) == "203.0.113.9"
    assert identity.address(scope("/run/gatehouse/front/local.sock")) == "local"
    assert identity.address(scope("127.0.0.1", ("192.0.2.1", 5))) == "192.0.2.1"


def test_a_tunnel_without_the_header_is_unknown() -> None:
    bare: dict[str, Any] = {"type": "http", "server": (str(TUNNEL), None), "client": None, "headers": []}
    assert Identity(tunnel=TUNNEL).address(bare) == "unknown"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("203.0.113.9", "203.0.113.9"),
        (" 203.0.113.9 ", "203.0.113.9"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("2001:db8:1:2::ffff", "2001:db8:1:2::/64"),
        ("::ffff:203.0.113.9", "203.0.113.9"),
        ("203.0.113.9, 1.1.1.1", "unknown"),
        ("evil\n", "unknown"),
        ("", "unknown"),
    ],
)
def test_addresses_have_one_spelling(given: str, expected: str) -> None:
    assert canonical(given) == expected


def test_names_are_stable_differ_and_change_with_the_day_and_the_process() -> None:
    day = "2026-01-01"
    identity = Identity(today=lambda: day)
    first = identity.visitor("203.0.113.9")
    assert first == identity.visitor("203.0.113.9")
    assert first != identity.visitor("203.0.113.8")
    assert first != Identity(today=lambda: day).visitor("203.0.113.9")
    day = "2026-01-02"
    assert first != identity.visitor("203.0.113.9")
    assert identity.context("a") == identity.context("a") != identity.context("b")
    assert len(first) == 32
    assert set(first) <= set("0123456789abcdef")
