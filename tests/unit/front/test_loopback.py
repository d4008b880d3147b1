"""What counts as this very machine."""

from __future__ import annotations

import pytest

from runtime.front.loopback import host_of, is_loopback


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost", "LocalHost"])
def test_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "198.51.100.1",
        "::",
        "128.0.0.1",
        "10.0.0.1",
        "127.0.0.1.example",
        "localhost.example",
        "2130706433",
        "0x7f.0.0.1",
        "localhost.",
    ],
)
def test_not_this_machine_for_certain(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize(
    ("header", "host"),
    [
        ("127.0.0.1:8011", "127.0.0.1"),
        ("[::1]:8011", "::1"),
        ("[::1]", "::1"),
        ("a.b", "a.b"),
        ("", ""),
        ("[::1]evil.com", ""),
        ("[::1]:x", ""),
        ("127.0.0.1:8011:9", ""),
        ("a@127.0.0.1", ""),
    ],
)
def test_the_host_of_a_header(header: str, host: str) -> None:
    assert host_of(header) == host
