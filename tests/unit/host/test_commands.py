"""The author's commands on a bare host: their environment is made once, whole, whatever else is at work."""

from __future__ import annotations

import fcntl
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.host.conftest import Host

COMMANDS = ("new", "check", "ask", "turn", "status", "logs", "reload", "completion")

# A Python that makes environments whose own notes its calls and prints the variables that a test asks for.
PYTHON = r"""
case "$*" in
  *"-m venv "*)
    for folder; do :; done
    mkdir -p "$folder/bin" "$folder/lib/python3.11/site-packages"
    cat >"$folder/bin/python" <<SCRIPT
#!$HOST/bin/sh
printf '%s\n' "python \$*" >>"$HOST/calls"
case "\$*" in
  *" pip install "*) cat "$HOST/pip.fails" 2>/dev/null && exit 1 || exit 0 ;;
  *runtime.cli*)
    for name in \$(cat "$HOST/shown" 2>/dev/null); do eval "echo \$name=\\\${\$name-unset}"; done ;;
esac
SCRIPT
    chmod +x "$folder/bin/python" ;;
esac
"""


@pytest.fixture
def ready(host: Host) -> Host:
    """A host with a Python, and the lock of the commands."""
    host.program("python3", PYTHON)
    host.file("checkout/requirements/cli.txt", "click==1\n")
    return host


def runs(host: Host) -> list[str]:
    return [call.partition("-m runtime.cli ")[2] for call in host.called("python -I -X utf8 -m runtime.cli")]


def installs(host: Host) -> int:
    return len([call for call in host.calls() if " -m pip install " in call])


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_runs_in_an_environment_that_is_made_once(ready: Host, command: str) -> None:
    for _ in range(2):
        done = ready.run(command, "a b", "--json")
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert runs(ready) == [f"{command} a b --json"] * 2
    assert installs(ready) == 1
    assert "--require-hashes" in next(call for call in ready.calls() if " -m pip install " in call)
    assert (ready.tree / ".gatehouse/cli/gatehouse.stamp").exists()
    site = ready.tree / ".gatehouse/cli/lib/python3.11/site-packages/gatehouse.pth"
    assert site.read_text() == f"{ready.tree}\n"
    assert not ready.called("docker")


def test_the_environment_is_made_anew_when_its_lock_changes(ready: Host) -> None:
    ready.run("check")
    ready.file("checkout/requirements/cli.txt", "click==2\n")
    ready.run("check")
    assert installs(ready) == 2


def test_the_environment_is_made_anew_when_its_python_is_another_or_gone(ready: Host) -> None:
    ready.run("check")
    python = ready.tree / ".gatehouse/cli/bin/python"
    python.rename(python.with_name("python3.9"))
    python.symlink_to("python3.9")
    ready.run("check")
    python.unlink()
    ready.run("check")
    assert installs(ready) == 3
    assert len(runs(ready)) == 3


