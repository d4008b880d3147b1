"""Which containers must go, by what their labels say. Pure: service.py asks, at start and on a timer.

Two clocks end a turn: turn_init's own inside, and this one outside (architecture §4, "Lifecycle"). Foreign
containers that resemble ours stay untouched: another spawner's run under another owner id, and a label is
only believed past its deadline on a container of our own turn image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from runtime import layout

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

INTERVAL_SECONDS = 15.0
_MAX_DIGITS = 12


class Candidate(Protocol):
    """A container as the engine lists it (engine.Found)."""

    @property
    def id(self) -> str:
        """64 hex digits."""
        ...

    @property
    def image_id(self) -> str:
        """`sha256:…`."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """All labels."""
        ...


def doomed(
    candidates: Iterable[Candidate], *, owner: str, image_id: str, live: Collection[str], now: float
) -> list[str]:
    """Return the ids of those to remove: ours without a live turn, and any on our image past its deadline.

    `live` are the turns that run now (none at start: whatever a restarted spawner finds of its own goes);
    `now` is Unix time in seconds.
    """
    return [
        one.id
        for one in candidates
        if layout.LABEL_TURN in one.labels
        and (
            (one.labels.get(layout.LABEL_OWNER) == owner and one.labels[layout.LABEL_TURN] not in live)
            or (one.image_id == image_id and _is_past(one.labels.get(layout.LABEL_DEADLINE, ""), now))
        )
    ]


def _is_past(untrusted_deadline: str, now: float) -> bool:
    text = untrusted_deadline
    return text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS and int(text) < now
