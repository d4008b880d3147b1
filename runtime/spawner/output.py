"""What a container writes, as bytes off the engine's attach stream, cut into capped pieces. Pure.

The attach stream carries stdout and stderr as frames: one byte for the stream, three zeros, four bytes of
length (big endian), the payload (Docker Engine API, "Attach to a container"). Neither a frame nor a line is
ever held whole beyond its cap, because the container's code is hostile and a frame may claim 4 GiB.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum

MAX_LINE_BYTES = 1024 * 1024  # an answer has 64 KiB; longer lines are tool results, which nobody reads
MAX_OUTPUT_BYTES = 32 * 1024 * 1024
MAX_LINES = 100_000
STDERR_TAIL_BYTES = 4000

_HEADER_BYTES = 8


class Stream(IntEnum):
    """The streams of the attach protocol that a container writes."""

    STDOUT = 1
    STDERR = 2


class MalformedStreamError(ValueError):
    """The engine sent a frame header that its own protocol does not know."""


class Demultiplexer:
    """Turns attach bytes, cut anywhere, into pieces of (stream, payload); never waits for a whole frame."""

    def __init__(self) -> None:
        self._header = bytearray()
        self._stream = Stream.STDOUT
        self._left = 0

    def feed(self, data: bytes) -> list[tuple[Stream, bytes]]:
        """Return the payload pieces in `data`, in order. Raises MalformedStreamError."""
        pieces: list[tuple[Stream, bytes]] = []
        at = 0
        while at < len(data):
            if self._left:
                piece = data[at : at + self._left]
                pieces.append((self._stream, piece))
                self._left -= len(piece)
                at += len(piece)
                continue
            missing = _HEADER_BYTES - len(self._header)
            self._header += data[at : at + missing]
            at += missing
            if len(self._header) == _HEADER_BYTES:
                self._open_frame()
        return pieces

    def _open_frame(self) -> None:
        kind = self._header[0]
        if kind not in (Stream.STDOUT, Stream.STDERR) or any(self._header[1:4]):
            raise MalformedStreamError(f"attach frame header {self._header.hex()}")
        self._stream = Stream(kind)
        self._left = int.from_bytes(self._header[4:], "big")
        self._header.clear()


@dataclass(frozen=True, slots=True)
class Line:
    """One line of stdout without its line feed, at most MAX_LINE_BYTES."""

    untrusted_data: bytes


@dataclass(frozen=True, slots=True)
class Dropped:
    """A line longer than the cap, thrown away; `size` is its length in bytes."""

    size: int


@dataclass(slots=True)
class LineSplitter:
    """Cuts stdout into lines; empty lines are left out, and a line beyond `limit_bytes` becomes Dropped."""

    limit_bytes: int = MAX_LINE_BYTES
    _held: bytearray = field(default_factory=bytearray)
    _dropped_bytes: int = 0

    def feed(self, data: bytes) -> list[Line | Dropped]:
        """Return the lines that `data` completes.

        Split at once, because a container may write nothing but line feeds: a Python step for each of them
        is ten seconds for what one turn may write.
        """
        first, *rest = data.split(b"\n")
        self._hold(first)
        if not rest:
            return []
        found = self.finish()
        last = rest.pop()
        for piece in filter(None, rest):
            self._hold(piece)
            found += self.finish()
        self._hold(last)
        return found

    def finish(self) -> list[Line | Dropped]:
        """Return what is held as a last line, as at the end of the stream; nothing when nothing is held."""
        if self._dropped_bytes:
            dropped, self._dropped_bytes = Dropped(self._dropped_bytes), 0
            return [dropped]
        if not self._held:
            return []
        line = Line(bytes(self._held))
        self._held = bytearray()
        return [line]

    def _hold(self, piece: bytes) -> None:
        if self._dropped_bytes:
            self._dropped_bytes += len(piece)
        elif len(self._held) + len(piece) > self.limit_bytes:
            self._dropped_bytes = len(self._held) + len(piece)
            self._held = bytearray()
        else:
            self._held += piece


@dataclass(slots=True)
class Output:
    """All that one container writes: lines of stdout, the tail of stderr, and whether the caps still hold."""

    limit_bytes: int = MAX_OUTPUT_BYTES
    limit_lines: int = MAX_LINES
    total_bytes: int = 0
    lines: int = 0
    _frames: Demultiplexer = field(default_factory=Demultiplexer)
    _stdout: LineSplitter = field(default_factory=LineSplitter)
    _stderr: bytearray = field(default_factory=bytearray)

    @property
    def capped(self) -> bool:
        """Whether the container wrote more than it may; from then on `feed` discards."""
        return self.total_bytes > self.limit_bytes or self.lines > self.limit_lines

    @property
    def untrusted_stderr_tail(self) -> str:
        """The last STDERR_TAIL_BYTES of stderr as text, for logs alone."""
        return self._stderr.decode("utf-8", "replace")

    def feed(self, data: bytes) -> list[Line | Dropped]:
        """Return the lines that `data` completes; counts both streams. Raises MalformedStreamError."""
        if self.capped:
            return []
        found: list[Line | Dropped] = []
        for stream, piece in self._frames.feed(data):
            self.total_bytes += len(piece)
            if stream is Stream.STDERR:
                self._stderr += piece
                del self._stderr[:-STDERR_TAIL_BYTES]
            else:
                found += self._stdout.feed(piece)
        self.lines += len(found)
        return found[: max(0, len(found) - max(0, self.lines - self.limit_lines))]

    def finish(self) -> list[Line | Dropped]:
        """Return a last line without line feed, unless the caps were passed."""
        return [] if self.capped else self._stdout.finish()
