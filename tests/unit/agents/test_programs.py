"""A granted script that would fail at every call is told before a visitor calls it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from runtime.agents import honesty
from runtime.agents.instance import inspect_instance
from runtime.agents.programs import TURN_PYTHON, are_certain, faults

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.errors import Problem

GRANT = "allowed_tools: Read,Bash(python3 ${tools_dir}/hours.py:*)\n"


def told(root: Path, script: str) -> tuple[Problem, ...]:
    """Return what a check says of a granted script: problems, or warnings under an older Python."""
    folder = root / "instances" / "good"
    (folder / "tools" / "hours.py").write_text(script)
    (folder / "system-prompt.md").write_text("You answer. Use `hours` for times.\n")
    (folder / "agent.yaml").write_text(f"grounding_dir: docs\n{GRANT}")
    inspection = inspect_instance(root, "good", {})
    found = inspection.problems if are_certain() else inspection.warnings
    return tuple(one for one in found if one.file == "instances/good/tools/hours.py")


def test_a_script_that_is_no_python_is_told_with_its_place(root: Path) -> None:
    (problem,) = told(root, "import sys\n\ndef f(:\n    pass\n")
    assert (problem.line, problem.col) == (3, 7)
    assert problem.message.startswith("is not valid Python: ")


@pytest.mark.parametrize(
    ("script", "places"),
    [
        ("import requests\n", [(1, 1, "requests")]),
        ("import json, yaml.nodes\n", [(1, 1, "yaml.nodes")]),
        ("def f():\n    from numpy import array\n", [(2, 5, "numpy")]),
        ("from . import sibling\n", [(1, 1, ".")]),
        ("import other_tool\n", [(1, 1, "other_tool")]),
        ("try:\n    import requests\nexcept ImportError:\n    requests = None\n", []),
        ("try:\n    import requests\nexcept (ValueError, ModuleNotFoundError):\n    pass\n", []),
        ("try:\n    import requests\nfinally:\n    pass\n", [(2, 5, "requests")]),
        ("from __future__ import annotations\nimport argparse, datetime as d, zoneinfo\n", []),
        ("import os.path\nfrom email.message import Message\n", []),
    ],
)
def test_only_what_a_turn_has_can_be_imported(
    root: Path, script: str, places: list[tuple[int, int, str]]
) -> None:
    found = told(root, script)
    assert [(one.line, one.col) for one in found] == [(line, col) for line, col, _ in places]
    for one, (_, _, name) in zip(found, places, strict=True):
        assert f"imports {name}, which no turn has" in one.message


@pytest.mark.parametrize("script", [b"x = '\x00'\n", b"\xff\xfe", b"(" * 5000, b"-" * 100_000 + b"1"])
def test_what_no_parser_takes_is_told_and_ends_nothing(tmp_path: Path, script: bytes) -> None:
    (tmp_path / "x.py").write_bytes(script)
    (problem,) = faults(tmp_path / "x.py", "tools/x.py")
    assert problem.file == "tools/x.py"


def test_nothing_of_a_script_is_run(tmp_path: Path) -> None:
    (tmp_path / "x.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    assert faults(tmp_path / "x.py", "tools/x.py") == ()
    assert not (tmp_path / "ran").exists()


def test_an_older_python_than_a_turn_s_only_warns() -> None:
    assert are_certain() == (sys.version_info[:2] >= TURN_PYTHON)


def test_the_granted_scripts_are_read_for_each_action_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def counted(action: str, served: str) -> bool:
        del served
        asked.append(action)
        return False

    monkeypatch.setattr(honesty, "is_kept", counted)
    skills = "".join(
        f"  - {{id: s{n}, tags: [fact], description: It can book a table.}}\n" for n in range(20)
    )
    (root / "instances" / "good" / "agent.yaml").write_text(f"grounding_dir: docs\nskills:\n{skills}")
    assert len(inspect_instance(root, "good", {}).warnings) >= 20
    assert len(asked) == len(set(asked))
