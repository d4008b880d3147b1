"""What a client may rely on, as data: each sentence with the tests that prove it.

Where Gatehouse does otherwise than clients of A2A may expect, `difference` names the line of
docs/explanation/differences.md that says why. `tests/test_behaviours.py` fails when a test or a line is not
there; the second half of docs/reference/controls.md is made from this table (`python -m tests.controls`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[1]
DIFFERENCES = REPO / "docs" / "explanation" / "differences.md"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One sentence that is true of Gatehouse.

    `tests` are `path::name`. `difference` is how a line of the differences page begins, without its marks.
    `pending` is what no test shows yet (empty: all of it is shown).
    """

    group: str
    id: str
    sentence: str
    tests: tuple[str, ...] = ()
    difference: str = ""
    pending: str = ""


def at(file: str, *names: str) -> tuple[str, ...]:
    """Return the ids of tests of one file below tests/."""
    return tuple(f"tests/{file}::{name}" for name in names)


ANSWERS = "a2a/test_answers.py"
LINES = "a2a/test_lines.py"
CANCEL = "a2a/test_cancel.py"
CARD = "a2a/test_card.py"
CONVERSATIONS = "a2a/test_memory_over_http.py"
WIRE = "a2a/test_wire.py"
SOCKETS = "a2a/test_sockets.py"
PROCESS = "a2a/test_process.py"
RELOAD = "a2a/test_reload.py"
FORGET = "a2a/test_forget.py"
SECURITY = "a2a/test_security_txt.py"
PYTHON = "a2a/test_python_client.py"
STREAMS = "a2a/test_streams.py"
DISCONNECT = "a2a/test_disconnect.py"
SHUTDOWN = "a2a/test_shutdown.py"
OVERLOAD = "a2a/test_overload.py"
NOTICE = "a2a/test_notice.py"
ERRORS = "a2a/test_errors.py"
DIALECTS = "a2a/test_dialects.py"
BOUNDS = "a2a/test_bounds.py"
HERMETIC = "hermetic/test_answer_contract.py"
AROUND = "hermetic/test_surroundings.py"
A_PROCESS = "hermetic/test_lines.py"
STREAM = "unit/turn/test_stream.py"
SAID = "unit/turn/test_lines.py"
PLAN = "unit/turn/test_plan.py"
MEMORY = "unit/front/test_memory.py"
ADMIT = "unit/front/test_admit.py"
CLEAN = "unit/front/test_dialects.py"
RESTORED = "unit/front/test_restored_codes.py"
EXAMINE = "unit/front/test_jsonrpc.py"
TASKS = "unit/front/test_tasks.py"
IDENTITY = "unit/front/test_identity.py"
CALL = "unit/spawner/test_cli_call.py"
DENIED = "unit/spawner/test_denylist.py"
POLICY = "unit/spawner/test_policy.py"
GRANTS = "unit/sandbox/test_grants.py"
SERVING = "unit/test_serving.py"
INSTANCE = "unit/agents/test_instance.py"
INLINE = "unit/agents/test_inline.py"
HONESTY = "unit/agents/test_honesty.py"
PERSONAS = "unit/agents/test_personas.py"
TOOLS = "contract/test_cli_tools.py"
ENGINE = "contract/test_engine_turn.py"
GROUNDING = "contract/test_cli_grounding.py"
INIT = "contract/test_cli_init.py"
THROUGH = "escape/test_through_the_cli.py"
INSIDE = "escape/test_inside.py"
E2E = "e2e/test_turns.py"
ENDINGS = "endings/test_endings.py"
POINTS = "endings/test_points.py"
ITSELF = "test_behaviours.py"
OFF = "a2a/test_off.py"
ORIGINS = "a2a/test_origins.py"
COURSE = "clients/test_course.py"
GATEWAY = "clients/test_gateway.py"
TELLING = "unit/front/test_telling.py"
SETTINGS = "unit/front/test_settings.py"
ENDINGS_TABLE = "endings/test_table.py"
PRIVACY = "unit/test_privacy_page.py"
CLI_FORGET = "unit/cli/test_forget.py"
VISITORS = "faults/test_visitors.py"
WIRING = "a2a/test_settings_wiring.py"

