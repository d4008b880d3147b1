"""Every figure of `just bench`, in the order in which they are measured.

Those that need no engine come first, so that they are measured and printed where there is none.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from runtime.agents.instance import load_instance
from runtime.errors import ServiceUnreachable
from tests.bench import front_memory, front_rate, health, memory_at_rest, request_bytes, turn_times
from tests.harness.stack import REPO, Stack

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.bench.numbers import Row


@dataclass
class Bench:
    """One run: how much is asked for, and the stack that its figures share, started by the first of them."""

    count: int
    quick: bool
    _running: Stack | None = None
    _life: contextlib.ExitStack = field(default_factory=contextlib.ExitStack)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._life.close()

    @property
    def stack(self) -> Stack:
        """The running stack. Raises ServiceUnreachable when it does not start."""
        if self._running is None:
            try:
                self._running = self._life.enter_context(Stack())
            except AssertionError as error:
                raise ServiceUnreachable(
                    f"The stack did not start. {error}", "docker compose logs"
                ) from error
        return self._running

    @property
    def slots(self) -> int:
        """Turns at a time in the stack."""
        return load_instance(REPO, "ada", {}).limits.max_concurrency


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: what `--only` calls it, how it is measured, and whether that takes an engine."""

    name: str
    measure: Callable[[Bench], list[Row]]
    needs_engine: bool = True


FIGURES = (
    Figure("front-rate", lambda bench: front_rate.measure(quick=bench.quick), needs_engine=False),
    Figure("front-health", lambda bench: health.measure_front(quick=bench.quick), needs_engine=False),
    Figure("front-memory", lambda bench: front_memory.measure(quick=bench.quick), needs_engine=False),
    # First of the stack's, while nothing has been asked of it.
    Figure("memory-at-rest", lambda bench: memory_at_rest.measure(bench.stack)),
    Figure("request-bytes", lambda bench: request_bytes.measure(bench.stack)),
    Figure("turn-times", lambda bench: turn_times.measure(bench.stack, bench.count)),
    Figure(
        "stack-health",
        lambda bench: health.measure_stack(bench.stack, bench.slots, quick=bench.quick),
    ),
)
