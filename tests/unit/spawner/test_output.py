from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.spawner.output import (
    STDERR_TAIL_BYTES,
    Demultiplexer,
    Dropped,
    Line,
    LineSplitter,
    MalformedStreamError,
    Output,
    Stream,
)

if TYPE_CHECKING:
    from types import FrameType


def frame(stream: int, payload: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


def cut(data: bytes, sizes: list[int]) -> list[bytes]:
    pieces = []
    for size in sizes:
        pieces.append(data[:size])
        data = data[size:]
    return [*pieces, data]


frames = st.lists(st.tuples(st.sampled_from([Stream.STDOUT, Stream.STDERR]), st.binary(max_size=50)))
sizes = st.lists(st.integers(0, 20))


@given(frames, sizes)
def test_however_the_bytes_are_cut_each_stream_comes_out_whole(
    content: list[tuple[Stream, bytes]], at: list[int]
) -> None:
    demultiplexer = Demultiplexer()
    found = [
        piece
        for data in cut(b"".join(frame(stream, payload) for stream, payload in content), at)
        for piece in demultiplexer.feed(data)
    ]
    for stream in Stream:
        expected = b"".join(payload for kind, payload in content if kind is stream)
        assert b"".join(payload for kind, payload in found if kind is stream) == expected


@pytest.mark.parametrize("header", [b"\x00\0\0\0", b"\x03\0\0\0", b"\x01\0\x01\0"])
def test_a_frame_of_an_unknown_kind_is_refused(header: bytes) -> None:
    with pytest.raises(MalformedStreamError):
        Demultiplexer().feed(header + b"\0\0\0\1x")


def test_a_frame_that_claims_four_gibibytes_is_passed_on_as_it_comes() -> None:
    demultiplexer = Demultiplexer()
    assert demultiplexer.feed(b"\x01\0\0\0\xff\xff\xff\xffabc") == [(Stream.STDOUT, b"abc")]
    assert demultiplexer.feed(b"def") == [(Stream.STDOUT, b"def")]


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line)), sizes)
def test_however_the_bytes_are_cut_lines_come_out_whole_and_long_ones_dropped(
    lines: list[bytes], at: list[int]
) -> None:
    splitter = LineSplitter(limit_bytes=10)
    found = [event for data in cut(b"\n".join(lines), at) for event in splitter.feed(data)]
    found += splitter.finish()
    assert found == [Line(line) if len(line) <= 10 else Dropped(len(line)) for line in lines if line]


def test_past_the_byte_cap_everything_is_discarded() -> None:
    output = Output(limit_bytes=10)
    caps = [output.capped]
    assert output.feed(frame(1, b"12345\n")) == [Line(b"12345")]
    caps.append(output.capped)
    output.feed(frame(2, b"errors"))
    caps.append(output.capped)
    assert caps == [False, False, True]
    assert output.feed(frame(1, b"more\n")) == []
    assert output.finish() == []


def test_a_flood_of_tiny_lines_is_capped_by_their_number() -> None:
    output = Output(limit_lines=3)
    found = output.feed(frame(1, b"a\n" * 10))
    assert found == [Line(b"a")] * 3
    assert output.capped


def test_of_stderr_only_the_tail_is_kept() -> None:
    output = Output()
    output.feed(frame(2, b"x" * 10_000 + b"\xff the end"))
    tail = output.untrusted_stderr_tail
    assert tail.endswith("\N{REPLACEMENT CHARACTER} the end")
    assert len(tail) == STDERR_TAIL_BYTES


def steps_of(splitter: LineSplitter, data: bytes) -> tuple[int, list[Line | Dropped]]:
    """Return how many lines of Python it takes to feed `data`, and what that gives."""
    steps = 0

    def traced(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return traced

    before = sys.gettrace()
    sys.settrace(traced)
    try:
        found = splitter.feed(data)
    finally:
        sys.settrace(before)
    return steps, found


def test_a_flood_of_line_feeds_yields_nothing_and_takes_no_step_for_each_of_them() -> None:
    few, nothing = steps_of(LineSplitter(), b"\n" * 2)
    many, still_nothing = steps_of(LineSplitter(), b"\n" * 65_536)
    assert nothing == still_nothing == []
    assert 0 < many == few


def test_a_flood_of_line_feeds_after_half_a_line_ends_it_and_begins_none() -> None:
    splitter = LineSplitter()
    assert splitter.feed(b"half") == []
    _steps, found = steps_of(splitter, b" a line" + b"\n" * 65_536 + b"next")
    assert found == [Line(b"half a line")]
    assert splitter.finish() == [Line(b"next")]
