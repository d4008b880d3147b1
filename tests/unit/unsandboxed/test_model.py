"""Which model answers, and what the CLI is told by its environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.errors import ConfigError
from runtime.spawner.cli_call import SWITCHES, command
from runtime.spawner.cli_call import environment as inside
from runtime.unsandboxed.model import choose, environment

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    "name",
    [
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "ANTHROPIC_BASE_URL",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
        "CLAUDE_CODE_USE_FOUNDRY",
    ],
)
def test_a_way_to_a_model_is_taken_and_named(name: str) -> None:
    model = choose({name: "1", "HOME": "/nowhere"})
    assert (model.demo, model.reason) == (False, f"{name} is set")


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"ANTHROPIC_API_KEY": ""},
        {"ANTHROPIC_API_KEY": "  "},
        {"CLAUDE_CODE_USE_BEDROCK": "0"},
        {"CLAUDE_CODE_USE_BEDROCK": "False"},
        {"HOME": "/nowhere"},
        {"ANTHROPIC_MODEL": "opus"},
    ],
)
def test_without_a_way_the_demo_answers(environ: dict[str, str]) -> None:
    assert choose(environ).demo is True


def test_demo_on_request_wins_over_a_key() -> None:
    model = choose({"MODEL": "demo", "ANTHROPIC_API_KEY": "made-up"})
    assert (model.demo, model.reason) == (True, "MODEL=demo is set")


def test_another_word_for_the_model_is_a_mistake_and_not_the_demo() -> None:
    with pytest.raises(ConfigError, match=r"MODEL: is neither empty nor `demo` \(unset it"):
        choose({"MODEL": "sonnet"})


@pytest.mark.parametrize("variable", ["HOME", "CLAUDE_CONFIG_DIR"])
def test_a_login_is_a_file_of_the_clis_that_is_not_empty(tmp_path: Path, variable: str) -> None:
    folder = tmp_path / ".claude" if variable == "HOME" else tmp_path
    folder.mkdir(exist_ok=True)
    environ = {variable: str(tmp_path)}
    assert choose(environ).demo is True
    (folder / ".credentials.json").touch()
    assert choose(environ).demo is True
    (folder / ".credentials.json").write_text("{}")
    assert choose(environ).reason == "the CLI is logged in"


def test_the_clis_own_model_gets_the_parents_environment_and_the_switches() -> None:
    given = {"ANTHROPIC_API_KEY": "made-up", "LANG": "de_DE", "CLAUDE_CODE_MAX_RETRIES": "10"}
    assert environment(given) == {**given, **SWITCHES}


@pytest.mark.parametrize(
    "name", ["AGENT_CONTEXT_ID", "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD", "CLAUDECODE"]
)
def test_what_is_not_for_the_cli_does_not_reach_it(name: str) -> None:
    assert name not in environment({name: "x"})


def test_for_the_demo_no_other_way_is_left() -> None:
    ways = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_USE_BEDROCK")
    given = {**dict.fromkeys(ways, "1"), "CLAUDE_CODE_OAUTH_TOKEN": "x", "HOME": "/home/me"}
    found = environment(given, "http://127.0.0.1:9", "/tmp/x")
    assert not {*ways, "CLAUDE_CODE_OAUTH_TOKEN"} & set(found)
    assert found["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:9"
    assert found["CLAUDE_CONFIG_DIR"] == "/tmp/x"
    assert found["HOME"] == "/home/me"


def test_a_container_is_told_the_same_switches() -> None:
    told = dict(entry.split("=", 1) for entry in inside())
    assert {name: told.get(name) for name in SWITCHES} == dict(SWITCHES)
    assert command.__defaults__ is not None
