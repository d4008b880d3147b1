"""Every way in which a turn can end, in one table: what happens, and what the visitor reads then.

`python -m tests.endings.table` writes it into docs/explanation/faults.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.endings.program import DEADLINES, EXITS, WRITTEN
from tests.endings.row import ANSWER, NOBODY, Model, Play
from tests.endings.services import (
    ASKED_TO_END,
    CANCELLED_LATE,
    CANCELS,
    ENGINE,
    FRONT_ENDS,
    LEFT,
    MODEL,
    QUEUED_TOO_LONG,
    REFUSALS,
    SPAWNER_ENDS,
)
from tests.harness.stack import REPO

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.endings.row import Row

SECTIONS: Final = {
    "What the program writes": WRITTEN,
    "How the program ends": EXITS,
    "What is there at the deadline": (*DEADLINES, QUEUED_TOO_LONG),
    "What the model does": MODEL,
    "What the visitor does": (*CANCELS.values(), ASKED_TO_END, CANCELLED_LATE, *LEFT),
    "Services that are told to end": (*FRONT_ENDS.values(), *SPAWNER_ENDS.values()),
    "Engine and services that fail": ENGINE,
    "Messages that get no turn": tuple(REFUSALS.values()),
}
TABLE: Final = tuple(row for rows in SECTIONS.values() for row in rows)

PAGE: Final = REPO / "docs" / "explanation" / "faults.md"
BEGIN: Final = "<!-- endings: written by python -m tests.endings.table -->\n"
END: Final = "<!-- end of endings -->\n"


def page() -> str:
    """Return the table as Markdown, with what marks its begin and end in the page."""
    return BEGIN + "\n".join(_lines()) + END


def _lines() -> Iterator[str]:
    for section, rows in SECTIONS.items():
        yield f"### {section}"
        yield ""
        yield "| what happens | the visitor reads | outcome | the spawner's reason | run in |"
        yield "|---|---|---|---|---|"
        yield from map(_line, rows)
        yield ""


def _line(row: Row) -> str:
    text = row.text if row.text in {ANSWER, NOBODY} else f"`{row.text}`"
    shown = ", after some of an answer" if row.partial and row.text != ANSWER else ""
    reason = {None: "", "": "none"}.get(row.reason, f"`{row.reason}`")
    place = "tests/endings" if isinstance(row.how, (Play, Model)) else row.how.file
    outcome = f"`{row.outcome}`" if row.outcome else ""
    return f"| {row.sentence} | {text}{shown} | {outcome} | {reason} | {place} |"


def write() -> None:
    """Write the table into the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + page() + rest.partition(END)[2])


if __name__ == "__main__":
    write()
