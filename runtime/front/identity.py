"""Who speaks and in which conversation, as HMACs: nothing behind the front sees a context id or an address.

The keys are random per process. The visitor's also takes the day (UTC), so that yesterday's visitor cannot
be found in today's log. `CF-Connecting-IP` is believed only when the request came in over the tunnel's own
socket, and `X-Forwarded-For` only from proxies that the operator names (`FRONT_FORWARDED_FROM`): anybody
else can write these headers (architecture §2).
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from runtime import layout
from runtime.front.settings import Forwarders

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from starlette.types import Scope

TUNNEL_HEADER = b"cf-connecting-ip"
PROXY_HEADER = b"x-forwarded-for"
LOCAL = "local"
UNKNOWN = "unknown"
IPV6_PREFIX = 64  # one household or one server has at least that many addresses

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_PORT = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]{2,45})\]|(?P<four>[0-9.]{7,15}))(?::[0-9]{1,5})?")


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


class Identity:
    """Turns context ids and addresses into names of 32 hex digits."""

    def __init__(
        self,
        *,
        tunnel: Path | None = None,
        local: Path | None = None,
        forwarded_from: Forwarders | None = None,
        today: Callable[[], str] = _today,
    ) -> None:
        self._tunnel = str(tunnel or layout.FRONT_TUNNEL_SOCKET)
        self._local = str(local or layout.FRONT_LOCAL_SOCKET)
        self._forwarded_from = forwarded_from or Forwarders()
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

        IPv6 addresses count as their /64. Behind `local.sock` all visitors are the one `local`, unless the
        operator says that a proxy of theirs asks there.
        """
        server, client = scope.get("server"), scope.get("client")
        socket = str(server[0]) if server else ""
        if socket == self._tunnel:
            return canonical(b"".join(_values(scope, TUNNEL_HEADER)).decode("latin-1"))
        direct = str(client[0]) if client else LOCAL
        if client:
            believed = self._is_proxy(parsed(direct))
        else:
            believed = self._forwarded_from.local and socket == self._local
        if believed:
            chain = b",".join(_values(scope, PROXY_HEADER)).decode("latin-1")
            return self._forwarded(chain) or (canonical(direct) if client else LOCAL)
        return canonical(direct) if client else LOCAL

    def _forwarded(self, untrusted_chain: str) -> str:
        """Return who stands before the proxies in an `X-Forwarded-For`, "" when nobody does.

        From the right, because each proxy appends whom it saw: what stands left of the first one that is no
        proxy is that one's own word. Text that is no address stands for somebody, who is `unknown`.
        """
        if not untrusted_chain.strip():
            return ""
        farthest = ""
        for one in reversed(untrusted_chain.split(",")):
            address = parsed(one)
            farthest = _name(address)
            if not self._is_proxy(address):
                break
        return farthest

    def _is_proxy(self, address: Address | None) -> bool:
        return address is not None and any(address in one for one in self._forwarded_from.networks)


def parsed(untrusted_address: str) -> Address | None:
    """Return an address, also one with a port or in brackets as proxies write it; None for what is none."""
    text = untrusted_address.strip()
    match = _PORT.fullmatch(text)
    try:
        address = ipaddress.ip_address((match["six"] or match["four"]) if match else text)
    except ValueError:
        return None
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped
    return address


def canonical(untrusted_address: str) -> str:
    """Return an address in its one spelling, IPv6 as its /64; `unknown` for what is none."""
    return _name(parsed(untrusted_address))


def _name(address: Address | None) -> str:
    if address is None:
        return UNKNOWN
    if isinstance(address, ipaddress.IPv6Address):
        return str(ipaddress.ip_network((int(address), IPV6_PREFIX), strict=False))
    return str(address)


def _values(scope: Scope, header: bytes) -> Iterable[bytes]:
    return (value for name, value in scope.get("headers", ()) if name == header)


def _mac(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()[:32]
