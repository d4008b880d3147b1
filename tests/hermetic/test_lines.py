"""A turn's process, where no other file here proves what is said of it (tests/behaviours.py)."""

from __future__ import annotations

import ast
import asyncio
import json
from pathlib import Path
from typing import Any

from runtime.turn.events import Cause, Failed
from runtime.turn.stream import TurnStream


async def test_each_turn_is_a_process_of_its_own_that_is_gone_when_it_has_answered(
    stub: Any, kit: Any
) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    pids = []
    for number in range(2):
        stub.play({"record": str(stub.record)}, kit.result(f"Answer {number}."), {"hang": True})
        (answer,) = await kit.events_of(runner, agent)
        assert answer.text == f"Answer {number}."
        pids.append(stub.recorded()["pid"])
        assert stub.recorded()["argv"][1] == "-p"
    await runner.aclose()
    assert len(set(pids)) == 2
    assert [pid for pid in pids if kit.alive(pid)] == []


async def test_lines_that_keep_coming_give_a_turn_no_more_time(
    stub: Any, kit: Any, clock: Any, monkeypatch: Any
) -> None:
    agent = stub.agent()
    runner = stub.runner(agent)
    read = 0
    feed = TurnStream.feed

    def counted(stream: Any, line: Any) -> Any:
        nonlocal read
        read += 1
        clock.leap(agent.limits.timeout_seconds / 50)
        return feed(stream, line)

    monkeypatch.setattr(TurnStream, "feed", counted)
    stub.play({"flood": json.dumps({"type": "system"})})
    async with asyncio.timeout(agent.limits.timeout_seconds * 1000):
        (end,) = await kit.events_of(runner, agent)
    await runner.aclose()
    assert isinstance(end, Failed)
    assert end.cause is Cause.TIMEOUT
    assert read > 10


def test_no_test_here_needs_an_engine_or_another_program_than_the_stub() -> None:
    for path in sorted(Path(__file__).parent.glob("*.py")):
        marks = {
            node.attr
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)
            if node.value.attr == "mark"
        }
        assert not marks & {"engine", "live"}, path.name
