"""Says in which line and column of a text something stands, as an editor counts them."""

from __future__ import annotations

import bisect
import re
from dataclasses import dataclass, field

_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")


@dataclass(slots=True)
class Lines:
    """One text with the places where its lines begin; YAML's line ends count, so that both agree.

    Made once for a text, because counting from its start for each of many places takes quadratic time.
    """

    text: str
    starts: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.starts = [0, *(match.end() for match in _BREAK.finditer(self.text))]

    def place(self, offset: int) -> tuple[int, int]:
        """Return line and column, both from 1, of the character at `offset`."""
        line = bisect.bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def whole(self, offset: int) -> str:
        """Return the line in which `offset` lies, without its end."""
        line = self.place(offset)[0]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        return self.text[self.starts[line - 1] : end].rstrip("\r\n\x85\u2028\u2029")


def undecodable(raw: bytes, error: UnicodeDecodeError) -> tuple[int, int]:
    """Return line and column of the first byte that is not UTF-8; what comes before it is."""
    before = raw[: error.start].decode("utf-8-sig", "replace")
    return Lines(before).place(len(before))
