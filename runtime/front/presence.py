"""Sees when a visitor's client hangs up while its request is being answered: a plain ASGI middleware.

Why: uvicorn tells only an app that asks (`receive`), the SDK does not ask while it runs a blocking call, and
an event stream that cannot be written does not ask either. So this asks for every request, and whoever
has to know is told through the `Gone` in the request's scope.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

GONE: Final = "gone"  # the key in a request's scope, and in the call's state


class Gone(asyncio.Event):
    """Set once when nobody reads a request's answer any more: it is given, or its client has left."""

    def __init__(self) -> None:
        super().__init__()
        self._told: list[Callable[[], None]] = []

    def set(self) -> None:
        """Set the event and tell those who asked."""
        super().set()
        told, self._told = self._told, []
        for tell in told:
            tell()

    def tell(self, callback: Callable[[], None]) -> None:
        """Call `callback` when this is set, at once when it is. It must not raise."""
        if self.is_set():
            callback()
        else:
            self._told.append(callback)


class Presence:
    """Puts a `Gone` into the scope of each POST. It stands innermost, where the body has been read."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and watch its connection until it is answered."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        gone = Gone()
        bodies: list[Message] = [await receive()]

        async def watch() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass
            gone.set()

        async def received() -> Message:
            if bodies:
                return bodies.pop()
            await gone.wait()
            return {"type": "http.disconnect"}

        watching = asyncio.create_task(watch())
        try:
            await self.app({**scope, GONE: gone}, received, send)
        finally:
            gone.set()
            watching.cancel()
