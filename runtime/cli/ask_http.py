"""How `ask` speaks HTTP: with bounds on what a server may send, and with a say on where a question goes.

Why: the address may lead to anything. A server that never stops must not fill this machine's memory, and a
card from the internet must not send the question on to a service of this host or out of TLS.
"""

from __future__ import annotations

import ipaddress
import ssl
from typing import TYPE_CHECKING, Final
from urllib.parse import SplitResult, urlsplit, urlunsplit

import httpx

from runtime.errors import ServiceUnreachable, UsageError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CONNECT_SECONDS: Final = 10.0
CARD_MAX_BYTES: Final = 1024 * 1024
ANSWER_MAX_BYTES: Final = 64 * 1024 * 1024  # each snapshot repeats the answer so far
CARD_PATHS: Final = ("/.well-known/agent-card.json", "/.well-known/agent.json")
PORTS: Final = {"http": 80, "https": 443}


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


def endpoint(asked: str, named: str) -> str:
    """Return where the question goes: `named`, the address in the card, or the one that was asked for.

    Who asks at a loopback address means that server, whatever public name it has. A card from elsewhere may
    name another public host, but no address inside this machine or network, and none without TLS when it
    came over TLS: then the host that was asked stays, with the path of the card.
    """
    here = urlsplit(asked)
    try:
        there = urlsplit(named)
        same = _origin(here) == _origin(there)
    except ValueError:
        return f"{asked}/"
    if same:
        return named
    if there.scheme not in PORTS or not there.hostname:
        return f"{asked}/"
    stays = urlunsplit((here.scheme, here.netloc, there.path or "/", there.query, ""))
    if _is_inside(there.hostname):
        return stays
    if _is_inside(here.hostname or ""):
        return f"{asked}/"
    if here.scheme == "https" and there.scheme != "https":
        return stays
    return named


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
    return parts.scheme, (parts.hostname or "").lower(), parts.port or PORTS.get(parts.scheme)


def _is_inside(host: str) -> bool:
    """Say whether a host is this machine or one of its own networks, as far as its name tells."""
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host.split("%", 1)[0]).is_global
    except ValueError:
        return False
