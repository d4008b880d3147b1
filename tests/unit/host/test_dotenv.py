"""What is wrong in .env is told before anything is set up, and never by showing a value: it may be a key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime.agents.fields import OVERRIDES
from runtime.front.settings import NAMES as FRONT_NAMES
from runtime.modelproxy.settings import Settings
from runtime.spawner.settings import TABLE

if TYPE_CHECKING:
    from tests.unit.host.conftest import Host

OPERATE = Path(__file__).parents[3] / "docs" / "how-to" / "operate.md"
COMMANDS = ("up", "down", "test", "check", "ask", "status", "just")


def warnings(talk: str) -> list[str]:
    return [line for line in talk.splitlines() if line.startswith("gatehouse: warning: ")]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_line_that_sets_nothing_is_a_usage_error_of_every_command(host: Host, command: str) -> None:
    host.docker()
    host.file("checkout/.env", "# mine\n\nexport AGENT_PORT=8123\nBASE=\nGATEHOUSE AGENT=x\n")
    done = host.run(command)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "gatehouse: usage: .env:5: this line is not NAME=value"
        " (write GATEHOUSE_AGENT=value on one line, or put a # before it)\n"
    )
    assert not host.called("docker")


@pytest.mark.parametrize(
    ("line", "mend"),
    [
        ("GATEHOUSE_AGENT x", "GATEHOUSE_AGENT=value"),
        ("GATEHOUSE_AGENT: x", "GATEHOUSE_AGENT=value"),
        ("export GATEHOUSE_AGENT", "GATEHOUSE_AGENT=value"),
        ("MODEL-DAILY-USD 5", "MODEL_DAILY_USD=value"),
        ("=x", "NAME=value"),
        ("sk-ant-test-0000", "NAME=value"),
        ("SK-ANT-0000", "NAME=value"),
        ('BASE="never closed\nAGENT_PORT=1', "NAME=value"),
    ],
)
def test_the_mend_of_a_wrong_line_shows_a_name_and_never_what_may_be_a_key(
    host: Host, line: str, mend: str
) -> None:
    host.file("checkout/.env", f"{line}\n")
    done = host.run("up")
    assert done.returncode == 2
    assert done.stderr.startswith(f"gatehouse: usage: .env:1: this line is not NAME=value (write {mend} ")
    assert "0000" not in done.stderr


def test_lines_that_compose_takes_are_no_mistakes(host: Host) -> None:
    host.docker()
    host.file(
        "checkout/.env",
        "\ufeffAGENT_PORT = 8123\r\n  # indented\n\texport BASE='x' # why\nOTHER.name-1=y\n"
        'LONG="one\ntwo words\nthree" \nGATEHOUSE_AGENT=\n',
    )
    assert host.shell('echo "$PORT"') == "8123\n"
    assert host.run("up").returncode == 0


@pytest.mark.parametrize("arguments", [("help",), ("--version",)])
def test_help_is_given_whatever_stands_in_the_file(host: Host, arguments: tuple[str, ...]) -> None:
    host.file("checkout/.env", "GATEHOUSE AGENT=x\n")
    assert host.run(*arguments).returncode == 0


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("AGENT_PROT", "AGENT_PORT is one; "),
        ("TURN_MEMORY", ""),
        ("TURN_PID", "TURN_PIDS is one; "),
        ("GROUDING_DIR", "GROUNDING_DIR is one; "),
        ("BSAE", "BASE is one; "),
        ("agent_port", "AGENT_PORT is one; "),
        ("GATEHOUSE_LOCK_SECONDS", ""),
        ("MODEL_STATE_DIR", ""),
        ("COMPOSE_FILE", ""),
        ("PUBLIC_URL", ""),
    ],
)
def test_a_name_that_has_no_effect_is_warned_of_with_its_line_and_the_nearest(
    host: Host, name: str, near: str
) -> None:
    host.docker()
    host.file("checkout/.env", f"BASE=\n{name}=secret-word\n")
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    (said,) = warnings(done.stderr)
    assert said == (
        f"gatehouse: warning: .env:2: {name} is not a setting and has no effect"
        f" ({near}all are in docs/how-to/operate.md)"
    )
    assert "secret-word" not in done.stderr


def test_names_of_others_and_names_that_are_set_rightly_are_no_mistakes(host: Host) -> None:
    host.docker()
    names = host.shell("settings_names").split()
    host.file(
        "checkout/.env",
        "".join(f"{name}=\n" for name in [*names, "DATABASE_URL", "PATH", "no_proxy", "EDITOR", "NPM_TOKEN"]),
    )
    done = host.run("up")
    assert done.returncode == 0, done.stderr
    assert warnings(done.stderr) == []


def test_the_names_that_have_an_effect_are_the_services_tables_and_what_the_page_on_running_it_names(
    host: Host,
) -> None:
    names = set(host.shell("settings_names").split())
    places = {"DOCKER_SOCKET_PATH", "PACKS_VOLUME", "DOORS_VOLUME"} | {
        "MODEL_STATE_DIR",
        "MODEL_CONTROL_SOCKET",
        "MODEL_DOORS_DIR",
        "MODEL_OPS_DIR",
    }
    tables = {one.name for one in TABLE} | {str(one.alias) for one in Settings.model_fields.values()}
    tables |= FRONT_NAMES
    assert (tables | set(OVERRIDES)) - places <= names
    assert not names & places
    told = set(re.findall(r"`([A-Z][A-Z_]+)[`=]", OPERATE.read_text()))
    composes = {name for name in names if name.startswith("COMPOSE_")} | {"DOCKER_HOST"}
    assert {name.upper() for name in names - tables - set(OVERRIDES) - composes} <= told


@pytest.mark.parametrize(
    "name", ["MODEL_API_KEYFILE", "MODEL_API_KEY", "MODEL_KEY_FILE", "MODEL_API_KEY_FLIE"]
)
def test_a_misspelt_key_file_is_never_the_demo(host: Host, name: str) -> None:
    host.docker()
    host.file("checkout/.env", f"AGENT_PORT=8123\n{name}=sk-ant-test-0000\n")
    done = host.run("up")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"gatehouse: usage: .env:2: {name} is not a setting, and the demo would answer in place of a model"
        f" (write MODEL_API_KEY_FILE=FILE, or remove {name})\n"
    )
    assert not host.called("docker")
    assert host.run("down").returncode == 0


def test_a_misspelt_key_file_in_the_environment_is_never_the_demo_either(host: Host) -> None:
    host.docker()
    host.environment |= {"MODEL_API_KEYFILE": "/x", "MODEL_OF_ANOTHER_PROGRAMS_KEY": "y"}
    done = host.run("up")
    assert done.returncode == 2
    assert "usage: environment: MODEL_API_KEYFILE is not a setting" in done.stderr
    del host.environment["MODEL_API_KEYFILE"]
    assert host.run("up").returncode == 0


def test_an_authors_command_warns_once_and_goes_on(host: Host) -> None:
    host.file("checkout/requirements/dev.txt", "")
    python = host.file("checkout/.venv/bin/python", f"#!{host.folder}/bin/sh\necho ran\n")
    python.chmod(0o755)
    host.shell(
        'python_stamp "$GATEHOUSE_ROOT/.venv" dev >.venv/gatehouse.stamp',
        parts="words settings lock apt python",
    )
    host.file("checkout/.env", "AGENT_PROT=8094\nMODEL_API_KEYFILE=/x\n")
    done = host.run("check")
    assert (done.returncode, done.stdout) == (0, "ran\n")
    assert [line.split(" is not")[0] for line in warnings(done.stderr)] == [
        "gatehouse: warning: .env:1: AGENT_PROT",
        "gatehouse: warning: .env:2: MODEL_API_KEYFILE",
    ]


@pytest.mark.parametrize(
    "name", ["MODEL_API_KEY_FILE", "MODEL_CA_FILE", "TUNNEL_TOKEN_FILE", "EXTRA_CA_CERTS"]
)
@pytest.mark.parametrize("written", ["~/some/file", '"~/some/file"', "'~/some/file' # mine"])
def test_a_home_in_the_file_is_the_users_home(host: Host, name: str, written: str) -> None:
    host.file("checkout/.env", f"{name}={written}\n")
    assert host.shell(f'echo "${name}"') == f"{host.folder}/home/some/file\n"


def test_a_path_in_the_file_is_taken_from_its_folder_and_an_absolute_one_stays(host: Host) -> None:
    host.file("checkout/.env", "MODEL_API_KEY_FILE=key\nMODEL_CA_FILE=/etc/~/ca\nTUNNEL_TOKEN_FILE=~token\n")
    said = host.shell('echo "$MODEL_API_KEY_FILE $MODEL_CA_FILE $TUNNEL_TOKEN_FILE"')
    assert said == f"{host.tree}/key /etc/~/ca {host.tree}/~token\n"
