"""The CLI's arguments: their order, and what is never among them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime.agents.definition import Grounding, Tools
from runtime.spawner.cli_call import command

if TYPE_CHECKING:
    from runtime.agents.definition import AgentDefinition

ORDER = [
    "-p",
    "--input-format",
    "--output-format",
    "--verbose",
    "--include-partial-messages",
    "--model",
    "--append-system-prompt-file",
    "--add-dir",
    "--tools",
    "--allowedTools",
    "--disallowedTools",
    "--permission-mode",
    "--setting-sources",
    "--restricted",
    "--strict-mcp-config",
    "--mcp-config",
    "--disable-slash-commands",
    "--max-turns",
    "--no-session-persistence",
]


@pytest.fixture
def every(agent: AgentDefinition) -> list[list[str]]:
    """The argument lists of agents with and without extra folders, tools and grants."""
    folders = ((), (Path("/a"),), (Path("/a"), Path("/b")))
    tools = (Tools((), ()), Tools(), Tools(("Read",), ("opening_hours", "intake")))
    return [
        command(dataclasses.replace(agent, grounding=Grounding(Path("/g"), extra, ()), tools=granted))
        for extra in folders
        for granted in tools
    ]


def flag(argv: list[str], name: str) -> str:
    assert argv.count(name) == 1
    return argv[argv.index(name) + 1]


def test_the_flags_come_in_one_order_after_the_program(every: list[list[str]]) -> None:
    for argv in every:
        flags = list(dict.fromkeys(one for one in argv[1:] if one.startswith("-")))
        assert not argv[0].startswith("-")
        assert flags == [name for name in ORDER if name in flags]
        assert set(ORDER) - set(flags) <= {"--add-dir", "--mcp-config"}


def test_there_is_one_form_of_the_call_and_it_streams(every: list[list[str]]) -> None:
    for argv in every:
        assert flag(argv, "--input-format") == flag(argv, "--output-format") == "stream-json"
        assert {"--verbose", "--include-partial-messages"} <= set(argv)


def test_the_persona_is_added_by_file_and_replaces_nothing(every: list[list[str]]) -> None:
    for argv in every:
        assert flag(argv, "--append-system-prompt-file") == "/instance/system-prompt.md"
        assert not {"--system-prompt", "--system-prompt-file", "--append-system-prompt"} & set(argv)


def test_each_extra_folder_is_one_add_dir(every: list[list[str]]) -> None:
    found = {tuple(argv[at + 1] for at, one in enumerate(argv) if one == "--add-dir") for argv in every}
    assert found == {(), ("/extra/0",), ("/extra/0", "/extra/1")}


def test_only_a_project_s_settings_count_and_no_permission_is_ever_waited_for(every: list[list[str]]) -> None:
    for argv in every:
        assert flag(argv, "--setting-sources") == "project"
        assert flag(argv, "--permission-mode") == "acceptEdits"


def test_what_is_allowed_and_what_is_denied_are_one_argument_each(every: list[list[str]]) -> None:
    allowed = {flag(argv, "--allowedTools") for argv in every}
    assert allowed == {"", "Read,Glob,Grep", "Read,mcp__grants__opening_hours,mcp__grants__intake"}
    assert len({flag(argv, "--disallowedTools") for argv in every}) == 1


def test_a_session_is_neither_kept_nor_continued(every: list[list[str]]) -> None:
    for argv in every:
        assert argv[1] == "-p"
        assert "--no-session-persistence" in argv
        assert not {"--resume", "-r", "--continue", "-c", "--session-id", "--fork-session"} & set(argv)


def test_nothing_lets_the_cli_skip_its_own_checks(every: list[list[str]]) -> None:
    for argv in every:
        assert not [one for one in argv if "dangerously" in one or one == "bypassPermissions"]
