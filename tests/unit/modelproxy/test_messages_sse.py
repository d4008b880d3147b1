from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.modelproxy import messages_sse
from runtime.modelproxy.messages_sse import Block, EventReader, StreamError, Text, ToolUse


def assemble(raw: bytes) -> dict[str, Any]:
    """Put a message together from its events, as a client does."""
    events = [event for _raw, event in EventReader().feed(raw)]
    whole = dict(events[0]["message"])
    parts: list[str] = []
    for event in events:
        if event["type"] == "content_block_start":
            whole["content"] = [*whole["content"], event["content_block"]]
            parts = []
        elif event["type"] == "content_block_delta":
            parts.append(event["delta"].get("text") or event["delta"].get("partial_json") or "")
        elif event["type"] == "content_block_stop":
            last = whole["content"][-1]
            said = "".join(parts)
            whole["content"][-1] = (
                {**last, "text": said} if last["type"] == "text" else {**last, "input": json.loads(said)}
            )
        elif event["type"] == "message_delta":
            whole |= event["delta"] | {"usage": event["usage"]}
    return whole


@given(st.lists(st.text(min_size=1, max_size=80), min_size=1, max_size=3), st.integers(1, 9))
def test_the_events_add_up_to_the_whole_message(texts: list[str], chunks: int) -> None:
    blocks: list[Block] = [*(Text(text, chunks) for text in texts), ToolUse("Grep", {"pattern": texts[0]})]
    raw = b"".join(messages_sse.stream("m", blocks, input_tokens=3, seed="s"))
    assert assemble(raw) == messages_sse.message("m", blocks, input_tokens=3, seed="s")


@given(st.text(max_size=60), st.integers(1, 20))
def test_pieces_are_the_text_again(text: str, count: int) -> None:
    cut = messages_sse.pieces(text, count)
    assert "".join(cut) == text
    assert len(cut) <= max(1, count)


@given(st.lists(st.integers(1, 40), max_size=30))
def test_events_are_found_however_the_bytes_are_cut(sizes: list[int]) -> None:
    raw = b"".join(messages_sse.stream("m", [Text("a text \u00fc", 4)], input_tokens=3))
    raw = raw.replace(b"\n\n", b"\r\n\r\n", 2)
    reader = EventReader()
    found = []
    rest = raw
    for size in sizes:
        found += reader.feed(rest[:size])
        rest = rest[size:]
    found += reader.feed(rest)
    assert [event for _, event in found] == [event for _, event in EventReader().feed(raw)]
    assert b"".join(piece for piece, _ in found) == raw


@pytest.mark.parametrize("raw", [b"data: x\n\n", b"data: []\n\n", b"data: " + b"[" * 100_000 + b"\n\n"])
def test_data_that_is_no_object_is_an_error(raw: bytes) -> None:
    with pytest.raises(StreamError):
        EventReader().feed(raw)


def test_an_event_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages_sse, "MAX_EVENT_BYTES", 100)
    reader = EventReader()
    reader.feed(b"data: " + b"x" * 90)
    with pytest.raises(StreamError):
        reader.feed(b"x" * 10)
