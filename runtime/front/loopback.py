"""Keeps a front that runs turns without a sandbox to the machine it runs on.

Why the Host header too: a web page whose name is made to resolve to 127.0.0.1 after it was loaded can ask a
server there, and read its answers, from the browser of whoever works on this machine.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

MISDIRECTED = 421


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine by definition: 127.0.0.0/8, ::1, localhost. Pure."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """Return the host in a Host header, without its port and the brackets of an IPv6 address. Pure."""
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


class LoopbackHosts:
    """Answers 421 to a request whose Host header names anything but this machine."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and not is_loopback(host_of(Headers(scope=scope).get("host", ""))):
            refusal = JSONResponse({"error": "This server answers on its own machine only"}, MISDIRECTED)
            await refusal(scope, receive, send)
            return
        await self.app(scope, receive, send)
