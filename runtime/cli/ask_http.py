"""How `ask` speaks HTTP: with bounds on what a server may send, and with a say on where a question goes.

Why: the address may lead to anything. A server that never stops must not fill this machine's memory, and a
card from the internet must not send the question on to a service of this host or out of TLS.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import ssl
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx

from runtime.errors import ServiceUnreachable, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

CONNECT_SECONDS: Final = 10.0
CARD_MAX_BYTES: Final = 1024 * 1024
ANSWER_MAX_BYTES: Final = 64 * 1024 * 1024  # each snapshot repeats the answer so far
CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
PORTS: Final = {"http": 80, "https": 443}
OUTER_NAME: Final = re.compile(
    r"(?=.{4,253}$)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
)
INNER: Final = (".localhost", ".local", ".internal", ".lan", ".home", ".corp", ".intranet", ".home.arpa")
NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def base_address(url: str) -> str:
    """Return the address of an agent without a slash at its end. Raises UsageError for what is none.

    The address of the card itself is taken as the agent's.
    """
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"--url is no address: {url[:200]!r}: {error}") from None
    if parts.scheme not in PORTS:
        raise UsageError(f"--url begins with neither http:// nor https://: {url[:200]!r}")
    if not parts.hostname or not url.isprintable() or " " in url or port == 0:
        raise UsageError(f"--url is no address: {url[:200]!r}")
    if parts.username is not None or parts.query or parts.fragment:
        raise UsageError("--url takes a host, a port and a path", "leave out user names, ? and #")
    path = parts.path
    for card in CARD_PATHS:
        path = path.removesuffix(card)
    return urlunsplit((parts.scheme, parts.netloc, path.rstrip("/"), "", ""))


def endpoint(asked: str, named: str, resolve: Callable[[str], Iterable[str]] | None = None) -> str:
    """Return where the question goes: `named`, the address in the card, or the one that was asked for.

    Who asks at an address inside this machine or network means that server, whatever public name it has. A
    card from elsewhere may name another port or path of its own host, or another host by a DNS name all of
    whose addresses are public now, and none without TLS when it came over TLS; else the host that was asked
    stays, with the path of the card. The address is put together anew from its parts, so that the HTTP client
    can read no other host in it. `resolve` gives the addresses of a name; it may block.
    """
    here = urlsplit(asked)
    try:
        there = urlsplit(named)
        origin = _origin(there)
        asked_origin = _origin(here)
    except ValueError:
        return f"{asked}/"
    if there.scheme not in PORTS or not origin[1]:
        return f"{asked}/"
    stays = urlunsplit((here.scheme, here.netloc, there.path or "/", there.query, ""))
    if origin == asked_origin:
        return stays
    if not (_is_outer_name(asked_origin[1]) or _is_global(asked_origin[1])):
        return f"{asked}/" if _is_outer_name(origin[1]) else stays
    if here.scheme == "https" and there.scheme != "https":
        return stays
    if origin[1] != asked_origin[1] and not _is_public(origin[1], resolve or addresses_of):
        return stays
    host = f"[{origin[1]}]" if ":" in origin[1] else origin[1]
    port = "" if origin[2] == PORTS[there.scheme] else f":{origin[2]}"
    return urlunsplit((there.scheme, host + port, there.path or "/", there.query, ""))


def addresses_of(host: str) -> list[str]:
    """Return the addresses that a name has now, none when it has none."""
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return []
    return [str(one[4][0]) for one in found]


def client(url: str) -> httpx.AsyncClient:
    """Return a client for one agent; the caller bounds the whole time, this bounds connections and bytes.

    The environment's proxies are for other hosts than this one.
    """
    secure = urlsplit(url).scheme == "https"
    inside = urlsplit(url).hostname in {"localhost", "127.0.0.1", "::1"}
    return httpx.AsyncClient(
        timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
        verify=ssl.create_default_context() if secure else True,
        trust_env=not inside,
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [_bound]},
    )


class BoundedStream(httpx.AsyncByteStream):
    """A body of at most `most` bytes. Raises ServiceUnreachable past that."""

    def __init__(self, stream: httpx.AsyncByteStream, most: int, host: str) -> None:
        self._stream = stream
        self._most = most
        self._host = host

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield what comes, and count it."""
        left = self._most
        async for chunk in self._stream:
            left -= len(chunk)
            if left < 0:
                raise ServiceUnreachable(
                    f"{self._host} sends more than {self._most // 1024} KB", "is it an agent?"
                )
            yield chunk

    async def aclose(self) -> None:
        """Close the connection's stream."""
        await self._stream.aclose()


async def _bound(response: httpx.Response) -> None:
    host = response.request.url.host
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        # A few packed bytes can be gigabytes, and nobody asked for them.
        raise ServiceUnreachable(f"{host} packs its answer although it was asked not to")
    most = CARD_MAX_BYTES if response.request.method == "GET" else ANSWER_MAX_BYTES
    if isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = BoundedStream(response.stream, most, host)


def _origin(parts: SplitResult) -> tuple[str, str, int | None]:
    return parts.scheme, _normal(parts.hostname or ""), parts.port or PORTS.get(parts.scheme)


def _normal(host: str) -> str:
    """Return a host as the HTTP client would ask the resolver for it, "" for what is none."""
    try:
        return httpx.URL(scheme="http", host=host).raw_host.decode("ascii").lower()
    except (httpx.InvalidURL, ValueError):
        return ""


def _is_outer_name(host: str) -> bool:
    """Say whether a host is a DNS name that is not by its form one of this machine or network.

    A resolver reads `127.1`, `0x7f.1` and `2130706433` as addresses; no such form ends in a letter's label.
    """
    return OUTER_NAME.fullmatch(host) is not None and not host.endswith(INNER)


def _is_public(host: str, resolve: Callable[[str], Iterable[str]]) -> bool:
    if not _is_outer_name(host):
        return False
    addresses = list(resolve(host))
    return bool(addresses) and all(map(_is_global, addresses))


def _is_global(address: str) -> bool:
    """Say whether an address is one of the public internet, and so is the IPv4 address that it may wrap."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        wrapped = found.ipv4_mapped or found.sixtofour
        if found in NAT64:
            wrapped = ipaddress.IPv4Address(int(found) & 0xFFFFFFFF)
        if wrapped is not None:
            return _is_global(str(wrapped))
    return found.is_global and not found.is_multicast
