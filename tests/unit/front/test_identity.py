"""Names of visitors and conversations: stable within a day and a process, and forged by no header."""

from __future__ import annotations

import ipaddress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.front.identity import Identity, canonical, parsed
from runtime.front.settings import Forwarders

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


LOCAL = Path("/run/gatehouse/front/local.sock")
PROXIES = Forwarders(tuple(ipaddress.ip_network(one) for one in ("192.0.2.0/24", "2001:db8:ffff::/48")))
INSIDE = st.sampled_from(["192.0.2.1", "192.0.2.200:443", "2001:db8:ffff::7", "[2001:db8:ffff::7]:8443"])
OUTSIDE = st.sampled_from(["203.0.113.9", "203.0.113.9:1234", "2001:db8:1::5", "[2001:db8:1::5]:99", "::1"])
NOISE = st.text(alphabet=st.characters(codec="latin-1"), max_size=60)


def through(
    *chains: str, client: str | None = "192.0.2.1", server: Path = LOCAL, forwarders: Forwarders = PROXIES
) -> str:
    identity = Identity(tunnel=TUNNEL, local=LOCAL, forwarded_from=forwarders)
    headers = [(b"x-forwarded-for", chain.encode("latin-1")) for chain in chains]
    peer = (client, 5) if client else None
    scope = {"type": "http", "server": (str(server), None), "client": peer, "headers": headers}
    return identity.address(scope)


@pytest.mark.control("ADDR-01")
@given(NOISE, OUTSIDE)
def test_nobody_who_is_no_proxy_says_who_they_are(chain: str, peer: str) -> None:
    address = str(parsed(peer))
    assert through(chain, client=address) == canonical(address)
    assert through(chain, client=None) == "local"
    assert through(chain, client=address, forwarders=Forwarders()) == canonical(address)
    assert through(chain, client=None, server=TUNNEL) == "unknown"


@pytest.mark.control("ADDR-01")
@given(st.lists(st.one_of(NOISE, INSIDE, OUTSIDE), max_size=4), OUTSIDE, st.lists(INSIDE, max_size=3))
def test_what_a_visitor_writes_before_the_proxies_is_no_address_of_theirs(
    forged: list[str], visitor: str, proxies: list[str]
) -> None:
    chain = ", ".join([*(one.replace(",", " ") for one in forged), visitor, *proxies])
    assert through(chain) == canonical(visitor)
    assert through(chain, client=None, forwarders=Forwarders(PROXIES.networks, local=True)) == canonical(
        visitor
    )


@given(st.lists(NOISE, max_size=3))
def test_any_header_gives_an_address_or_unknown_and_never_raises(chains: list[str]) -> None:
    found = through(*chains)
    assert found == "unknown" or str(ipaddress.ip_network(found)).startswith(found)


@pytest.mark.parametrize(
    ("chains", "expected"),
    [
        ((), "192.0.2.1"),
        (("",), "192.0.2.1"),
        (("203.0.113.9",), "203.0.113.9"),
        (("198.51.100.1, 203.0.113.9",), "203.0.113.9"),
        (("198.51.100.1", "203.0.113.9"), "203.0.113.9"),
        (("203.0.113.9, 192.0.2.7", "192.0.2.8"), "203.0.113.9"),
        (("192.0.2.7, 192.0.2.8",), "192.0.2.7"),
        (("203.0.113.9, unknown",), "unknown"),
        (("203.0.113.9, ",), "unknown"),
        (("203.0.113.9,_hidden, 192.0.2.7",), "unknown"),
        (("::ffff:203.0.113.9",), "203.0.113.9"),
        (("[2001:db8:1:2::5]:443",), "2001:db8:1:2::/64"),
        (("203.0.113.9:99999999",), "unknown"),
    ],
)
def test_the_rightmost_address_that_is_no_proxy_counts(chains: tuple[str, ...], expected: str) -> None:
    assert through(*chains) == expected


def test_the_published_port_s_proxy_is_believed_when_the_operator_says_so() -> None:
    believed = Forwarders(local=True)
    assert through("203.0.113.9", client=None, forwarders=believed) == "203.0.113.9"
    assert through(client=None, forwarders=believed) == "local"
    assert through("203.0.113.9", client="198.51.100.1", forwarders=believed) == "198.51.100.1"