def test_a_checkout_that_was_moved_never_runs_the_code_of_its_old_place(ready: Host) -> None:
    ready.run("check")
    moved = ready.folder / "moved"
    ready.tree.rename(moved)
    subprocess.run(
        [ready.folder / "bin/sh", moved / "gatehouse", "check"],
        env=ready.variables(),
        cwd=moved,
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert installs(ready) == 2
    site = moved / ".gatehouse/cli/lib/python3.11/site-packages/gatehouse.pth"
    assert site.read_text() == f"{moved}\n"


def test_the_environment_of_the_checks_serves_the_commands_when_it_is_made_and_current(ready: Host) -> None:
    ready.shell('mkdir -p .venv; python_make "$GATEHOUSE_ROOT/.venv"', parts="words settings lock apt python")
    ready.shell(
        'python_stamp "$GATEHOUSE_ROOT/.venv" dev >.venv/gatehouse.stamp',
        parts="words settings lock apt python",
    )
    assert ready.run("check").returncode == 0
    assert installs(ready) == 0
    ready.file("checkout/requirements/dev.txt", "other==1\n")
    assert ready.run("check").returncode == 0
    assert installs(ready) == 1


def test_an_installation_that_fails_leaves_nothing_and_is_tried_again(ready: Host) -> None:
    failing = ready.file("pip.fails", "ERROR: No matching distribution\n")
    done = ready.run("check")
    assert done.returncode == 4
    assert (
        "host-not-ready: pip install failed: No matching distribution (see .gatehouse/venv.log)"
        in done.stderr
    )
    assert [path.name for path in (ready.tree / ".gatehouse").glob("cli*")] == ["cli.lock"]
    failing.unlink()
    assert ready.run("check").returncode == 0


def test_a_failed_installation_for_a_new_lock_takes_nothing_from_the_old_one(ready: Host) -> None:
    ready.run("check")
    before = (ready.tree / ".gatehouse/cli/gatehouse.stamp").read_text()
    ready.file("checkout/requirements/cli.txt", "click==2\n")
    ready.file("pip.fails", "ERROR: no network\n")
    assert ready.run("check").returncode == 4
    assert (ready.tree / ".gatehouse/cli/gatehouse.stamp").read_text() == before
    assert not (ready.tree / ".gatehouse/cli.new").exists()


def test_a_command_does_not_wait_for_a_start_or_for_the_checks(ready: Host) -> None:
    lock = ready.file("checkout/.gatehouse/lock", "")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        for locked in ({}, {"GATEHOUSE_LOCKED": "1"}):
            ready.environment = dict(locked)
            assert ready.run("ask", "Who are you?").returncode == 0
    assert len(runs(ready)) == 2


def test_two_commands_do_not_make_the_environment_at_once(ready: Host) -> None:
    lock = ready.file("checkout/.gatehouse/cli.lock", "")
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        done = ready.run("check")
    assert done.returncode == 4
    assert "another command still makes .gatehouse/cli" in done.stderr
    assert installs(ready) == 0


def test_a_made_environment_needs_no_lock(ready: Host) -> None:
    ready.run("check")
    with (ready.tree / ".gatehouse/cli.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert ready.run("check").returncode == 0


def test_without_python_a_user_gets_a_sentence_and_root_on_debian_gets_python(host: Host) -> None:
    host.file("checkout/requirements/cli.txt", "")
    host.program("python3", PYTHON)
    (host.folder / "bin/python3").rename(host.folder / "python3")
    host.program("apt-get", 'case "$*" in *python3-venv*) cp "$HOST/python3" "$HOST/bin/python3" ;; esac')
    host.program("cp", 'cat "$1" >"$2" && chmod 0755 "$2"')
    host.root = False
    done = host.run("check")
    assert done.returncode == 4
    assert (
        "no Python of version 3.11 or later with venv is on this host (install python3 and python3-venv;"
        in (done.stderr)
    )
    assert not host.called("apt-get")
    host.root = True
    assert host.run("check").returncode == 0
    assert [call for call in host.called("apt-get") if "python3 python3-venv" in call]


def test_the_overrides_of_an_instance_reach_a_command_from_dotenv_and_the_environment_wins(
    ready: Host,
) -> None:
    ready.file(
        "checkout/.env",
        "PUBLIC_AGENT_URL=https://a.example/#x\nAGENT_HOST = 'h'\nexport AGENT_PORT=8123 # mine\n"
        'CLAUDE_MODEL="o # p" # q\nGROUNDING_DIR=$(touch executed)\nCLAUDE_BINARY=old\nCLAUDE_BINARY=new\r\n'
        "ENVIRONMENT=test\n#CORS_ALLOWED_ORIGINS=https://a.example\nOTHER=x\nGATEHOUSE_AGENT=\n",
    )
    ready.file(
        "shown",
        "PUBLIC_AGENT_URL AGENT_HOST AGENT_PORT CLAUDE_MODEL GROUNDING_DIR CLAUDE_BINARY ENVIRONMENT"
        " CORS_ALLOWED_ORIGINS OTHER GATEHOUSE_AGENT GATEHOUSE_ROOT",
    )
    ready.environment["AGENT_HOST"] = "given"
    assert ready.run("check").stdout.splitlines() == [
        "PUBLIC_AGENT_URL=https://a.example/#x",
        "AGENT_HOST=given",
        "AGENT_PORT=8123",
        "CLAUDE_MODEL=o # p",
        "GROUNDING_DIR=$(touch executed)",
        "CLAUDE_BINARY=new",
        "ENVIRONMENT=test",
        "CORS_ALLOWED_ORIGINS=unset",
        "OTHER=unset",
        "GATEHOUSE_AGENT=",
        f"GATEHOUSE_ROOT={ready.tree}",
    ]
    assert not (ready.tree / "executed").exists()


def test_gatehouse_may_be_called_through_links_on_the_path_from_any_folder(ready: Host) -> None:
    (ready.folder / "links").mkdir()
    (ready.folder / "links/there").symlink_to(ready.tree / "gatehouse")
    (ready.folder / "bin/gatehouse").symlink_to("../links/there")
    (ready.tree / "gatehouse").chmod(0o755)
    done = subprocess.run(
        ["gatehouse", "check", "x"],
        env=ready.variables(),
        cwd=ready.folder / "tmp",
        executable=str(ready.folder / "bin/gatehouse"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, runs(ready)) == (0, ["check x"]), done.stderr


def test_a_press_of_tab_installs_nothing_and_says_nothing(ready: Host) -> None:
    ready.environment["_GATEHOUSE_COMPLETE"] = "bash_complete"
    done = ready.run()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert ready.calls() == []


def test_a_press_of_tab_reaches_the_command_once_its_environment_is_made(ready: Host) -> None:
    ready.run("check")
    ready.file("shown", "_GATEHOUSE_COMPLETE COMP_WORDS")
    ready.environment |= {"_GATEHOUSE_COMPLETE": "bash_complete", "COMP_WORDS": "gatehouse check"}
    assert ready.run().stdout == "_GATEHOUSE_COMPLETE=bash_complete\nCOMP_WORDS=gatehouse check\n"


@pytest.mark.parametrize("command", ["up", "down", "test"])
@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_the_hosts_own_commands_have_a_help_page_too(ready: Host, command: str, flag: str) -> None:
    assert ready.run(command, flag).returncode == 0
    assert runs(ready) == [f"{command} {flag}"]


def test_an_unknown_command_gets_the_nearest_name_when_the_environment_is_made(ready: Host) -> None:
    ready.run("check")
    ready.run("chekc")
    assert runs(ready) == ["check", "chekc"]


@pytest.mark.skipif(os.getuid() != 0, reason="needs to become another user")
def test_a_checkout_that_cannot_be_written_is_one_sentence(ready: Host) -> None:
    ready.root = False
    ready.calls_file.touch()
    ready.calls_file.chmod(0o666)
    done = ready.run("check", user=65534)
    assert done.returncode == 4
    assert done.stderr == (
        f"gatehouse: host-not-ready: {ready.tree}/.gatehouse cannot be written by visitor"
        " (run this once as who owns the checkout, or chown it)\n"
    )
