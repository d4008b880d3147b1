"""Says which sizes of prompt and grounding make answers slow, with the number and the mend. Pure.

The numbers are what the pinned CLI does (docs/how-to/grounding.md tells how they were measured): a request
without persona is 12 KB; prompt and inlined documents stand in every request of a turn; `Read` gives at most
25,000 tokens at once and refuses a file above 256 KiB; `Glob` lists 100 files and `Grep` 250; `Grep` leaves a
line above 500 bytes out of what it shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

READ_WHOLE_BYTES = 80_000  # 25,000 tokens of English with the line numbers that Read adds
READ_MAX_BYTES = 256 * 1024
GREP_LINE_BYTES = 500
GLOB_FILES = 100
PERSONA_BYTES = 100_000
MODEL_BYTES = 600_000  # 150,000 tokens: with question and documents about what a model takes at once
BYTES_PER_TOKEN = 4
EACH = 5  # files named for one reason; the rest is counted


@dataclass(frozen=True, slots=True)
class Document:
    """One file that a turn can read: its path as shown, its size, and the first line that Grep leaves out.

    `long_line` counts from 1; 0 is none, or not a text.
    """

    where: str
    size: int
    long_line: int = 0


@dataclass(frozen=True, slots=True)
class Slow:
    """One reason why answers will be slow. `line` 0 is the whole file."""

    where: str
    line: int
    message: str
    mend: str


def slow_documents(documents: list[Document]) -> Iterator[Slow]:
    """Yield what is too large to be read in one step, at most five files for each reason."""
    refused = [document for document in documents if document.size > READ_MAX_BYTES]
    parts = [document for document in documents if READ_WHOLE_BYTES < document.size <= READ_MAX_BYTES]
    hidden = [document for document in documents if document.long_line and document.size > READ_WHOLE_BYTES]
    mend = "split it into files of one subject each, below 80,000 bytes"
    for document in refused[:EACH]:
        message = f"has {document.size} bytes; Read refuses a file above {READ_MAX_BYTES} at the first try"
        yield Slow(document.where, 0, message, mend)
    for document in parts[:EACH]:
        message = f"has {document.size} bytes; Read gives about {READ_WHOLE_BYTES} of them in one step"
        yield Slow(document.where, 0, message, mend)
    for document in hidden[:EACH]:
        message = f"is a line of more than {GREP_LINE_BYTES} bytes, which Grep finds and does not show"
        yield Slow(document.where, document.long_line, message, "break lines at sentences")
    more = sum(max(0, len(found) - EACH) for found in (refused, parts, hidden))
    if more:
        yield Slow(
            documents[0].where.rpartition("/")[0], 0, f"{more} more places like these", "mend them too"
        )


def slow_folder(where: str, files: int) -> Iterator[Slow]:
    """Yield a reason when a folder has more files than a model sees with one look."""
    if files > GLOB_FILES:
        message = f"holds {files} files; Glob shows {GLOB_FILES} of them"
        yield Slow(where, 0, message, "say in the prompt which folder or name belongs to which subject")


def slow_persona(prompt_bytes: int, inlined_bytes: int) -> tuple[str, str] | None:
    """Return message and mend when prompt and inlined documents weigh down every request of a turn."""
    total = prompt_bytes + inlined_bytes
    if total <= PERSONA_BYTES:
        return None
    tokens = total // BYTES_PER_TOKEN
    parts = f"prompt and documents told up front are {total} bytes, about {tokens} tokens in every request"
    if total > MODEL_BYTES:
        return (
            f"{parts}, which leaves many models no room",
            f"tell less up front, below {PERSONA_BYTES} bytes",
        )
    return parts, f"tell less up front, below {PERSONA_BYTES} bytes; a model can open the rest"
