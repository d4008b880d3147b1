"""The spawner's calls of the engine, one by one: each has its deadline, and gives its thread back."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

import pytest

from runtime.errors import EngineUnavailable
from runtime.spawner import engine as engine_file
from runtime.spawner.engine import Ended, Engine
from tests.harness.engine_proxy import EngineProxy, Fault, Kind, Operation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.harness.engine import OwnEngine

pytestmark = pytest.mark.engine

NOBODY = "gatehouse-turn-of-nobody"


@pytest.fixture
def proxy(own_engine: OwnEngine, tmp_path: Path) -> Iterator[EngineProxy]:
    with EngineProxy(tmp_path / "proxy", own_engine.socket) as running:
        yield running


async def threads_end(engine: Engine) -> None:
    """Check that no thread of the engine's calls is left waiting."""
    await engine.close()
    for thread in threading.enumerate():
        if thread.name.startswith("engine_"):
            await asyncio.to_thread(thread.join, timeout=10)
            assert not thread.is_alive()


async def test_no_call_waits_for_ever_for_an_engine_that_does_not_answer(proxy: EngineProxy) -> None:
    proxy.breaks(*(Fault(operation, Kind.HANG) for operation in Operation))
    engine = Engine(proxy.socket, call_seconds=1)
    said = await asyncio.gather(
        engine.facts(),
        engine.image_id("none"),
        engine.inspect(NOBODY),
        engine.create({}, NOBODY),
        engine.attach(NOBODY),
        engine.start(NOBODY),
        engine.containers("none"),
        return_exceptions=True,
    )
    assert {type(one) for one in said} == {EngineUnavailable}
    await threads_end(engine)


async def test_an_end_whose_events_are_not_answered_is_an_end_all_the_same(
    proxy: EngineProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_file, "ASK_SECONDS", 0.5)
    proxy.breaks(Fault(Operation.EVENTS, Kind.HANG))
    engine = Engine(proxy.socket, call_seconds=1)
    assert await engine.end(NOBODY, kill=True, since=time.time()) == Ended()
    await threads_end(engine)


async def test_an_end_is_not_believed_while_the_container_may_be_there(
    proxy: EngineProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_file, "ASK_SECONDS", 0.5)
    proxy.breaks(Fault(Operation.INSPECT, Kind.STATUS))
    engine = Engine(proxy.socket, call_seconds=1)
    with pytest.raises(EngineUnavailable):
        await engine.end(NOBODY, kill=True, since=time.time())
    await threads_end(engine)
