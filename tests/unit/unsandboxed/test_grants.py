"""The grants server where there is no sandbox: places by argument, nothing imported from the grounding."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

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
