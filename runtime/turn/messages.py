"""Which of the agent's configured messages a visitor reads when a turn has no answer. Pure.

Why only these: the reason of a failure is for the operator's log, never for a visitor (architecture §6).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.turn.events import Cause

if TYPE_CHECKING:
    from runtime.agents.definition import Messages


def failure_text(cause: Cause, messages: Messages) -> str:
    """Return the configured message of a cause; `{error}` in `error` becomes the cause's one word."""
    text = {
        Cause.TIMEOUT: messages.timeout,
        Cause.EMPTY: messages.empty_model,
        Cause.BUSY: messages.busy,
        Cause.ENGINE: messages.spawn_error,
        Cause.SPAWNER: messages.spawn_error,
        Cause.CANCELLED: messages.cancelled,
        Cause.ABANDONED: messages.cancelled,
        Cause.STOPPING: messages.stopping,
    }.get(cause)
    # Not str.format: a configured text may hold other braces, and must never fail.
    return messages.error.replace("{error}", cause.value) if text is None else text
