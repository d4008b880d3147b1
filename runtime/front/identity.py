"""Who speaks and in which conversation, as HMACs: nothing behind the front sees a context id or an address.

The keys are random per process. The visitor's also takes the day (UTC), so that yesterday's visitor cannot
be found in today's log. A forwarded address is believed only when the request came in over the tunnel's own
socket: anybody else can write that header (architecture §2).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from runtime import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from starlette.types import Scope

FORWARDED_HEADER = b"cf-connecting-ip"
LOCAL = "local"
UNKNOWN = "unknown"
IPV6_PREFIX = 64  # one household or one server has at least that many addresses


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


class Identity:
    """Turns context ids and addresses into names of 32 hex digits."""

    def __init__(
        self, *, tunnel: Path = layout.FRONT_TUNNEL_SOCKET, today: Callable[[], str] = _today
    ) -> None:
        self._tunnel = str(tunnel)
        self._today = today
        self._context_key = secrets.token_bytes(32)
        self._visitor_key = secrets.token_bytes(32)
        self.receipt_key = secrets.token_bytes(32)

    def context(self, context_id: str) -> str:
        """Return the name of a conversation."""
        return _mac(self._context_key, context_id)

    def visitor(self, untrusted_address: str) -> str:
        """Return today's name of a visitor."""
        return _mac(self._visitor_key, f"{self._today()}\n{untrusted_address}")

    def address(self, scope: Scope) -> str:
        """Return the address that a request counts for: a canonical address, `local` or `unknown`.

        IPv6 addresses count as their /64. Behind `local.sock` all visitors are the one `local`.
        """
        server = scope.get("server")
        if server and str(server[0]) == self._tunnel:
            headers: Mapping[bytes, bytes] = dict(scope.get("headers", ()))
            return canonical(headers.get(FORWARDED_HEADER, b"").decode("latin-1"))
        client = scope.get("client")
        return canonical(str(client[0])) if client else LOCAL


def canonical(untrusted_address: str) -> str:
    """Return an address in its one spelling, IPv6 as its /64; `unknown` for what is none."""
    try:
        address = ipaddress.ip_address(untrusted_address.strip())
    except ValueError:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((int(address), IPV6_PREFIX), strict=False))
    return str(address)


def _mac(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]