BEHAVIOURS = (
    # --- the turn's call ------------------------------------------------------------------------------------
    Behaviour(
        "The turn's call",
        "B51",
        "Each turn is one fresh run of the CLI that serves nobody else and is gone when it has "
        "answered; one answer is read from it.",
        (
            *at(A_PROCESS, "test_each_turn_is_a_process_of_its_own_that_is_gone_when_it_has_answered"),
            *at(CALL, "test_a_session_is_neither_kept_nor_continued"),
            *at(HERMETIC, "test_two_turns_at_once_do_not_meet"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B52",
        "The CLI's arguments come in one reviewed order; prompt and persona are not among them.",
        (
            *at(CALL, "test_the_flags_come_in_one_order_after_the_program"),
            *at(POLICY, "test_the_body_is_the_reviewed_one"),
        ),
        difference="The prompt comes on stdin",
    ),
    Behaviour(
        "The turn's call",
        "B53",
        "There is one form of the call, and it streams partial messages, for blocking messages too.",
        at(CALL, "test_there_is_one_form_of_the_call_and_it_streams"),
        difference="The CLI is started in one form",
    ),
    Behaviour(
        "The turn's call",
        "B54",
        "The persona is added to the CLI's own prompt and replaces none of it.",
        at(CALL, "test_the_persona_is_added_by_file_and_replaces_nothing"),
        difference="The prompt comes on stdin",
    ),
    Behaviour(
        "The turn's call",
        "B55",
        "A turn works in the copy of the grounding.",
        (
            *at(POLICY, "test_the_body_is_the_reviewed_one"),
            *at(AROUND, "test_it_runs_in_the_copy_of_the_grounding"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B56",
        "The CLI reads one line and then the end of its input; a line of 256 KiB comes back from it whole.",
        at(
            HERMETIC,
            "test_what_the_visitor_wrote_reaches_the_cli_framed_and_as_one_line",
            "test_a_line_of_256_kib_is_read",
        ),
        difference="The prompt comes on stdin",
    ),
    Behaviour(
        "The turn's call",
        "B57",
        "Settings, hooks and servers of a user or in the grounding do nothing in a turn.",
        (
            *at(CALL, "test_only_a_project_s_settings_count_and_no_permission_is_ever_waited_for"),
            *at(GROUNDING, "test_a_hostile_grounding_changes_neither_the_request_nor_where_it_goes"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B58",
        "No run waits for somebody's permission, and none skips the CLI's own checks.",
        at(
            CALL,
            "test_only_a_project_s_settings_count_and_no_permission_is_ever_waited_for",
            "test_nothing_lets_the_cli_skip_its_own_checks",
        ),
    ),
    Behaviour(
        "The turn's call",
        "B59",
        "What a turn may use is one comma-separated argument, made from the closed grammar of "
        "`allowed_tools`.",
        (
            *at(CALL, "test_what_is_allowed_and_what_is_denied_are_one_argument_each"),
            *at(POLICY, "test_bash_is_never_a_tool_and_a_grant_is_an_mcp_tool"),
        ),
        difference="`allowed_tools` has one spelling for a script",
    ),
    Behaviour(
        "The turn's call",
        "B60",
        "What a turn may never run is one comma-separated argument of 145 names in eleven groups.",
        at(
            DENIED,
            "test_there_are_145_names_in_eleven_groups_and_none_twice",
            "test_the_list_is_one_argument_of_deny_rules",
        ),
    ),
    Behaviour(
        "The turn's call",
        "B61",
        "Every reader, interpreter and network program of the known list is denied by name.",
        at(DENIED, "test_the_names_that_the_seed_asks_for_are_denied_and_python3_is_not"),
    ),
    Behaviour(
        "The turn's call",
        "B62",
        "`python` and `python2` are denied by name, `python3` is not: granted scripts run by it.",
        at(DENIED, "test_the_names_that_the_seed_asks_for_are_denied_and_python3_is_not"),
    ),
    Behaviour(
        "The turn's call",
        "B63",
        "The denied names are a backstop: no turn has a shell that they could stop.",
        (
            *at(POLICY, "test_bash_is_never_a_tool_and_a_grant_is_an_mcp_tool"),
            *at(THROUGH, "test_f15_there_is_no_bash_for_a_hostile_model"),
        ),
        difference="The deny rules for Bash are a backstop",
    ),
    Behaviour(
        "The turn's call",
        "B64",
        "A granted script, and it alone, is told its conversation in `AGENT_CONTEXT_ID`.",
        (
            *at(TOOLS, "test_a_granted_script_runs_with_its_arguments_and_its_context_and_nothing_else"),
            *at(AROUND, "test_the_context_reaches_a_granted_script_and_it_alone"),
        ),
        difference="`AGENT_CONTEXT_ID` is a digest",
    ),
    Behaviour(
        "The turn's call",
        "B65",
        "Without a context `AGENT_CONTEXT_ID` is absent, never empty.",
        (
            *at(GRANTS, "test_an_empty_context_is_absent"),
            *at(AROUND, "test_the_environment_is_the_parents_with_the_switches_and_no_context"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B66",
        "A message without a context id gets one of the server's making; `default` is an id like any "
        "other that remembers nothing.",
        (
            *at(LINES, "test_a_message_without_a_context_gets_one_that_nobody_can_guess"),
            *at(CONVERSATIONS, "test_a_guessable_context_id_is_echoed_and_remembers_nothing"),
        ),
        difference="Memory belongs to context ids that nobody can guess",
    ),
    Behaviour(
        "The turn's call",
        "B67",
        "The answer is the result's `result`, else its `text`; what is no event of the CLI's is "
        "never shown; a timeout, an empty answer and a CLI that cannot be started have each their "
        "own configured text.",
        (
            *at(
                SAID,
                "test_a_result_without_a_result_field_is_read_from_its_text",
                "test_what_is_no_event_of_the_cli_s_is_never_shown_as_an_answer",
            ),
            *at(
                HERMETIC,
                "test_whatever_the_cli_does_the_visitor_gets_one_answer",
                "test_at_the_deadline_the_visitor_is_asked_to_try_again",
                "test_a_cli_that_cannot_be_started_is_the_overloaded_message",
            ),
        ),
        difference="The CLI is started in one form",
    ),
    Behaviour(
        "The turn's call",
        "B68",
        "A turn tells steps, the text so far and one end, in that order.",
        (
            *at(HERMETIC, "test_a_stream_shows_steps_and_a_growing_answer_before_the_end"),
            *at(STREAM, "test_no_bytes_and_no_json_raise_and_every_turn_has_one_non_empty_end"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B69",
        "The first result of the CLI decides, whatever was said before.",
        (
            *at(STREAM, "test_the_result_is_the_answer_whatever_was_said_before"),
            *at(SAID, "test_the_result_field_goes_before_the_text_field"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B70",
        "A tool call is a step; what is said after the last one is kept for the case that no result comes.",
        (
            *at(
                SAID,
                "test_text_and_tools_of_one_message_are_told_apart",
                "test_what_is_said_before_a_tool_call_is_no_answer",
            ),
            *at(STREAM, "test_without_a_result_the_text_after_the_last_tool_call_is_the_answer"),
        ),
        difference="Only what the model says after its last tool call",
    ),
    Behaviour(
        "The turn's call",
        "B71",
        "Text grows from the model's text alone; arguments of tools and its thinking never show.",
        at(STREAM, "test_tool_arguments_and_thinking_never_show"),
    ),
    Behaviour(
        "The turn's call",
        "B72",
        "A snapshot is at least 48 characters longer than the one before it and begins the answer.",
        at(STREAM, "test_snapshots_grow_by_at_least_48_characters_and_begin_the_answer"),
    ),
    Behaviour(
        "The turn's call",
        "B73",
        "A step is told in fixed words and, for a file, its base name.",
        at(STREAM, "test_a_step_is_made_of_fixed_words_and_a_base_name"),
        difference="A step is told in fixed words",
    ),
    Behaviour(
        "The turn's call",
        "B74",
        "A line that cannot be read is skipped.",
        at(
            STREAM,
            "test_fault_18_a_line_that_is_no_object_is_skipped",
            "test_no_bytes_and_no_json_raise_and_every_turn_has_one_non_empty_end",
        ),
    ),
    Behaviour(
        "The turn's call",
        "B75",
        "A CLI that cannot be started is one answer with the configured text.",
        at(
            HERMETIC,
            "test_a_cli_that_cannot_be_started_is_the_overloaded_message",
            "test_a_cli_that_goes_away_between_start_and_turn_is_the_same",
        ),
    ),
    Behaviour(
        "The turn's call",
        "B76",
        "At the end of a turn, cancelled or failed or answered, its processes are killed and waited for.",
        (
            *at(
                HERMETIC,
                "test_a_cancelled_turn_ends_its_process_before_the_cancellation_is_through",
                "test_a_turn_that_is_left_takes_the_cli_and_its_children_with_it",
            ),
            *at(ENGINE, "test_delete_answers_when_the_turn_and_its_container_are_gone"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B77",
        "Every turn is one non-empty answer within `timeout`.",
        (
            *at(
                ANSWERS,
                "test_each_failure_is_one_configured_text_in_artifact_and_message",
                "test_a_runner_that_never_ends_is_ended_by_the_watchdog",
            ),
            *at(HERMETIC, "test_whatever_the_cli_does_the_visitor_gets_one_answer"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B78",
        "A line of 256 KiB is read, and one of up to 1 MiB.",
        (
            *at(HERMETIC, "test_a_line_of_256_kib_is_read"),
            *at(SAID, "test_a_line_of_exactly_the_limit_is_read"),
        ),
        difference="A line of the CLI's may be 1 MiB long",
    ),
    Behaviour(
        "The turn's call",
        "B79",
        "A line over the limit is skipped, and the turn goes on to its answer.",
        (
            *at(STREAM, "test_a_line_over_the_cap_is_skipped"),
            *at(HERMETIC, "test_whatever_the_cli_does_the_visitor_gets_one_answer"),
            *at(ENGINE, "test_a_line_beyond_the_cap_is_dropped_and_the_next_one_is_not"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B80",
        "A turn has one deadline, which silence does not pass and lines that keep coming do not move.",
        (
            *at(A_PROCESS, "test_lines_that_keep_coming_give_a_turn_no_more_time"),
            *at(
                HERMETIC, "test_a_cli_that_says_nothing_meets_the_deadline_before_the_turns_own_time_is_over"
            ),
            *at(ENGINE, "test_the_deadline_ends_a_turn_that_says_nothing"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B81",
        "At the deadline the visitor reads the configured “try again”, though text was streamed before.",
        (
            *at(HERMETIC, "test_at_the_deadline_the_visitor_is_asked_to_try_again"),
            *at(STREAM, "test_fault_16_a_deadline_is_a_timeout_even_when_text_was_said"),
        ),
        difference="A timeout discards a partial answer",
    ),
    Behaviour(
        "The turn's call",
        "B82",
        "Without a result what was said is the answer.",
        (
            *at(HERMETIC, "test_whatever_the_cli_does_the_visitor_gets_one_answer"),
            *at(
                STREAM,
                "test_without_a_result_the_text_after_the_last_tool_call_is_the_answer",
                "test_fault_18_text_seen_only_as_deltas_is_the_fallback",
            ),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B83",
        "Without a result and without a word the answer is the configured one for that.",
        (
            *at(STREAM, "test_without_a_result_and_without_text_there_is_no_answer"),
            *at(HERMETIC, "test_whatever_the_cli_does_the_visitor_gets_one_answer"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B84",
        "A part of the text that was lost on the way is in the final answer.",
        (
            *at(HERMETIC, "test_a_lost_delta_is_mended_by_the_final_answer"),
            *at(SAID, "test_the_answer_may_say_other_than_the_last_snapshot"),
        ),
    ),
    Behaviour(
        "The turn's call",
        "B85",
        "A CLI that fails, crashes or says nothing still gives one non-empty answer.",
        (
            *at(HERMETIC, "test_whatever_the_cli_does_the_visitor_gets_one_answer"),
            *at(STREAM, "test_a_crash_before_an_answer_is_a_crash_and_deltas_are_not_enough"),
        ),
        difference="A CLI that ends with an exit code and without a word",
    ),
    Behaviour(
        "The turn's call",
        "B86",
        "The answer contract is tested with a stub in the CLI's place, without an engine.",
        at(A_PROCESS, "test_no_test_here_needs_an_engine_or_another_program_than_the_stub"),
    ),
    Behaviour(
        "The turn's call",
        "B87",
        "One command runs every check and every test, and it is the one that CI runs.",
        at(ITSELF, "test_ci_runs_the_one_command_that_everybody_has"),
    ),
    Behaviour(
        "The turn's call",
        "B88",
        "Documents can be told with the persona, a faster model can be named, and a turn has 90 "
        "seconds unless its instance says otherwise.",
        (
            *at(INLINE, "test_the_persona_stays_first_and_each_file_is_whole_under_its_name"),
            *at(INSTANCE, "test_every_key_reaches_the_definition"),
            *at(PLAN, "test_the_plan_names_agent_context_visitor_and_what_is_left_of_the_timeout"),
        ),
    ),
    # --- server and discovery -------------------------------------------------------------------------------
    Behaviour(
        "Server and discovery",
        "B89",
        "One function makes the app of an agent, with every route in it.",
        (
            *at(
                CARD,
                "test_health_is_exactly_the_status_and_the_agent",
                "test_both_well_known_paths_serve_the_same_bytes",
                "test_the_card_follows_when_the_demo_gives_way_to_a_model",
            ),
            *at(SECURITY, "test_the_file_is_plain_text_and_never_names_the_host_that_was_asked"),
            *at(ANSWERS, "test_send_answers_one_completed_task_with_the_same_text_twice"),
        ),
    ),
    Behaviour(
        "Server and discovery",
        "B90",
        "Tasks are kept in memory, bounded in number, age and bytes, and can be read back meanwhile.",
        (
            *at(ANSWERS, "test_a_finished_task_can_be_read_back_in_both_dialects"),
            *at(
                TASKS,
                "test_the_oldest_task_goes_when_there_are_too_many",
                "test_a_task_is_gone_after_its_age",
            ),
        ),
        difference="Tasks are kept for 24 hours",
    ),
    Behaviour(
        "Server and discovery",
        "B91",
        "JSON-RPC is POST at `/`; GET there is 405.",
        (
            *at(WIRE, "test_get_on_the_endpoint_is_405"),
            *at(ANSWERS, "test_send_answers_one_completed_task_with_the_same_text_twice"),
        ),
    ),
    Behaviour(
        "Server and discovery",
        "B92",
        "The method names of 0.3 and of 1.0 are served at the same address.",
        (
            *at(CLEAN, "test_the_method_names_are_those_that_the_sdk_knows"),
            *at(DIALECTS, "test_each_cell_of_the_matrix_is_what_the_rule_says"),
            *at(ERRORS, "test_the_rows_that_requests_reach_are_the_table_s_in_json_and_sse"),
        ),
    ),
    Behaviour(
        "Server and discovery",
        "B93",
        "The names of 1.0 need the version 1.0, as header or query parameter; without one a request "
        "is of 0.3.",
        (
            *at(DIALECTS, "test_each_cell_of_the_matrix_is_what_the_rule_says"),
            *at(CLEAN, "test_the_major_version_decides"),
        ),
    ),
    Behaviour(
        "Server and discovery",
        "B94",
        "A version that does not fit the method is -32009 in both directions, with both versions in "
        "the sentence and the same typed data.",
        (
            *at(ERRORS, "test_a_version_of_the_other_dialect_is_32009_with_the_same_typed_data"),
            *at(WIRE, "test_a_version_mismatch_is_32009_with_typed_data_in_both_directions"),
        ),
    ),
    Behaviour(
        "Server and discovery",
        "B95",
        "Each of the protocol's errors has its own code in both dialects, and none is hidden behind -32603.",
        (
            *at(RESTORED, "test_a_code_of_the_protocol_s_keeps_its_code_and_gets_typed_data"),
            *at(WIRE, "test_errors_carry_the_code_and_nothing_of_the_request"),
            *at(CANCEL, "test_cancel_waits_for_the_cleanup_and_answers_canceled"),
        ),
    ),
    Behaviour(
        "Server and discovery",
        "B96",
        "An internal error stays -32603 whatever its text says, save the two that the SDK makes of "
        "-32008 and -32009 for clients of 0.3, known by their whole sentence.",
        at(
            RESTORED,
            "test_an_internal_error_stays_one_whatever_its_text_says",
            "test_the_two_that_the_sdk_loses_are_known_by_their_whole_sentence_alone",
        ),
    ),
    Behaviour(
        "Server and discovery",
        "B97",
        "Error bodies are rebuilt as JSON and as events of a stream; their HTTP status stays.",
        at(
            ERRORS,
            "test_each_class_of_error_has_its_code_and_sentence_in_a_json_body",
            "test_each_class_of_error_has_its_code_and_sentence_in_an_event",
        ),
        difference="Error bodies are rebuilt from their code",
    ),
    Behaviour(
        "Server and discovery",
        "B98",
        "Every error has a code of JSON-RPC or of A2A 1.0, and an unknown one is -32603.",
        (
            *at(
                ERRORS,
                "test_each_class_of_error_has_its_code_and_sentence_in_a_json_body",
                "test_each_class_of_error_has_its_code_and_sentence_in_an_event",
                "test_the_rows_that_requests_reach_are_the_table_s_in_json_and_sse",
            ),
            *at(CLEAN, "test_an_unknown_code_is_an_internal_error"),
        ),
    ),
    Behaviour(
        "Server and discovery",
        "B99",
        "A JSON-RPC error is HTTP 200; what is no JSON is answered without an id.",
        (
            *at(LINES, "test_what_is_no_json_is_answered_with_http_200_and_no_id"),
            *at(WIRE, "test_malformed_requests_get_their_json_rpc_code_with_http_200"),
        ),
        difference="`Content-Type` must be `application/json`",
    ),
    Behaviour(
        "Server and discovery",
        "B100",
        "An unknown method is -32601, an unknown task -32001, cancelling a finished task -32002, "
        "push -32003, the extended card -32004.",
        (
            *at(WIRE, "test_errors_carry_the_code_and_nothing_of_the_request"),
            *at(CANCEL, "test_cancel_waits_for_the_cleanup_and_answers_canceled"),
        ),
        difference="`ListTasks` is `-32004`",
    ),
    Behaviour(
        "Server and discovery",
        "B101",
        "Both well-known paths of the card serve the same bytes.",
        at(CARD, "test_both_well_known_paths_serve_the_same_bytes"),
    ),
    Behaviour(
        "Server and discovery",
        "B102",
        "The card lists its interface at the public address with binding and version, and is read by "
        "clients of 0.3 too.",
        at(CARD, "test_the_card_lists_both_dialects_at_the_public_url"),
        difference="It lists two interfaces at one URL",
    ),
    Behaviour(
        "Server and discovery",
        "B103",
        "The versions of the interfaces are in the bytes that are served.",
        at(CARD, "test_the_card_lists_both_dialects_at_the_public_url"),
    ),
    Behaviour(
        "Server and discovery",
        "B104",
        "The card says that the agent streams and pushes nothing.",
        at(CARD, "test_the_card_lists_both_dialects_at_the_public_url"),
    ),
    Behaviour(
        "Server and discovery",
        "B105",
        "Input and output modes are `text`.",
        at(CARD, "test_the_card_lists_both_dialects_at_the_public_url"),
    ),
    Behaviour(
        "Server and discovery",
        "B106",
        "The card has an ETag, and who has the card gets 304.",
        at(CARD, "test_a_client_that_has_the_card_gets_304"),
    ),
    Behaviour(
        "Server and discovery",
        "B113",
        "`/health` says the status and the agent, and answers GET alone.",
        at(CARD, "test_health_is_exactly_the_status_and_the_agent"),
    ),
    Behaviour(
        "Server and discovery",
        "B114",
        "Pages of configured origins may read answers, without credentials; pages of others are told "
        "nothing.",
        at(
            ORIGINS,
            "test_a_preflight_of_a_configured_origin_allows_what_both_dialects_send",
            "test_a_page_of_a_configured_origin_reads_answers_and_errors",
            "test_a_foreign_origin_is_told_nothing",
            "test_without_configured_origins_there_is_no_cors",
        ),
        difference="A page of a configured origin may send",
    ),
    Behaviour(
        "Server and discovery",
        "B117",
        "A front that starts logs whom it serves, where, under which address and for which pages.",
        at(LINES, "test_a_front_that_starts_says_whom_it_serves_where_and_for_which_pages"),
    ),
    # --- the answer -----------------------------------------------------------------------------------------
    Behaviour(
        "The answer",
        "B107",
        "A blocking message is one completed task with one artifact `answer`, a status message and "
        "the history of what was said.",
        (
            *at(LINES, "test_a_finished_task_has_the_shape_that_clients_know"),
            *at(ANSWERS, "test_send_answers_one_completed_task_with_the_same_text_twice"),
        ),
    ),
    Behaviour(
        "The answer",
        "B108",
        "A stream is the task, working, each step, each snapshot, the final artifact and the "
        "completed status that ends it.",
        (
            *at(LINES, "test_the_events_of_a_stream_come_in_one_order"),
            *at(
                ANSWERS,
                "test_a_stream_shows_task_working_steps_growing_answer_and_the_end",
                "test_a_1_0_stream_ends_with_the_completed_state",
            ),
        ),
    ),
    Behaviour(
        "The answer",
        "B109",
        "A turn has one artifact id; each snapshot and the final answer replace what was there.",
        at(ANSWERS, "test_a_stream_shows_task_working_steps_growing_answer_and_the_end"),
    ),
    Behaviour(
        "The answer",
        "B110",
        "The answer is both the artifact and the message of the completed status.",
        at(
            ANSWERS,
            "test_send_answers_one_completed_task_with_the_same_text_twice",
            "test_send_in_the_1_0_dialect_answers_the_same",
        ),
    ),
    Behaviour(
        "The answer",
        "B111",
        "Cancelling ends the run and its processes; the task is canceled with the configured text.",
        (
            *at(CANCEL, "test_cancel_waits_for_the_cleanup_and_answers_canceled"),
            *at(HERMETIC, "test_cancelling_over_a2a_says_so_once_and_ends_the_process"),
            *at(E2E, "test_cancel_removes_the_container"),
        ),
    ),
    Behaviour(
        "The answer",
        "B112",
        "Cancelling what does not run is an error with the configured text.",
        at(CANCEL, "test_cancel_waits_for_the_cleanup_and_answers_canceled"),
        difference="Cancelling what is not running is",
    ),
    Behaviour(
        "The answer",
        "B115",
        "The task comes before every update of it.",
        (
            *at(ANSWERS, "test_a_stream_shows_task_working_steps_growing_answer_and_the_end"),
            *at(LINES, "test_the_events_of_a_stream_come_in_one_order"),
        ),
    ),
    Behaviour(
        "The answer",
        "B116",
        "A request without a message is refused and runs nothing.",
        at(LINES, "test_a_request_without_a_message_is_refused_and_runs_nothing"),
        difference="A request without a message is",
    ),
    # --- executor, memory, limits ---------------------------------------------------------------------------
    Behaviour(
        "Executor, memory, limits",
        "B118",
        "What was said in a context goes into its next prompt.",
        at(CONVERSATIONS, "test_a_second_turn_of_a_context_carries_the_first"),
    ),
    Behaviour(
        "Executor, memory, limits",
        "B119",
        "The prompt is the exchanges before, oldest first, and then the message, each a line that no "
        "text can forge.",
        (
            *at(PLAN, "test_the_prompt_reads_back_as_exactly_what_was_said"),
            *at(CONVERSATIONS, "test_visitor_text_cannot_forge_a_turn_of_the_transcript"),
        ),
        difference="The transcript is JSON",
    ),
    Behaviour(
        "Executor, memory, limits",
        "B120",
        "Blanks around a message are cut off.",
        at(ANSWERS, "test_send_answers_one_completed_task_with_the_same_text_twice"),
    ),
    Behaviour(
        "Executor, memory, limits",
        "B121",
        "Empty text is a failed task with the configured text, in both dialects, and runs nothing.",
        at(ANSWERS, "test_empty_text_is_a_failed_task_that_says_so"),
    ),
    Behaviour(
        "Executor, memory, limits",
        "B122",
        "Text over the limit is a completed task with the configured text; it runs nothing and is "
        "not remembered.",
        (
            *at(ANSWERS, "test_text_at_the_limit_passes_and_one_character_more_does_not"),
            *at(LINES, "test_a_text_that_is_too_long_is_not_remembered"),
        ),
        difference="A turn that could not be answered is `completed`",
    ),
    Behaviour(
        "Executor, memory, limits",
        "B123",
        "Text of exactly the limit passes.",
        (
            *at(ANSWERS, "test_text_at_the_limit_passes_and_one_character_more_does_not"),
            *at(ADMIT, "test_text_of_exactly_the_limit_passes_and_one_more_does_not"),
        ),
    ),
    Behaviour(
        "Executor, memory, limits",
        "B124",
        "With every place taken the answer is the configured busy text, at once.",
        at(ANSWERS, "test_when_all_slots_are_taken_the_answer_is_busy_at_once"),
        difference="A turn that could not be answered is `completed`",
    ),
    Behaviour(
        "Executor, memory, limits",
        "B125",
        "A place is free again however its turn ended.",
        (
            *at(LINES, "test_a_slot_is_free_again_however_a_turn_ends"),
            *at(CANCEL, "test_cancel_waits_for_the_cleanup_and_answers_canceled"),
            *at(ANSWERS, "test_the_answer_comes_before_the_cleanup_and_the_slot_is_free_after_it"),
        ),
    ),
    Behaviour(
        "Executor, memory, limits",
        "B126",
        "A conversation keeps its last `max_turns` exchanges.",
        at(MEMORY, "test_only_the_last_exchanges_are_kept"),
    ),
    Behaviour(
        "Executor, memory, limits",
        "B127",
        "The context that was used least lately is forgotten first; being read counts as use.",
        at(MEMORY, "test_the_least_recently_used_context_goes_first_and_reading_refreshes"),
    ),
    Behaviour(
        "Executor, memory, limits",
        "B128",
        "A runner with a bug gives one answer, the configured text, with nothing of the exception in it.",
        at(
            ANSWERS,
            "test_a_runner_with_a_bug_still_gives_one_answer",
            "test_a_streamed_failure_ends_the_stream_with_the_configured_text",
        ),
        difference="A turn that could not be answered is `completed`",
    ),
    Behaviour(
        "Executor, memory, limits",
        "B129",
        "A `runtime_context` in a message's metadata is not read.",
        (
            *at(LINES, "test_a_runtime_context_in_the_metadata_reaches_no_prompt"),
            *at(EXAMINE, "test_what_a_turn_does_not_use_ends_at_the_gate"),
        ),
        difference="Metadata, extensions, referenced tasks",
    ),
    Behaviour(
        "Executor, memory, limits",
        "B130",
        "No limit of requests stands between one visitor and the agent; a proxy in front may have one.",
        at(LINES, "test_no_limit_of_requests_stands_between_one_visitor_and_the_agent"),
    ),
    Behaviour(
        "Executor, memory, limits",
        "B131",
        "A card claims no skill that nothing granted keeps.",
        at(
            HONESTY,
            "test_a_skill_needs_scripts_that_are_granted_and_named_in_the_prompt",
            "test_ada_and_the_template_are_honest",
        ),
    ),
    # --- further --------------------------------------------------------------------------------------------
    Behaviour(
        "Further",
        "B276",
        "Each message is a task of its own; only the context goes on.",
        at(LINES, "test_each_message_is_a_task_of_its_own_and_only_the_context_goes_on"),
    ),
    Behaviour(
        "Further",
        "B277",
        "Keepalive comments, at most 3 s apart, hold a silent stream open.",
        at(STREAMS, "test_a_silent_stream_is_kept_alive_by_comments_at_most_three_seconds_apart"),
    ),
    Behaviour(
        "Further",
        "B278",
        "A growing answer is seen while its turn still runs; who waits for the answer gets one task.",
        (
            *at(LINES, "test_a_growing_answer_is_seen_while_its_turn_still_runs"),
            *at(ANSWERS, "test_send_answers_one_completed_task_with_the_same_text_twice"),
        ),
    ),
    Behaviour(
        "Further",
        "B279",
        "The agent stays and has an address; a turn that works for it has none and is gone when it "
        "has answered.",
        (
            *at(CARD, "test_the_card_lists_both_dialects_at_the_public_url"),
            *at(A_PROCESS, "test_each_turn_is_a_process_of_its_own_that_is_gone_when_it_has_answered"),
            *at(POLICY, "test_the_body_is_the_reviewed_one"),
        ),
    ),
    Behaviour(
        "Further",
        "B280",
        "The personas that come with Gatehouse answer from documents, promise nothing that nothing "
        "keeps, and say that their words bind nobody.",
        (
            *at(HONESTY, "test_ada_and_the_template_are_honest"),
            *at(PERSONAS, "test_the_template_grants_reading_only"),
            *at(CARD, "test_the_card_says_that_the_words_bind_nobody_and_when_it_is_the_demo"),
        ),
    ),
    Behaviour(
        "Further",
        "B281",
        "No file outside the grounding can be read by a turn, and no secret is anywhere in it.",
        (
            *at(TOOLS, "test_a_file_outside_the_grounding_is_not_read"),
            *at(INSIDE, "test_s01_no_key_is_anywhere_in_a_turn"),
            *at(THROUGH, "test_file_tools_stay_in_the_grounding"),
        ),
    ),
    Behaviour(
        "Further",
        "B282",
        "No grant and no rule of the CLI's own gives a turn a shell.",
        (
            *at(THROUGH, "test_f15_there_is_no_bash_for_a_hostile_model"),
            *at(TOOLS, "test_a_model_that_calls_a_tool_that_was_not_offered_gets_an_error"),
        ),
        difference="The deny rules for Bash are a backstop",
    ),
    # --- the wire, item by item -----------------------------------------------------------------------------
    Behaviour(
        "The wire, item by item",
        "I1.1",
        "Every sentence above has a test or a line on the differences page.",
        at(ITSELF, "test_every_line_has_its_number_once_and_its_proof"),
    ),
    Behaviour(
        "The wire, item by item",
        "I2.1",
        "Every code of JSON-RPC and A2A comes over HTTP in both dialects.",
        at(
            ERRORS,
            "test_each_class_of_error_has_its_code_and_sentence_in_a_json_body",
            "test_the_rows_that_requests_reach_are_the_table_s_in_json_and_sse",
            "test_what_is_no_request_is_answered_without_an_id",
            "test_an_executor_that_breaks_the_protocol_is_32006",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I2.2",
        "Errors of streams are events with the same bodies.",
        (
            *at(ERRORS, "test_each_class_of_error_has_its_code_and_sentence_in_an_event"),
            *at(WIRE, "test_a_stream_s_error_is_cleaned_too"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I2.3",
        "A version that does not fit is -32009 in both directions with the same typed data.",
        at(ERRORS, "test_a_version_of_the_other_dialect_is_32009_with_the_same_typed_data"),
    ),
    Behaviour(
        "The wire, item by item",
        "I2.4",
        "No text of an exception, path, stack or value of the request is in an error.",
        (
            *at(
                ERRORS,
                "test_what_an_error_says_of_itself_never_reaches_a_client",
                "test_an_exception_is_an_internal_error_and_nothing_of_it",
            ),
            *at(WIRE, "test_errors_carry_the_code_and_nothing_of_the_request"),
            *at(ANSWERS, "test_a_runner_with_a_bug_still_gives_one_answer"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I2.5",
        "Ids come back as they were sent.",
        (
            *at(ERRORS, "test_an_id_comes_back_as_it_was_sent_and_an_absent_one_as_null"),
            *at(EXAMINE, "test_a_request_id_that_is_no_short_id_is_refused_and_not_said_back"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I3.1",
        "Both dialects, with and without the version, as header and as parameter, blocking or not, "
        "send and stream.",
        at(DIALECTS, "test_each_cell_of_the_matrix_is_what_the_rule_says"),
    ),
    Behaviour(
        "The wire, item by item",
        "I3.2",
        "The official Python client of 1.3 gets card, answer, stream, cancel in mid-stream, task and "
        "typed errors, beyond ASCII too.",
        (
            *at(COURSE, "test_a_client_sees_at_each_step_what_the_table_says"),
            *at(PYTHON, "test_the_official_client_gets_the_answer_and_reads_the_task_back"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I3.3",
        "The official Python client of 0.3 does too; where it sees something else, the reason is "
        "written down.",
        at(
            COURSE,
            "test_a_client_sees_at_each_step_what_the_table_says",
            "test_every_difference_is_of_a_client_and_a_step_and_has_its_reason",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I3.4",
        "The official JavaScript clients of both generations do too.",
        at(
            COURSE,
            "test_a_client_sees_at_each_step_what_the_table_says",
            "test_every_difference_is_of_a_client_and_a_step_and_has_its_reason",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I3.5",
        "A LiteLLM gateway in front passes send and stream.",
        at(
            GATEWAY,
            "test_a_caller_of_the_gateway_gets_the_answer_and_goes_on",
            "test_a_caller_of_the_gateway_sees_the_answer_grow_and_end",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I4.1",
        "The first event comes at once, before the turn has said or done anything.",
        (
            *at(LINES, "test_the_first_event_comes_while_the_turn_has_said_nothing"),
            *at(STREAMS, "test_the_first_event_comes_while_the_runner_has_not_said_or_done_anything"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I4.2",
        "Keepalive comments are at most 3 s apart.",
        at(STREAMS, "test_a_silent_stream_is_kept_alive_by_comments_at_most_three_seconds_apart"),
    ),
    Behaviour(
        "The wire, item by item",
        "I4.3",
        "A turn stays well under 1,000 events, with a pause between two of its texts, and its bytes are "
        "linear in the answer.",
        (
            *at(
                STREAMS,
                "test_the_bytes_of_a_stream_go_with_the_length_of_the_answer_and_its_events_stay_few",
                "test_a_snapshot_is_worth_its_bytes_or_begins_anew",
            ),
            *at(
                TELLING,
                "test_all_snapshots_of_a_growing_text_are_together_a_fixed_multiple_of_it",
                "test_between_two_snapshots_there_is_the_pause_however_much_the_text_grows",
            ),
            *at(ANSWERS, "test_a_flood_of_events_stays_below_the_limit_at_which_a_reader_is_dropped"),
        ),
        difference="A stream shows the answer in growing snapshots",
    ),
    Behaviour(
        "The wire, item by item",
        "I4.4",
        "A slow reader gets every event to the last; one who reads nothing is cut and holds no "
        "memory, and the task can be read back.",
        at(
            STREAMS,
            "test_a_reader_who_reads_little_by_little_gets_every_event_to_the_last",
            "test_a_reader_who_reads_nothing_holds_neither_the_turn_nor_memory_and_is_cut",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I4.5",
        "A running task can be subscribed to again, by a few readers at a time.",
        (
            *at(STREAMS, "test_resubscribing_gives_the_task_as_it_is_and_then_what_its_sender_sees"),
            *at(CANCEL, "test_a_task_is_read_by_a_few_streams_at_a_time"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I4.6",
        "A turn that nobody watches is cancelled after a grace, or finished where the instance says so.",
        (
            *at(
                DISCONNECT,
                "test_a_turn_whose_sender_hung_up_is_ended_after_the_grace_and_can_be_read_back",
                "test_within_the_grace_the_turn_runs_on_and_its_answer_can_be_read_back",
                "test_a_reader_who_comes_back_in_the_grace_stops_it_and_sees_the_end",
                "test_with_finish_a_turn_nobody_watches_runs_to_its_answer",
                "test_a_message_sent_without_waiting_is_never_given_up_even_after_a_reader_has_left",
            ),
            *at(INSTANCE, "test_every_key_reaches_the_definition"),
            *at(
                VISITORS,
                "test_a_visitor_who_hangs_up_on_a_stream_leaves_nothing",
                "test_a_visitor_who_hangs_up_on_a_blocking_call_leaves_nothing",
            ),
        ),
        difference="A turn that nobody watches is ended after a grace",
    ),
    Behaviour(
        "The wire, item by item",
        "I4.7",
        "A front that stops takes no new turn, gives the running ones their grace, then ends every "
        "stream and sender with the configured text.",
        (
            *at(
                SHUTDOWN,
                "test_turns_that_run_get_their_time_and_their_visitors_the_answer",
                "test_past_the_grace_every_stream_and_blocking_sender_reads_that_the_agent_stops",
            ),
            *at(PROCESS, "test_sigterm_leaves_a_turn_its_time_and_its_sender_the_answer"),
            *at(POINTS, "test_a_front_that_is_told_to_end_gives_every_turn_its_one_answer"),
        ),
        difference="A front that is stopped answers everybody",
    ),
    Behaviour(
        "The wire, item by item",
        "I5.1",
        "A further message to a busy context is answered in order, up to a bound, and then told busy.",
        at(
            CONVERSATIONS,
            "test_turns_of_one_context_run_one_after_the_other_and_the_surplus_is_busy",
            "test_messages_are_answered_in_the_order_of_their_context_and_each_its_own",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I5.2",
        "Turns of one context do not interleave, and no message gets another's answer.",
        at(
            CONVERSATIONS,
            "test_messages_are_answered_in_the_order_of_their_context_and_each_its_own",
            "test_turns_of_one_context_run_one_after_the_other_and_the_surplus_is_busy",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I5.3",
        "A message that names a running task goes on in its context; a finished, unknown or other "
        "context's task is refused.",
        at(
            CONVERSATIONS,
            "test_a_message_that_names_a_running_task_is_a_new_task_of_its_context_with_an_answer_of_its_own",
            "test_a_message_that_names_an_unknown_finished_or_another_context_s_task_is_refused",
        ),
        difference="A task takes one message",
    ),
    Behaviour(
        "The wire, item by item",
        "I5.4",
        "Visitor text cannot forge a line of the transcript.",
        (
            *at(PLAN, "test_the_prompt_reads_back_as_exactly_what_was_said"),
            *at(CONVERSATIONS, "test_visitor_text_cannot_forge_a_turn_of_the_transcript"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I5.5",
        "Configured texts are not remembered.",
        (
            *at(CONVERSATIONS, "test_a_configured_fallback_is_not_remembered"),
            *at(LINES, "test_a_text_that_is_too_long_is_not_remembered"),
            *at(
                CONVERSATIONS,
                "test_turns_of_one_context_run_one_after_the_other_and_the_surplus_is_busy",
            ),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I5.6",
        "Only ids that nobody can guess remember anything, and no context sees another.",
        (
            *at(MEMORY, "test_only_random_uuids_carry_memory"),
            *at(CONVERSATIONS, "test_two_contexts_do_not_mix_across_dialects"),
            *at(E2E, "test_two_contexts_do_not_mix"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.1",
        "Bodies are bounded.",
        (
            *at(BOUNDS, "test_a_body_past_its_setting_is_413_and_never_held"),
            *at(WIRE, "test_no_body_makes_the_sdk_see_or_the_store_keep_much"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.2",
        "Parts, nesting and values of a request are bounded.",
        (
            *at(
                BOUNDS,
                "test_what_a_request_may_hold_is_a_setting",
                "test_a_flood_of_deep_and_wide_bodies_holds_nothing",
            ),
            *at(EXAMINE, "test_a_body_of_many_values_is_refused_before_it_is_parsed"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.3",
        "Only `application/json` is read; what any web page can send runs nothing.",
        at(
            BOUNDS,
            "test_a_page_s_simple_request_runs_nothing",
            "test_json_with_a_charset_in_any_case_is_json",
        ),
        difference="`Content-Type` must be `application/json`",
    ),
    Behaviour(
        "The wire, item by item",
        "I6.4",
        "The length of a text is bounded in characters.",
        (
            *at(BOUNDS, "test_a_text_is_measured_in_characters_whatever_their_bytes"),
            *at(ANSWERS, "test_text_at_the_limit_passes_and_one_character_more_does_not"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.5",
        "Contexts are bounded in number, exchanges, age and bytes.",
        (
            *at(BOUNDS, "test_conversations_turns_and_tasks_stay_at_their_bounds"),
            *at(
                MEMORY,
                "test_the_least_recently_used_context_goes_first_and_reading_refreshes",
                "test_conversations_go_when_they_take_too_many_bytes",
            ),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.6",
        "Tasks are bounded in number, age and bytes.",
        (
            *at(
                BOUNDS,
                "test_conversations_turns_and_tasks_stay_at_their_bounds",
                "test_the_bytes_of_a_store_are_a_setting",
            ),
            *at(
                TASKS,
                "test_the_oldest_task_goes_when_there_are_too_many",
                "test_a_task_is_gone_after_its_age",
            ),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.7",
        "Open streams, their readers and connections are bounded.",
        at(
            BOUNDS,
            "test_streams_and_readers_past_their_settings_are_answered_and_not_held",
            "test_connections_past_their_setting_are_503_and_past_twice_ended",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.8",
        "Heads of requests are bounded in size and time, and so is a slow body.",
        (
            *at(
                BOUNDS,
                "test_headers_past_their_settings_are_431",
                "test_a_target_counts_as_head",
                "test_a_body_that_does_not_come_is_408_and_its_connection_ends",
            ),
            *at(
                SERVING,
                "test_a_head_that_does_not_come_is_cut_off",
                "test_bytes_that_come_one_by_one_give_a_head_no_more_time",
            ),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.9",
        "Each bound of the front is a setting with a default, and what is held stays flat while "
        "bodies, conversations and tasks are filled.",
        (
            *at(
                SETTINGS,
                "test_the_table_has_a_row_for_each_field_and_its_default_within_its_limits",
                "test_every_wrong_value_is_told_at_once_and_none_is_shown",
                "test_the_page_is_the_table",
            ),
            *at(WIRING, "test_every_setting_reaches_the_part_that_it_bounds"),
            *at(
                BOUNDS,
                "test_a_body_past_its_setting_is_413_and_never_held",
                "test_conversations_turns_and_tasks_stay_at_their_bounds",
                "test_a_flood_of_deep_and_wide_bodies_holds_nothing",
            ),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.10",
        "A part that is no text is -32005 with the types that are taken; no address in one is ever fetched.",
        at(BOUNDS, "test_an_address_in_a_part_is_refused_with_the_types_we_take_and_never_asked"),
    ),
    Behaviour(
        "The wire, item by item",
        "I6.11",
        "Empty text is a failed task with the configured text.",
        at(ANSWERS, "test_empty_text_is_a_failed_task_that_says_so"),
    ),
    Behaviour(
        "The wire, item by item",
        "I7.1",
        "Past `max_concurrency` the answer is busy at once, completed, and says when to ask again.",
        at(OVERLOAD, "test_past_the_places_a_message_is_busy_at_once_and_says_when_to_ask_again"),
    ),
    Behaviour(
        "The wire, item by item",
        "I7.2",
        "`/health` answers with every place taken and 200 connections open; `just bench` measures how fast.",
        at(LINES, "test_health_answers_while_every_place_is_taken_and_200_connections_are_open"),
    ),
    Behaviour(
        "The wire, item by item",
        "I8.1",
        "Pages of configured origins use both dialects.",
        (
            *at(
                ORIGINS,
                "test_a_preflight_of_a_configured_origin_allows_what_both_dialects_send",
                "test_a_page_of_a_configured_origin_reads_answers_and_errors",
            ),
            *at(RELOAD, "test_card_etag_limits_messages_and_origins_change_in_one_step"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I8.2",
        "Every answer carries the security headers.",
        at(
            ORIGINS,
            "test_every_answer_has_the_security_headers",
            "test_a_stream_and_a_bug_have_the_security_headers_too",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I8.3",
        "The host that a visitor names is in no address that Gatehouse says.",
        (
            *at(
                ORIGINS,
                "test_no_answer_is_made_of_what_a_request_calls_its_host",
                "test_an_absolute_target_is_no_path_of_ours",
            ),
            *at(CARD, "test_the_card_is_not_built_from_the_host_header"),
            *at(SECURITY, "test_the_file_is_plain_text_and_never_names_the_host_that_was_asked"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I8.4",
        "A forwarded address counts on the tunnel's socket only, or from a proxy that is configured.",
        (
            *at(
                IDENTITY,
                "test_a_forwarded_address_is_believed_on_the_tunnel_s_socket_only",
                "test_nobody_who_is_no_proxy_says_who_they_are",
                "test_what_a_visitor_writes_before_the_proxies_is_no_address_of_theirs",
                "test_the_published_port_s_proxy_is_believed_when_the_operator_says_so",
            ),
            *at(SOCKETS, "test_both_sockets_answer_and_only_the_tunnel_s_forwarded_addresses_count"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I9.1",
        "Push, the extended card and lists of tasks are off and say so with their codes.",
        (
            *at(
                OFF,
                "test_every_push_method_is_32003",
                "test_an_inline_push_configuration_is_32003_and_runs_nothing",
                "test_there_is_no_extended_card_and_the_card_does_not_say_so",
            ),
            *at(WIRE, "test_listing_tasks_is_refused_in_both_dialects"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I9.2",
        "There is no REST, no gRPC and no WebSocket.",
        at(
            OFF,
            "test_rest_and_grpc_paths_are_404_in_json_and_run_nothing",
            "test_what_is_no_http_1_is_answered_400_or_closed",
            "test_an_upgrade_is_not_made",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I10.1",
        "The card says that an automated representative speaks whose words bind nobody.",
        at(CARD, "test_the_card_says_that_the_words_bind_nobody_and_when_it_is_the_demo"),
    ),
    Behaviour(
        "The wire, item by item",
        "I10.2",
        "The first answer of a conversation says so too.",
        at(
            NOTICE,
            "test_the_first_answer_is_followed_by_the_notice_and_the_second_is_not",
            "test_after_a_failed_first_turn_the_notice_comes_with_the_first_answer",
        ),
        difference="The first answer of a conversation has a second text part",
    ),
    Behaviour(
        "The wire, item by item",
        "I10.3",
        "`/.well-known/security.txt` names the contact that the instance gives.",
        at(
            SECURITY,
            "test_the_file_is_plain_text_and_never_names_the_host_that_was_asked",
            "test_an_agent_without_a_contact_has_no_file",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I10.4",
        "`gatehouse forget` removes a conversation, its tasks and its running turn.",
        (
            *at(
                FORGET,
                "test_a_conversation_is_forgotten_with_its_tasks_and_no_other_is",
                "test_running_and_waiting_turns_are_cancelled_and_never_remembered",
                "test_nothing_in_the_process_holds_a_text_that_was_forgotten",
            ),
            *at(CLI_FORGET, "test_the_front_is_asked_on_stdin_so_that_no_argument_holds_the_id"),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I10.5",
        "A page says what is kept of visitors, where and for how long.",
        at(
            PRIVACY,
            "test_how_long_conversations_and_tasks_are_held_is_what_the_settings_say",
            "test_an_address_cannot_be_told_from_what_is_kept_of_it",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I11.1",
        "Every way in which a turn can end is one non-empty answer in time, and leaves no container.",
        (
            *at(ENDINGS, "test_there_is_one_answer_for", "test_nothing_is_left_of_all_these_turns"),
            *at(
                ENDINGS_TABLE,
                "test_every_cause_has_a_row",
                "test_every_reason_of_the_spawner_has_a_row",
                "test_the_test_is_there_that_brings_about",
            ),
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I11.2",
        "Cancelling at each point of a turn is told once, and an answer that is there stays.",
        at(
            POINTS,
            "test_a_turn_that_is_cancelled_at_any_point_is_told_so",
            "test_an_answer_that_is_there_stays_when_it_is_cancelled",
            "test_a_turn_that_nobody_watches_any_more_is_cancelled",
        ),
    ),
    Behaviour(
        "The wire, item by item",
        "I11.3",
        "The deadline reads “try again” even after streamed text.",
        (
            *at(HERMETIC, "test_at_the_deadline_the_visitor_is_asked_to_try_again"),
            *at(ENDINGS_TABLE, "test_a_timeout_asks_to_try_again_whatever_was_shown_before"),
            *at(POINTS, "test_a_deadline_in_the_queue_is_told_as_one"),
        ),
    ),
    # --- known mistakes that are kept out -------------------------------------------------------------------
    Behaviour(
        "Known mistakes that are kept out",
        "F16",
        "A deadline with nothing said is no “no answer”.",
        (
            *at(
                HERMETIC,
                "test_a_cli_that_says_nothing_meets_the_deadline_before_the_turns_own_time_is_over",
                "test_at_the_deadline_the_visitor_is_asked_to_try_again",
            ),
            *at(STREAM, "test_fault_16_a_deadline_is_a_timeout_even_when_text_was_said"),
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F17",
        "An empty result throws nothing away that was said.",
        (
            *at(STREAM, "test_fault_17_an_empty_result_falls_back_to_what_was_said"),
            *at(HERMETIC, "test_whatever_the_cli_does_the_visitor_gets_one_answer"),
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F18",
        "A second result is no second answer, deltas alone are an answer, and a line that is no "
        "object fails no turn.",
        (
            *at(
                STREAM,
                "test_fault_18_a_second_result_is_ignored",
                "test_fault_18_text_seen_only_as_deltas_is_the_fallback",
                "test_fault_18_a_line_that_is_no_object_is_skipped",
            ),
            *at(HERMETIC, "test_whatever_the_cli_does_the_visitor_gets_one_answer"),
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F19",
        "A process that holds the output delays no answer and does not outlive its turn.",
        (
            *at(STREAM, "test_fault_19_the_answer_stands_however_the_turn_then_ends"),
            *at(HERMETIC, "test_a_child_that_holds_the_pipe_delays_nothing_and_does_not_outlive_the_turn"),
            *at(INIT, "test_a_process_in_a_session_of_its_own_does_not_outlive_the_cli"),
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F20",
        "No argument grows with a persona or a prompt.",
        (
            *at(POLICY, "test_no_argument_is_longer_than_linux_takes"),
            *at(CALL, "test_the_persona_is_added_by_file_and_replaces_nothing"),
            *at(HERMETIC, "test_what_the_visitor_wrote_reaches_the_cli_framed_and_as_one_line"),
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F21",
        "Without a grounding, or with one that is not there or holds the repository, nothing starts.",
        at(
            INSTANCE,
            "test_a_broken_file_is_reported_with_every_place_and_nothing_else",
            "test_a_link_to_the_repository_is_refused_as_grounding",
            "test_home_itself_is_refused_as_grounding",
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F22",
        "No pattern and no link leads an inlined document out of the grounding.",
        at(
            INLINE,
            "test_a_pattern_cannot_leave_the_directory",
            "test_links_are_refused_whether_they_are_files_or_folders",
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F23",
        "Nobody can list tasks, in either dialect.",
        (
            *at(WIRE, "test_listing_tasks_is_refused_in_both_dialects"),
            *at(TASKS, "test_listing_is_refused_and_deleting_forgets"),
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F24",
        "Kept tasks do not grow without bound.",
        at(
            TASKS,
            "test_the_oldest_task_goes_when_there_are_too_many",
            "test_a_task_is_gone_after_its_age",
            "test_the_oldest_tasks_go_when_they_take_too_many_bytes",
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F25",
        "Empty text is no internal error.",
        at(ANSWERS, "test_empty_text_is_a_failed_task_that_says_so"),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F26",
        "No exception's text reaches a visitor.",
        at(
            ANSWERS,
            "test_a_runner_with_a_bug_still_gives_one_answer",
            "test_a_streamed_failure_ends_the_stream_with_the_configured_text",
            "test_each_failure_is_one_configured_text_in_artifact_and_message",
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F27",
        "A browser may ask in the 1.0 dialect.",
        at(
            ORIGINS,
            "test_a_preflight_of_a_configured_origin_allows_what_both_dialects_send",
            "test_a_page_of_a_configured_origin_reads_answers_and_errors",
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F28",
        "No runtime context of a client's, nested or not, reaches a prompt.",
        (
            *at(LINES, "test_a_runtime_context_in_the_metadata_reaches_no_prompt"),
            *at(PLAN, "test_no_markup_control_bidirectional_or_tag_character_is_in_the_prompt"),
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F29",
        "A visitor who writes a line of the transcript has written text and nothing else.",
        (
            *at(CONVERSATIONS, "test_visitor_text_cannot_forge_a_turn_of_the_transcript"),
            *at(PLAN, "test_the_prompt_reads_back_as_exactly_what_was_said"),
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F30",
        "Configured texts are not remembered, turns of one context do not interleave, and only ids "
        "that nobody can guess can be continued.",
        at(
            CONVERSATIONS,
            "test_a_configured_fallback_is_not_remembered",
            "test_turns_of_one_context_run_one_after_the_other_and_the_surplus_is_busy",
            "test_a_guessable_context_id_is_echoed_and_remembers_nothing",
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F31",
        "Busy and too long are artifacts as well as status messages.",
        at(
            ANSWERS,
            "test_when_all_slots_are_taken_the_answer_is_busy_at_once",
            "test_text_at_the_limit_passes_and_one_character_more_does_not",
        ),
    ),
    Behaviour(
        "Known mistakes that are kept out",
        "F33",
        "No log of the front's holds a visitor's words.",
        at(LINES, "test_a_visitor_s_words_are_in_no_log_of_the_front_s"),
    ),
)


def section() -> list[str]:
    """Return the lines of the page's second half."""
    lines = [
        "## What a client may rely on",
        "",
        "Each sentence is true of this version; the tests named with it prove it.",
        "Made from `tests/behaviours.py`. Where Gatehouse does otherwise than a client may expect,",
        "[differences.md](../explanation/differences.md) says why, in the line that begins as quoted.",
        "",
    ]
    group = ""
    for behaviour in BEHAVIOURS:
        if behaviour.group != group:
            lines += [*([""] if group else []), f"### {behaviour.group}", ""]
            group = behaviour.group
        lines.append(f"- **{behaviour.id}** {behaviour.sentence}")
        if behaviour.difference:
            lines.append(f"  - Difference: “{behaviour.difference} …”")
        if behaviour.pending:
            lines.append(f"  - Pending: {behaviour.pending}")
        lines += [f"  - `{test}`" for test in behaviour.tests]
    return [*lines, ""]
