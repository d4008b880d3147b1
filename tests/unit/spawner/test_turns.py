"""What one turn hands on: its events in order, many short ones together, so that a flood costs little."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from runtime.spawner.output import Line
from runtime.spawner.turns import TOGETHER_BYTES, End, Reason, Started, Turn
from runtime.turn.events import Usage

END = End(Reason.EXITED, 0, oom=False, usage=Usage(), untrusted_detail="")


@pytest.fixture
async def turn() -> Turn:
    order: Any = SimpleNamespace(request=SimpleNamespace(timeout_seconds=60.0), turn="ab" * 16)
    none: Any = None
    return Turn(none, none, none, order)


async def read(turn: Turn) -> list[list[Any]]:
    pieces: list[list[Any]] = []
    while not pieces or pieces[-1][-1] is not END:
        pieces.append(await turn.next_events())
    return pieces


async def test_short_lines_are_handed_on_together_and_in_order(turn: Turn) -> None:
    lines: list[Any] = [Line(b"%d" % number) for number in range(10_000)]
    turn._say_started()
    turn._put(lines)
    turn._events.put_nowait(END)
    pieces = await read(turn)
    assert [event for piece in pieces for event in piece] == [Started("ab" * 16), *lines, END]
    assert len(pieces) < 20
    assert turn._backlog_bytes == 0


async def test_a_long_line_is_handed_on_with_no_other_behind_it(turn: Turn) -> None:
    lines: list[Any] = [Line(b"x" * TOGETHER_BYTES)] * 3
    turn._put(lines)
    turn._events.put_nowait(END)
    assert [len(piece) for piece in await read(turn)] == [1, 1, 1, 1]


async def test_a_single_event_is_handed_on_at_once(turn: Turn) -> None:
    turn._say_started()
    assert await turn.next_events() == [Started("ab" * 16)]
