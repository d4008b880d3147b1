"""Keeps a front that runs turns without a sandbox to the machine it runs on.

Why the Host header too: a web page whose name is made to resolve to 127.0.0.1 after it was loaded can ask a
server there, and read its answers, from the browser of whoever works on this machine. And why the Origin: a
page of another site may not read an answer, but its question would have run a turn.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING

from starlette.datastructures import Headers
from starlette.responses import JSONResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from starlette.types import ASGIApp, Receive, Scope, Send

MISDIRECTED = 421
FORBIDDEN = 403

_HOST = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+))(?::[0-9]{1,5})?")


def is_loopback(host: str) -> bool:
    """Say whether a host is this machine by definition: 127.0.0.0/8, ::1, localhost. Pure."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_of(header: str) -> str:
    """Return the host in a Host header, without port and brackets; "" for what is no host. Pure."""
    match = _HOST.fullmatch(header)
    return (match[1] or match[2]) if match else ""


class LoopbackHosts:
    """Answers 421 to a Host that names anything but this machine, and 403 to an Origin of another site.

    `origins` are those that the instance lets read its answers (`cors_origins`).
    """

    def __init__(self, app: ASGIApp, origins: Callable[[], Collection[str]] = tuple) -> None:
        self.app = app
        self._origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        origin = headers.get("origin")
        if not is_loopback(host_of(headers.get("host", ""))):
            refusal = JSONResponse({"error": "This server answers on its own machine only"}, MISDIRECTED)
            await refusal(scope, receive, send)
        elif origin is not None and not self._may_ask(origin):
            refusal = JSONResponse({"error": "This server answers no page of another site"}, FORBIDDEN)
            await refusal(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _may_ask(self, origin: str) -> bool:
        return is_loopback(host_of(origin.partition("://")[2])) or origin in self._origins()
