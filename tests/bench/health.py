"""How long `/health` takes at worst while every slot is busy and 200 connections are open.

The connections are a stream for each slot, whose turn goes on showing text until it is ended, and idle ones
that keep alive. `/health` is asked over one more, one question after the other. Once of the front alone, with
a stub runner; once through the whole stack with real turns, where the model says nothing until it is let.
"""

from __future__ import annotations

import asyncio
import statistics
import tempfile
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.child import child
from tests.bench.numbers import Row, quantile
from tests.bench.wanted import WANTED
from tests.bench.wire import SECONDS, Address, Connection, Stream, ask, get, message
from tests.harness.stack import eventually

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.harness.stack import Stack

OPEN = 200
SLOTS = 16
QUESTIONS = 1500
HEALTH = get("/health")
OK = b'"status":"ok"'


@asynccontextmanager
async def idle(address: Address, count: int) -> AsyncGenerator[None]:
    """Keep connections open that have asked once and ask no more."""
    connections = [await Connection.open(address) for _ in range(count)]
    try:
        for connection in connections:
            await ask(connection, HEALTH, OK)
        yield
    finally:
        for connection in connections:
            connection.close()


async def times(address: Address, questions: int) -> list[float]:
    """Ask `/health` again and again; return the milliseconds of each."""
    connection = await Connection.open(address)
    taken = []
    try:
        async with asyncio.timeout(SECONDS):
            for _ in range(questions):
                begin = time.perf_counter()
                await ask(connection, HEALTH, OK)
                taken.append((time.perf_counter() - begin) * 1e3)
    finally:
        connection.close()
    return taken


def row(where: str, name: str, taken: list[float], slots: int) -> Row:
    """Return the figure."""
    return Row(
        f"/health p99, {where}",
        quantile(taken, 0.99),
        "ms",
        digits=1,
        wanted=WANTED[name],
        said=f"{slots} slots busy, {OPEN} connections; median {statistics.median(taken):.1f}, "
        f"most {max(taken):.1f} ms of {len(taken)}",
        parts={"p50": statistics.median(taken), "max": max(taken)},
    )


async def busy_front(address: Address, questions: int) -> list[float]:
    """Fill the slots of a front with a stub runner, and measure."""
    streams = [await Stream.open(address, message("message/stream", f"hold {n}")) for n in range(SLOTS)]
    drains = []
    try:
        for stream in streams:
            await stream.until(b'"artifact-update"')
            drains.append(asyncio.create_task(stream.drain()))
        one_too_many = await Connection.open(address)
        await ask(one_too_many, message("message/send", "Is there a place?"), b'"busy"')
        one_too_many.close()
        async with idle(address, OPEN - SLOTS):
            return await times(address, questions)
    finally:
        for drain in drains:
            drain.cancel()
        for stream in streams:
            await stream.close()


def measure_front(*, quick: bool) -> list[Row]:
    """Return the figure of the front alone."""
    with (
        tempfile.TemporaryDirectory() as folder,
        child("tests.bench.front_process", Path(folder) / "front.log", str(SLOTS)) as front,
    ):
        taken = asyncio.run(busy_front(front.address, QUESTIONS // 5 if quick else QUESTIONS))
    return [row("front alone", "front-health", taken, SLOTS)]


async def busy_stack(stack: Stack, slots: int, marker: str, questions: int) -> list[float]:
    """Fill the slots of a whole stack with turns whose model is silent, and measure through its ingress."""
    address = Address(stack.port)
    streams = [
        await Stream.open(address, message("message/stream", f"Who was she? {marker}")) for _ in range(slots)
    ]
    drains = [asyncio.create_task(stream.drain()) for stream in streams]
    try:
        await asyncio.to_thread(
            eventually, lambda: len(stack.requests(marker)) >= slots, seconds=30, what="a busy stack"
        )
        async with idle(address, OPEN - slots):
            return await times(address, questions)
    finally:
        await asyncio.to_thread(stack.release, marker)
        await asyncio.wait(drains, timeout=SECONDS)
        for stream in streams:
            await stream.close()


def measure_stack(stack: Stack, slots: int, *, quick: bool) -> list[Row]:
    """Return the figure of a whole stack with `slots` turns at a time."""
    marker = stack.script({"text": "She wrote programs.", "hold": True})
    taken = asyncio.run(busy_stack(stack, slots, marker, QUESTIONS // 5 if quick else QUESTIONS))
    return [row("whole stack, through the ingress", "stack-health", taken, slots)]
