"""What each figure should be, in one table: `just bench` prints it beside what it measured,
and exits 1 where a figure is not that.

No test asserts any of it: a busy machine is slow without being wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.bench.numbers import Bound, Wanted

if TYPE_CHECKING:
    from collections.abc import Mapping

WANTED: Final[Mapping[str, Wanted]] = {
    "front-rate": Wanted(
        Bound.AT_LEAST, 0.8
    ),  # of the A2A SDK's own minimal server, for each kind of request
    "front-memory": Wanted(Bound.AT_MOST, 1.1),  # of the memory after the first 500 messages
    "front-health": Wanted(Bound.BELOW, 50, "ms"),
    "stack-health": Wanted(Bound.BELOW, 50, "ms"),
}
AT_REST_MB: Final[Mapping[str, Wanted]] = {
    "front": Wanted(Bound.AT_MOST, 150, "MB"),
    "spawner": Wanted(Bound.AT_MOST, 90, "MB"),
    "modelproxy": Wanted(Bound.AT_MOST, 110, "MB"),
    "ingress": Wanted(Bound.AT_MOST, 30, "MB"),
}
