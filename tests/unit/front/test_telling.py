"""When another snapshot goes out, and which configured text a refusal is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agents.definition import AgentDefinition, Card, Grounding, Limits, Messages, Tools
from runtime.front import telling
from runtime.front.admit import Reason
from runtime.front.telling import (
    GROWTH_PART,
    SNAPSHOT_SECONDS,
    TOLD_CHARS,
    TOLD_PART,
    Telling,
    has_grown,
    pause_seconds,
    refusal_text,
)
from runtime.front.updates import Ending
from runtime.turn.receipt import Receipt

MESSAGES = Messages(
    **{name: name for name in Messages.__dataclass_fields__} | {"too_long": "{n} of {max} {x}"}
)
AGENT = AgentDefinition(
    id="ada",
    card=Card("Ada", "", "1", "http://127.0.0.1:1"),
    persona="",
    grounding=Grounding(Path("/nowhere")),
    tools=Tools(),
    tools_dir=Path("/nowhere"),
    model="sonnet",
    limits=Limits(timeout_seconds=200.0),
    messages=MESSAGES,
)


class Shown:
    """Stands in Updates' place and keeps the snapshots."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.finished = False

    async def snapshot(self, text: str) -> None:
        self.texts.append(text)


def telling_to(shown: Any, pause: float = 0.0) -> Telling:
    return Telling(AGENT, shown, Receipt("c", "v", "q"), (), pause_seconds=pause)


class Clock:
    """Stands in the place of `time` and stands still unless it is set."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


async def test_between_two_snapshots_there_is_the_pause_however_much_the_text_grows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, shown = Clock(), Shown()
    monkeypatch.setattr(telling, "time", clock)
    one = telling_to(shown, pause=0.5)
    await one.show("a b " * 100, started=99.0)
    clock.now += 0.4
    await one.show("a b " * 1000, started=99.0)
    assert len(shown.texts) == 1
    clock.now += 0.2
    await one.show("a b " * 2000, started=99.0)
    assert len(shown.texts) == 2
    clock.now += 0.4
    await one.show("a b " * 9000, started=99.0)
    assert len(shown.texts) == 2, "the pause counts from the last that was shown"
    assert one.receipt.first_text_seconds == 1.0


async def test_a_text_that_begins_anew_again_and_again_is_not_told_for_ever() -> None:
    shown = Shown()
    one = telling_to(shown)
    for number in range(400):
        await one.show(f"{number:04} " + "a b " * 5000, started=0.0)
    longest = max(map(len, shown.texts))
    assert len(shown.texts) > 10, "some are shown"
    assert sum(map(len, shown.texts)) <= TOLD_PART * longest + TOLD_CHARS


async def test_a_text_is_screened_only_when_it_is_worth_a_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    screened = []

    def counting(untrusted_text: str, _canaries: tuple[str, ...]) -> str:
        screened.append(untrusted_text)
        return untrusted_text

    monkeypatch.setattr(telling, "screen_partial", counting)
    shown = Shown()
    one = telling_to(shown)
    for length in range(1, 20_000, 7):
        await one.show("x" * length, started=0.0)
    assert len(shown.texts) > 30
    assert len(screened) == len(shown.texts)


@given(st.lists(st.integers(1, 200), max_size=60))
def test_all_snapshots_of_a_growing_text_are_together_a_fixed_multiple_of_it(deltas: list[int]) -> None:
    shown, length, sent = "", 0, []
    for delta in deltas:
        length += delta
        if has_grown(shown, "x" * length):
            shown = "x" * length
            sent.append(length)
    assert sum(sent) <= (GROWTH_PART + 2) * length


@pytest.mark.parametrize(
    ("reason", "text"),
    [
        (Reason.EMPTY, "empty"),
        (Reason.TOO_LONG, "5000 of 4000 {x}"),
        (Reason.BUSY, "busy"),
        (Reason.STOPPING, "stopping"),
    ],
)
def test_each_refusal_is_its_configured_text(reason: Reason, text: str) -> None:
    assert refusal_text(reason, AGENT, 5000) == text


def test_the_pause_between_snapshots_follows_the_turn_s_time() -> None:
    assert pause_seconds(AGENT) == 0.4
    assert SNAPSHOT_SECONDS == 0.1


def test_an_ending_says_what_a_program_may_read_and_no_more() -> None:
    assert Ending("x").metadata == {}
    assert Ending("x", "timeout").metadata == {"gatehouse": {"outcome": "timeout"}}
    assert Ending("x", "busy", retry_seconds=7).metadata == {
        "gatehouse": {"outcome": "busy", "retryAfterSeconds": 7}
    }
    answer, notice = Ending("x", notice="y").parts
    assert (answer.text, notice.text) == ("x", "y")
    assert not answer.HasField("metadata")
    assert notice.metadata["gatehouse"]["kind"] == "notice"
