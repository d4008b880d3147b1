"""The mirror of a host is read from its own apt sources, in both formats, and from no other entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.host.conftest import Host

DEB822 = """\
# A mirror of our own.
Types: deb deb-src
# and a remark in the middle
URIs: https://mirror.example/debian/
 http://second.example/debian
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By: /usr/share/keyrings/own.gpg
"""
ONE_LINE = """\
deb-src http://no.example/debian bookworm main
# deb http://off.example/debian bookworm main
deb [arch=amd64 signed-by=/k.gpg] http://one.example/debian bookworm main contrib # ours
"""
EMBEDDED_KEY = """\
Types: deb
URIs: http://key.example/debian
Suites: bookworm
Components: main
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
"""
SECURITY = (
    "Types: deb\nURIs: http://security.example/debian-security\nSuites: bookworm-security\nComponents: main\n"
)


@pytest.mark.parametrize(
    ("file", "text", "origin"),
    [
        (
            "sources.list.d/debian.sources",
            DEB822,
            ["uri https://mirror.example/debian/", "signed-by /usr/share/keyrings/own.gpg"],
        ),
        (
            "sources.list",
            ONE_LINE,
            ["uri http://one.example/debian", "signed-by /k.gpg"],
        ),
        (
            "sources.list.d/a.list",
            "deb\thttp://tab.example/debian  bookworm\tcontrib main\n",
            ["uri http://tab.example/debian"],
        ),
        (
            "sources.list",
            "deb [trusted=yes] http://own.example/debian bookworm main\n",
            ["uri http://own.example/debian", "trusted yes"],
        ),
        ("sources.list", "deb cdrom:[Debian]/ bookworm main\n", []),
        ("sources.list", "deb http://other.example/debian bookworm-backports main\n", []),
        ("sources.list", "deb http://other.example/debian bookworm non-free\n", []),
        ("sources.list.d/security.sources", SECURITY, []),
        ("sources.list.d/off.sources", "Enabled: no\n" + DEB822, []),
        ("sources.list.d/off.sources", DEB822 + "Enabled: no\n", []),
        (
            "sources.list.d/key.sources",
            EMBEDDED_KEY,
            ["uri http://key.example/debian"],
        ),
        (
            "sources.list.d/crlf.sources",
            "TYPES: deb\nUris:\thttp://c.example/debian\nsuites: bookworm\ncomponents: main\n",
            ["uri http://c.example/debian"],
        ),
    ],
)
def test_an_entry_is_understood(host: Host, file: str, text: str, origin: list[str]) -> None:
    host.file(f"etc/apt/{file}", text)
    assert host.shell("apt_origin bookworm").splitlines() == origin


def test_the_first_entry_that_fits_is_taken_with_its_own_key(host: Host) -> None:
    host.file("etc/apt/sources.list.d/1.sources", SECURITY + "\n" + DEB822)
    host.file(
        "etc/apt/sources.list", "deb [signed-by=/other.gpg] http://later.example/debian bookworm main\n"
    )
    assert host.shell("apt_origin bookworm").splitlines() == [
        "uri https://mirror.example/debian/",
        "signed-by /usr/share/keyrings/own.gpg",
    ]


def test_two_files_without_an_empty_line_between_them_are_two_entries(host: Host) -> None:
    host.file("etc/apt/sources.list.d/a.sources", SECURITY.rstrip("\n"))
    host.file("etc/apt/sources.list.d/b.sources", DEB822)
    assert host.shell("apt_origin bookworm").startswith("uri https://mirror.example/debian/\n")


def test_a_host_without_sources_has_no_origin(host: Host) -> None:
    assert not host.shell("apt_origin bookworm")


@pytest.mark.parametrize(
    ("version", "major"), [("26.1.5+dfsg1-9", "26"), ("20.10.24+dfsg1-1", "20"), ("(none)", "0"), ("", "0")]
)
def test_the_major_version_of_a_candidate(host: Host, version: str, major: str) -> None:
    assert host.shell(f"apt_major '{version}'") == f"{major}\n"


def test_an_epoch_is_not_part_of_the_version(host: Host) -> None:
    host.program("apt-cache", 'echo "  Candidate: 5:28.0.1-1"')
    assert host.shell("apt_candidate docker.io") == "28.0.1-1\n"
