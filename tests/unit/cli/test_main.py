"""How every command ends: an exit code, one sentence, and no traceback for what was foreseen."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import pytest

from runtime.cli import host
from runtime.cli.main import COMMANDS, HOST, main, program
from runtime.cli.settings import read_settings
from runtime.errors import (
    ConfigError,
    EngineUnavailable,
    GatehouseError,
    PortInUse,
    Problem,
    ServiceUnreachable,
    UsageError,
)

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Checkout

REPO = Path(__file__).resolve().parents[3]
LOADED = """import sys
from runtime.cli.main import main
main(["--help"])
print(*(name for name in sys.modules if name.startswith(("runtime.cli.", "yaml", "a2a"))))
"""


@pytest.fixture
def stopping(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make `gatehouse check` raise what a test gives."""

    def put(error: BaseException) -> None:
        @click.command()
        def command() -> None:
            raise error

        monkeypatch.setattr(type(program), "get_command", lambda *_: command)

    return put


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (UsageError("what", "mend"), 2, "gatehouse: usage: what (mend)\n"),
        (
            ConfigError((Problem("f", 1, 2, "k", "what", "mend"), Problem("g", 0, 0, "", "what", "mend"))),
            3,
            "gatehouse: config-invalid: f:1:2: k: what (mend)\ngatehouse: config-invalid: g: what (mend)\n",
        ),
        (EngineUnavailable("what", "mend"), 4, "gatehouse: engine-unavailable: what (mend)\n"),
        (PortInUse("what"), 4, "gatehouse: port-in-use: what\n"),
        (ServiceUnreachable("what", "mend"), 8, "gatehouse: service-unreachable: what (mend)\n"),
        (GatehouseError("what", "mend"), 1, "gatehouse: unexpected: what (mend)\n"),
        (click.UsageError("What."), 2, "gatehouse: usage: what (see gatehouse check --help)\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
def test_a_failure_with_a_name_is_its_sentence_and_its_exit_code(
    checkout: Checkout, stopping: Any, error: BaseException, code: int, words: str
) -> None:
    stopping(error)
    done = checkout.run("check")
    assert (done.code, done.out, done.err.lstrip("\n")) == (code, "", words)


def test_what_nobody_foresaw_has_its_traceback_and_one_last_sentence(
    checkout: Checkout, stopping: Any
) -> None:
    stopping(ZeroDivisionError("by zero"))
    done = checkout.run("check")
    assert done.code == 1
    assert done.err.startswith("Traceback ")
    assert done.err.splitlines()[-1] == (
        "gatehouse: unexpected: ZeroDivisionError: by zero (report it with the lines above)"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("chekc",), "unknown command: chekc (did you mean check?)"),
        (("fly",), "unknown command: fly (see gatehouse --help)"),
        (("check", "--jsn"), "no such option '--jsn' (did you mean --json?)"),
        (("completion", "tcsh"), "invalid value for '{bash|zsh|fish}': 'tcsh' is not one of"),
        (("down", "now"), "unexpected argument: now (see gatehouse down --help)"),
        (("reload", "a", "b"), "unexpected arguments: a b (see gatehouse reload --help)"),
        (("turn", "ada"), "missing argument 'TEXT' (see gatehouse turn --help)"),
    ],
)
def test_a_command_line_that_is_wrong_is_one_sentence_with_the_nearest_or_where_to_read(
    checkout: Checkout, words: tuple[str, ...], sentence: str
) -> None:
    done = checkout.run(*words)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"gatehouse: usage: {sentence}")
    assert len(done.err.splitlines()) == 1


def test_without_a_command_the_list_is_an_answer_to_a_wrong_use(checkout: Checkout) -> None:
    done = checkout.run()
    assert (done.code, done.out) == (2, "")
    assert done.err == checkout.run("--help").out


def test_the_list_has_every_command_and_imports_none(checkout: Checkout) -> None:
    done = checkout.run("--help")
    assert done.code == 0
    assert [name for name in COMMANDS if f"\n  {name} " not in done.out] == []
    listed = subprocess.run(
        [sys.executable, "-c", LOADED], cwd=REPO, capture_output=True, text=True, timeout=60, check=True
    )
    assert set(listed.stdout.splitlines()[-1].split()) == {"runtime.cli.main", "runtime.cli.settings"}


def test_every_command_of_the_list_can_be_imported() -> None:
    context = click.Context(program)
    for name in COMMANDS:
        command = program.get_command(context, name)
        assert command is not None, name
        assert command.name == name


def test_the_version_is_that_of_the_project(checkout: Checkout) -> None:
    (checkout.root / "pyproject.toml").write_text('[project]\nversion = "7.8.9"\n')
    done = checkout.start("--version")
    assert (done.returncode, done.stdout) == (0, b"gatehouse 7.8.9\n")


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        (("up",), ["up"]),
        (("down", "--all"), ["down", "--all"]),
        (("test",), ["test"]),
        (("just", "--list", "-u"), ["just", "--list", "-u"]),
    ],
)
def test_the_hosts_own_commands_become_the_shell_entry(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], passed: list[str]
) -> None:
    calls = []
    monkeypatch.setattr("os.execve", lambda *call: calls.append(call))
    checkout.environment["AGENT_PORT"] = "8123"
    assert checkout.run(*words).code == 0
    entry = str(checkout.root / "gatehouse")
    assert calls == [(entry, [entry, *passed], checkout.variables())]


def test_the_shell_entry_and_the_list_have_the_same_commands() -> None:
    script = (REPO / "gatehouse").read_text()
    usage = script.split("<<'USAGE'\n")[1].split("\nUSAGE\n")[0]
    assert [name for name in COMMANDS if f"\n  {name} " not in usage] == []
    assert set(host.COMMANDS) == HOST
    assert [name for name in HOST if f'\n    {name}) shift; command_{name} "$@" ;;\n' not in script] == []
    taken = next(line for line in script.splitlines() if line.endswith(') command_cli "$@" ;;'))
    assert set(taken.strip().split(")")[0].split(" | ")) == COMMANDS.keys() - HOST


def test_a_reader_that_has_seen_enough_is_no_traceback(checkout: Checkout) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "runtime.cli", "check", "--json"],
        cwd=REPO,
        env=checkout.variables(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        said = process.stderr.read()
    assert process.returncode == 1
    assert said == b""


@pytest.mark.parametrize(
    ("given", "port"),
    [
        ({}, 8011),
        ({"AGENT_PORT": " 8123 "}, 8123),
        ({"AGENT_PORT": ""}, 8011),
        ({"AGENT_PORT": "65535"}, 65535),
    ],
)
def test_the_port_is_the_environments_or_the_default(given: dict[str, str], port: int) -> None:
    assert read_settings(given).url == f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("port", ["http", "0", "65536", "-1", "٣", "8" * 5000, "008011"])
def test_a_port_that_is_none_stops_only_what_needs_it(port: str) -> None:
    settings = read_settings({"AGENT_PORT": port})
    with pytest.raises(UsageError, match="AGENT_PORT is not a port"):
        _ = settings.url


def test_settings_that_are_set_to_nothing_count_as_not_set() -> None:
    settings = read_settings({"COMPOSE_PROJECT_NAME": " ", "GATEHOUSE_AGENT": "", "GATEHOUSE_ROOT": ""})
    assert (settings.project, settings.agent, settings.root) == ("gatehouse", "ada", REPO)


def test_the_exit_code_that_a_command_returns_is_the_processs(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    @click.command()
    def command() -> int:
        return 7

    monkeypatch.setattr(type(program), "get_command", lambda *_: command)
    assert main(["check"], checkout.variables()) == 7
