"""Ask the ledger from the event loop: one thread of its own, so that a slow disk never holds up a door."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, ParamSpec, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.modelproxy.ledger import Ledger, Limits, Reservation, Spent
    from runtime.modelproxy.prices import Bill

P = ParamSpec("P")
T = TypeVar("T")


class Books:
    """The ledger's methods as coroutines; a call that was started is carried out even if cancelled."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")

    async def _ask(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.wrap_future(self._thread.submit(method, *args, **kwargs))

    async def reserve(self, turn: str, agent: str, worst: Bill, limits: Limits, now: float) -> Reservation:
        """See `Ledger.reserve`."""
        return await self._ask(self._ledger.reserve, turn, agent, worst, limits, now)

    async def settle(self, reservation: int, used: Bill) -> None:
        """See `Ledger.settle`."""
        await self._ask(self._ledger.settle, reservation, used)

    async def release(self, reservation: int) -> None:
        """See `Ledger.release`."""
        await self._ask(self._ledger.release, reservation)

    async def spent(self, turn: str) -> Spent:
        """See `Ledger.spent`."""
        return await self._ask(self._ledger.spent, turn)

    async def days(self, day: str) -> dict[str, int]:
        """See `Ledger.days`."""
        return await self._ask(self._ledger.days, day)

    async def mark_live(self) -> None:
        """See `Ledger.mark_live`."""
        await self._ask(self._ledger.mark_live)

    def close(self) -> None:
        """Finish what was asked, then close the file."""
        self._thread.shutdown(wait=True)
        self._ledger.close()
