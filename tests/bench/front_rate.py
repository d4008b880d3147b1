"""Requests a second of the front ÷ those of the A2A SDK's minimal echo server, in the same run.

Both are processes of their own on the loopback address, asked by the same client over the same number of
keep-alive connections, turn about; the first of each pair alternates. The ratio covers the front as it is
served: its protocol's deadlines, every middleware, both stores, the receipt of each turn as a JSON line into
a file, memory of each context. What it leaves out: the ingress, and the runner (a stub answers at once).

The client must not be what is measured: its share of a core is printed beside the servers'. The CPU time of
a request is the same ratio without the client's and the machine's other work in it.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.child import Child, child
from tests.bench.numbers import Row, median_ratio
from tests.bench.proc import cpu_seconds
from tests.bench.wanted import WANTED
from tests.bench.wire import ask_all, for_seconds, get, message

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench.wire import Load

CONNECTIONS = 8
SLOTS = 64
ROUNDS = 24
SECONDS = 0.4  # short and many, because what else the machine does comes in bursts
WARM_SECONDS = 1.5


@dataclass
class Side:
    """One server's loads, and the CPU time that it took for each."""

    loads: list[Load] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    async def take(
        self, server: Child, request: Callable[[], bytes], expected: bytes, seconds: float
    ) -> None:
        before = cpu_seconds(server.pid)
        one = await ask_all(server.address, for_seconds(seconds, request), expected, connections=CONNECTIONS)
        self.loads.append(one)
        self.cpu.append(cpu_seconds(server.pid) - before)

    @property
    def rates(self) -> list[float]:
        return [one.rate for one in self.loads]

    @property
    def costs(self) -> list[float]:
        """CPU seconds of one request."""
        return [cpu / one.requests for one, cpu in zip(self.loads, self.cpu, strict=True)]

    @property
    def share(self) -> float:
        """The share of one core that the server had."""
        return sum(self.cpu) / sum(one.seconds for one in self.loads)


async def compare(
    front: Child, sdk: Child, request: Callable[[], bytes], expected: tuple[bytes, bytes], rounds: int
) -> tuple[Side, Side]:
    """Load both in turn; what they read is warm before anything counts."""
    for server, text in zip((front, sdk), expected, strict=True):
        await Side().take(server, request, text, WARM_SECONDS)
    ours, theirs = Side(), Side()
    for number in range(rounds):
        pair = [(ours, front, expected[0]), (theirs, sdk, expected[1])]
        for side, server, text in pair if number % 2 else reversed(pair):
            await side.take(server, request, text, SECONDS)
    return ours, theirs


def row(name: str, ours: Side, theirs: Side) -> Row:
    """Return the figure of one kind of request."""
    loads = [*ours.loads, *theirs.loads]
    client = sum(one.client_seconds for one in loads) / sum(one.seconds for one in loads)
    cheaper = median_ratio(theirs.costs, ours.costs)
    return Row(
        f"requests a second, {name}, front ÷ SDK",
        median_ratio(ours.rates, theirs.rates),
        digits=3,
        wanted=WANTED["front-rate"],
        said=f"{statistics.median(ours.rates):.0f} ÷ {statistics.median(theirs.rates):.0f} a second; "
        f"CPU of a request {statistics.median(ours.costs) * 1e3:.2f} and "
        f"{statistics.median(theirs.costs) * 1e3:.2f} ms, which is {cheaper:.2f}; "
        f"shares of a core: front {ours.share:.0%}, SDK {theirs.share:.0%}, client {client:.0%}",
        parts={
            "front_per_second": statistics.median(ours.rates),
            "sdk_per_second": statistics.median(theirs.rates),
            "front_cpu_ms": statistics.median(ours.costs) * 1e3,
            "sdk_cpu_ms": statistics.median(theirs.costs) * 1e3,
            "cpu_ratio": cheaper,
            "client_share": client,
        },
    )


def measure(*, quick: bool) -> list[Row]:
    """Return both ratios."""
    numbers = itertools.count()
    kinds: list[tuple[str, Callable[[], bytes], tuple[bytes, bytes]]] = [
        ("card", lambda: get("/.well-known/agent-card.json"), (b'"skills"', b'"skills"')),
        (
            "message/send",
            lambda: message("message/send", f"Who was she? {next(numbers)}"),
            (b'"completed"', b'"completed"'),
        ),
    ]
    rounds = 4 if quick else ROUNDS

    async def all_kinds(front: Child, sdk: Child) -> list[Row]:
        return [
            row(name, *await compare(front, sdk, request, expected, rounds))
            for name, request, expected in kinds
        ]

    with (
        tempfile.TemporaryDirectory() as folder,
        child("tests.bench.front_process", Path(folder) / "front.log", str(SLOTS)) as front,
        child("tests.bench.sdk_process", Path(folder) / "sdk.log") as sdk,
    ):
        return asyncio.run(all_kinds(front, sdk))
