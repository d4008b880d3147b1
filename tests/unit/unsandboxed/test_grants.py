"""The grants server where there is no sandbox: places by argument, nothing imported from the grounding."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from runtime.unsandboxed import grants

if TYPE_CHECKING:
    from pathlib import Path


def serve(folder: Path, *names: str, request: str = "tools/list", **params: object) -> str:
    places = [str(folder / "tools"), sys.executable, str(folder / "context"), str(folder)]
    command = [sys.executable, "-I", "-S", grants.__file__, *places]
    for name in names:
        command += ["--tool", name]
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": request, "params": params})
    done = subprocess.run(
        command, input=line, capture_output=True, text=True, timeout=30, check=False, cwd=folder
    )
    return done.stdout or done.stderr


def test_it_serves_a_script_of_the_folder_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "when.py").write_text('"""Says when."""\nimport os\nprint(os.environ["HOME"])\n')
    for name in ("json.py", "sandbox.py", "runtime.py"):
        (tmp_path / name).write_text("raise SystemExit('imported from the grounding')\n")
    (tool,) = json.loads(serve(tmp_path, "when"))["result"]["tools"]
    assert tool["description"] == "Says when."
    answer = json.loads(serve(tmp_path, "when", request="tools/call", name="when"))
    assert answer["result"]["content"] == [{"type": "text", "text": f"{tmp_path}\n"}]


def test_a_name_that_is_no_script_there_ends_it(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    assert "not a script in the tools folder" in serve(tmp_path, "when")


def test_too_few_places_are_said(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", grants.__file__, "x"],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("grants: usage: ")


PARENT = "import subprocess, sys; subprocess.run(sys.argv[1:])"
STAYS = """
import os, signal
me = f"{os.environ['HOME']}/pid"
with open(f"{me}.new", "w") as file:
    file.write(str(os.getpid()))
os.rename(f"{me}.new", me)
signal.pause()
"""


def ended(pidfd: int) -> bool:
    """Say whether a process has ended, after waiting a while for that."""
    poll = select.poll()
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(15_000))


@pytest.mark.parametrize("how", ["the server is told to end", "the server's parent is killed"])
def test_a_script_that_runs_does_not_outlive_its_server(tmp_path: Path, how: str) -> None:
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "stays.py").write_text(STAYS)
    places = [str(tmp_path / "tools"), sys.executable, str(tmp_path / "context"), str(tmp_path)]
    command = [sys.executable, "-I", "-S", grants.__file__, *places, "--tool", "stays"]
    told = how == "the server is told to end"
    if not told:
        command = [sys.executable, "-I", "-S", "-c", PARENT, *command]
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "stays"}}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        process.stdin.write(json.dumps(request).encode() + b"\n")
        process.stdin.flush()  # and left open: it is not the end of its input that ends it
        while not (tmp_path / "pid").exists():
            signal.sigtimedwait((), 0.01)
        script = os.pidfd_open(int((tmp_path / "pid").read_text()))
        try:
            process.send_signal(signal.SIGTERM if told else signal.SIGKILL)
            assert process.wait(timeout=15) == (128 + signal.SIGTERM if told else -signal.SIGKILL)
            assert ended(script)
        finally:
            os.close(script)
