"""turn_init as PID 1 of a real turn container, with a Python program in the CLI's place."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import docker
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.contract.conftest import Cli

pytestmark = pytest.mark.engine

ATTACK = """
import json, os, signal, sys
sys.stdin.readline()
answers = {}
def attempt(label, action):
    try:
        action()
    except OSError as error:
        answers[label] = error.strerror
    else:
        answers[label] = "done"
for number in sorted(signal.valid_signals()):
    os.kill(1, number)
reads = [(leaf, os.O_RDONLY) for leaf in ("fd/0", "environ", "maps", "cwd", "root")]
for leaf, flags in reads + [("mem", os.O_RDWR), ("fd/1", os.O_WRONLY), ("oom_score_adj", os.O_WRONLY)]:
    attempt(leaf, lambda: os.close(os.open("/proc/1/" + leaf, flags)))
attempt("listing", lambda: os.listdir("/proc/1/fd"))
print(json.dumps({"type": "result", "answers": answers, "pid": os.getpid(), "parent": os.getppid()}))
"""


def program(source: str) -> Callable[[dict[str, Any]], None]:
    def change(body: dict[str, Any]) -> None:
        body["Cmd"] = ["/usr/bin/python3", "-I", "-c", source]

    return change


@pytest.mark.control("LIFE-02")
def test_pid_1_cannot_be_stopped_killed_or_read_from_inside(cli: Cli) -> None:
    ran = cli.run("hello", change=program(ATTACK), within_seconds=30)
    assert ran.exit_code == 0
    assert ran.result["parent"] == 1
    assert set(ran.result["answers"].values()) == {"Permission denied"}


@pytest.mark.control("LIFE-02")
def test_the_deadline_ends_a_container_full_of_processes_that_ignore_it(cli: Cli) -> None:
    source = """
import os, signal
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): signal.signal(number, signal.SIG_IGN)
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        break
print('{"type": "result"}', flush=True)
while True: signal.pause()
"""

    def change(body: dict[str, Any]) -> None:
        program(source)(body)
        body["Entrypoint"] = ["/usr/bin/python3", "-I", "-c", SHORT]

    ran = cli.run("hello", change=change, within_seconds=30)
    assert ran.exit_code == 124
    assert ran.stderr == "turn_init: the deadline ended the turn\n"


SHORT = """
import os, sys
sys.path.insert(0, "/opt/gatehouse")
import turn_init
turn_init.MAX_DEADLINE_SECONDS = 3600
class Soon(turn_init.Order):
    def __init__(self, line):
        super().__init__(line)
        self.deadline_seconds = 0.5
turn_init.Order = Soon
os._exit(turn_init.main())
"""


def test_a_process_in_a_session_of_its_own_does_not_outlive_the_cli(cli: Cli) -> None:
    source = """
import os, signal
if os.fork() == 0:
    os.setsid()
    while True: signal.pause()
print('{"type": "result"}')
"""
    assert cli.run("hello", change=program(source), within_seconds=30).exit_code == 0


@pytest.mark.control("PRIV-01")
def test_the_image_holds_no_program_but_the_cli_and_python_and_nothing_with_rights(cli: Cli) -> None:
    source = """
import json, os, stat
programs, special, links = [], [], []
for folder, names, leaves in os.walk("/"):
    names[:] = [n for n in names if os.path.join(folder, n) not in ("/proc", "/sys", "/dev")]
    for leaf in leaves:
        path = os.path.join(folder, leaf)
        mode = os.lstat(path).st_mode
        if mode & 0o6000: special.append(path)
        library = leaf.endswith(".so") or ".so." in leaf
        if stat.S_ISREG(mode) and mode & 0o111 and not library:
            if open(path, "rb").read(4).startswith((b"#!", b"\\x7fELF")): programs.append(path)
for path in ("/dev", "/dev/null", "/dev/pts", "/proc", "/etc", "/run", "/run/doors"):
    if os.path.islink(path): links.append(path)
print(json.dumps({"type": "result", "programs": sorted(programs), "special": special, "links": links}))
"""
    ran = cli.run("hello", change=program(source), within_seconds=60)
    assert ran.result["programs"] == ["/usr/bin/python3.13", "/usr/local/bin/claude"]
    assert ran.result["special"] == []
    assert ran.result["links"] == []


def test_the_image_runs_as_nobody_unless_told_otherwise() -> None:
    engine = docker.APIClient(version="1.45", timeout=30)
    config = engine.inspect_image("gatehouse-turn:dev")["Config"]  # type: ignore[no-untyped-call]  # docker-py
    engine.close()
    assert config["User"] == "65534:65534"
    assert config["WorkingDir"] == "/grounding"
    assert config["Entrypoint"] == ["/usr/bin/python3", "-I", "-S", "/opt/gatehouse/turn_init.pyc"]
    assert not [entry for entry in config["Env"] if "KEY" in entry]
    assert json.dumps(config.get("ExposedPorts")) in {"null", "{}"}
