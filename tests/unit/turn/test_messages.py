from __future__ import annotations

import pytest

from runtime.agents.definition import Messages
from runtime.turn.events import Cause
from runtime.turn.messages import failure_text

MESSAGES = Messages(**{name: name for name in Messages.__dataclass_fields__} | {"error": "{error} {0} {x}"})


@pytest.mark.parametrize(
    ("cause", "text"),
    [
        (Cause.TIMEOUT, "timeout"),
        (Cause.EMPTY, "empty_model"),
        (Cause.BUSY, "busy"),
        (Cause.ENGINE, "spawn_error"),
        (Cause.SPAWNER, "spawn_error"),
        (Cause.CANCELLED, "cancelled"),
        (Cause.ABANDONED, "cancelled"),
        (Cause.STOPPING, "stopping"),
        (Cause.MODEL, "model {0} {x}"),
        (Cause.OUTPUT, "output {0} {x}"),
        (Cause.CRASH, "crash {0} {x}"),
        (Cause.INTERNAL, "internal {0} {x}"),
    ],
)
def test_each_cause_has_one_configured_message_and_error_names_the_cause(cause: Cause, text: str) -> None:
    assert failure_text(cause, MESSAGES) == text


def test_no_cause_is_left_out_and_none_is_empty() -> None:
    assert all(failure_text(cause, Messages()) for cause in Cause)
