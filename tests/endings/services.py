"""The model, the services, the engine and the visitor: what a turn ends by from outside its container."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.endings.row import FINE, LONG, NOBODY, Model, Row, Run
from tests.faults import test_engine_operations as engine_operations

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

POINTS: Final = "tests/endings/test_points.py"
FAULTS: Final = "tests/faults/"
PROCESSES: Final = FAULTS + "test_engine_processes.py"
SERVICES: Final = FAULTS + "test_services.py"
OPERATIONS: Final = FAULTS + "test_engine_operations.py"
END_TO_END: Final = "tests/e2e/test_turns.py"

# -- what each outcome reads, where the row says no more ----------------------------------------------------
TEXTS: Final = {
    "": "the answer",
    "timeout": "timeout",
    "empty": "empty_model",
    "busy": "busy",
    "engine": "spawn_error",
    "spawner": "spawn_error",
    "model": "error",
    "crash": "error",
    "internal": "error",
    "cancelled": "cancelled",
    "abandoned": "cancelled",
    "too-long": "too_long",
    "stopping": "stopping",
}
STATES: Final = {"cancelled": "canceled", "abandoned": "canceled"}


def asks(sentence: str, *steps: dict[str, Any], outcome: str = "", **more: Any) -> Row:
    return Row(sentence, Model(steps), TEXTS[outcome], outcome, **more)


def run(
    file: str, test: str, sentence: str, outcome: str = "", reason: str | None = None, **more: Any
) -> Row:
    state = STATES.get(outcome, "completed")
    if reason is None and outcome == "engine":
        reason = "engine"  # the one end that the front tells so
    return Row(
        sentence,
        Run(file, test),
        **{"text": TEXTS[outcome], "state": state, **more},
        outcome=outcome,
        reason=reason,
    )


def operations(rows: Iterable[engine_operations.Row], sentence: str) -> tuple[Row, ...]:
    return tuple(run(OPERATIONS, one.sentence, sentence.format(one.sentence), one.outcome) for one in rows)


READ: Final = {"tool_use": {"name": "Read", "input": {"file_path": "/grounding/facts.md"}}}
CUT: Final = {"text": LONG, "chunks": 4, "delay_seconds": 0.1, "cut": True}

MODEL: Final = (
    asks("the model answers", {"text": FINE}),
    asks("the model answers bit by bit", {"text": LONG, "chunks": 8}, answer=LONG.strip(), partial=True),
    asks("the model reads a document and answers", READ, {"text": FINE}),
    asks("the model says nothing", {"text": ""}, outcome="empty"),
    asks(
        "the model proxy refuses with 403: the API does not want the request",
        {"status": 400},
        outcome="model",
    ),
    asks("the model proxy refuses with 403: the API is overloaded", {"status": 529}, outcome="model"),
    asks("the model proxy refuses with 402: the day's money is spent", outcome="model", persona="poor"),
    asks("the API closes before it answers", {"cut": "before"}, outcome="model"),
    asks("the API's stream breaks off, each time", CUT, outcome="model", partial=True),
    asks("the API's stream breaks off once", CUT | {"times": 1}, {"text": FINE}, partial=True),
    asks("the API's stream is no stream", {"raw": ["<html>down</html>\n\n"]}, outcome="model"),
    asks(
        "the API does not answer", {"hang": "before"}, outcome="timeout", persona="patient", reason="deadline"
    ),
    asks(
        "the API's stream stops and stays open",
        {"text": LONG, "chunks": 4, "delay_seconds": 0.1, "hang": True},
        outcome="timeout",
        persona="patient",
        reason="deadline",
        partial=True,
    ),
    run(
        END_TO_END,
        "test_a_model_that_calls_tools_without_end_is_stopped",
        "the model calls tools without end",
        "model",
    ),
    run(
        SERVICES,
        "test_a_model_proxy_killed_in_mid_turn_is_told_at_once",
        "the model proxy is killed in mid-turn",
        "model",
    ),
    run(
        SERVICES,
        "test_a_model_proxy_frozen_in_mid_turn_is_told_in_time",
        "the model proxy hangs in mid-turn",
        "timeout",
    ),
    run(
        SERVICES,
        "test_a_model_proxy_frozen_before_the_turn_is_told_and_opens_no_door_later",
        "the model proxy hangs before the turn",
        "engine",
    ),
    run(
        END_TO_END,
        "test_a_cli_killed_in_mid_turn_still_gives_one_answer",
        "the CLI is killed while the model is silent",
        "crash",
    ),
)

# -- at each point of a turn --------------------------------------------------------------------------------
WHILE: Final = {
    "queued": "while the turn waits for the one before it",
    "before the start": "while the container is made",
    "at the start": "while the container starts",
    "in mid-output": "in mid-output",
    "after the result": "after the program's result",
    "during the cleanup": "while the container is removed",
}


def at(test: str, what: str, outcomes: Mapping[str, str], reasons: Mapping[str, str]) -> dict[str, Row]:
    """Return what happens at each point, as `test` brings it about."""
    return {
        point: run(
            POINTS,
            test,
            f"{what} {WHILE[point]}",
            outcome,
            reasons.get(point, ""),
            partial=point == "in mid-output",
        )
        for point, outcome in outcomes.items()
    }


CANCELS: Final = at(
    "test_a_turn_that_is_cancelled_at_any_point_is_told_so",
    "the visitor cancels",
    dict.fromkeys(WHILE, "cancelled"),
    dict.fromkeys(list(WHILE)[1:-1], "disconnect") | {"during the cleanup": "exited"},
)
FRONT_ENDS: Final = at(
    "test_a_front_that_is_told_to_end_gives_every_turn_its_one_answer",
    "the front is told to end",
    dict.fromkeys(WHILE, "stopping") | {"after the result": "", "during the cleanup": ""},
    dict.fromkeys(list(WHILE)[1:4], "disconnect")
    | {"after the result": "disconnect", "during the cleanup": "exited"},
)
SPAWNER_ENDS: Final = at(
    "test_a_spawner_that_is_told_to_end_gives_every_turn_its_one_answer",
    "the spawner is told to end",
    dict.fromkeys(WHILE, "spawner") | {"after the result": "", "during the cleanup": ""},
    dict.fromkeys(list(WHILE)[1:5], "shutdown") | {"during the cleanup": "exited"},
)
ASKED_TO_END: Final = run(
    "tests/contract/test_engine_turn.py",
    "test_delete_answers_when_the_turn_and_its_container_are_gone",
    "the front asks for the end of a turn and listens on",
    "cancelled",
    "cancelled",
)
CANCELLED_LATE: Final = run(
    POINTS,
    "test_an_answer_that_is_there_stays_when_it_is_cancelled",
    "the visitor cancels after the answer",
    reason="exited",
)
QUEUED_TOO_LONG: Final = run(
    POINTS,
    "test_a_deadline_in_the_queue_is_told_as_one",
    "the turn before it lasts until the deadline",
    "timeout",
)
_HANGS_UP: Final = "test_a_turn_that_nobody_watches_any_more_is_cancelled"
LEFT: Final = (
    run(POINTS, _HANGS_UP, "the visitor hangs up on a stream", "abandoned", "disconnect", partial=True),
    run(POINTS, _HANGS_UP, "the visitor hangs up on a blocking call", "abandoned", "disconnect"),
)
FRONT_KILLED: Final = run(
    POINTS,
    "test_a_front_that_is_killed_ends_its_turn_at_the_spawner",
    "the front is killed in mid-output",
    reason="disconnect",
    text=NOBODY,
    partial=True,
)

# -- messages that get no turn ------------------------------------------------------------------------------
_NO_TURN: Final = "test_a_message_that_gets_no_turn_is_told_why"
REFUSALS: Final = {
    "empty": run(POINTS, _NO_TURN, "a message without text", "empty", "", text="empty", state="failed"),
    "too long": run(POINTS, _NO_TURN, "a message that is too long", "too-long", ""),
    "no place at the front": run(POINTS, _NO_TURN, "every place of the front is taken", "busy", ""),
    "a full queue": run(
        POINTS,
        "test_a_message_to_a_long_queue_is_told_that_the_agent_is_busy",
        "the conversation's queue is full",
        "busy",
        "",
    ),
    "no place at the spawner": run(
        POINTS,
        "test_a_turn_beyond_the_spawners_ceiling_is_told_that_the_agent_is_busy",
        "every place of the spawner is taken",
        "busy",
        "",
    ),
    "stopping": run(
        POINTS,
        "test_a_front_that_is_told_to_end_gives_every_turn_its_one_answer",
        "a message to a front that was told to end",
        "stopping",
        "",
    ),
    "no such agent at the spawner": run(
        POINTS,
        "test_a_spawner_that_knows_no_such_agent_is_told_as_a_fault_of_ours",
        "the spawner knows no such agent",
        "internal",
        "",
    ),
}

# -- engine and services that fail --------------------------------------------------------------------------
ENGINE: Final = (
    *operations(engine_operations.BEFORE_THE_ANSWER, "engine: {}"),
    *operations(engine_operations.AFTER_THE_ANSWER, "engine, after the answer: {}"),
    *operations(engine_operations.AT_THE_END, "engine, when the visitor has cancelled: {}"),
    run(
        PROCESSES,
        "test_no_engine_is_told_at_once_and_the_next_visitor_after_its_return_is_answered",
        "no engine",
        "engine",
    ),
    run(
        PROCESSES,
        "test_an_engine_killed_at_a_step_gives_one_answer_and_nothing_is_left",
        "the engine is killed at create, attach or start",
        "engine",
    ),
    run(
        PROCESSES,
        "test_an_engine_killed_in_mid_turn_whose_container",
        "the engine is killed in mid-turn",
        "engine",
    ),
    run(
        PROCESSES,
        "test_an_engine_killed_after_the_answer_takes_nothing_from_it",
        "the engine is killed after the program's result",
    ),
    run(
        PROCESSES,
        "test_an_attach_connection_that_breaks_in_mid_turn_ends_the_turn",
        "the attach connection breaks in mid-turn",
        "crash",
    ),
    run(
        PROCESSES,
        "test_an_engine_frozen_at_a_step_gives_one_answer_and_nothing_is_left",
        "the engine hangs at create, attach or start",
        "timeout",
    ),
    run(
        PROCESSES,
        "test_an_engine_frozen_in_mid_turn_gives_one_answer_and_nothing_is_left",
        "the engine hangs in mid-turn",
        "timeout",
    ),
    run(
        PROCESSES,
        "test_an_engine_frozen_after_the_answer_takes_nothing_from_it",
        "the engine hangs after the program's result",
    ),
    run(
        PROCESSES,
        "test_an_image_that_is_removed_under_the_spawner_is_told_and_a_new_one_is_used_after_a_restart",
        "the turn image is removed",
        "engine",
    ),
    run(
        PROCESSES,
        "test_a_full_doors_volume_is_told_and_nothing_is_left",
        "the doors volume is full",
        "engine",
    ),
    run(
        SERVICES,
        "test_a_spawner_killed_in_mid_turn_is_told_at_once_and_clears_up_when_it_is_back",
        "the spawner is killed in mid-turn",
        "spawner",
    ),
    run(SERVICES, "test_a_visitor_without_a_spawner_is_told_at_once", "there is no spawner", "spawner"),
    run(
        SERVICES,
        "test_a_spawner_frozen_in_mid_turn_is_told_in_time_and_clears_up_when_it_goes_on",
        "the spawner hangs in mid-turn",
        "timeout",
    ),
    FRONT_KILLED,
)
