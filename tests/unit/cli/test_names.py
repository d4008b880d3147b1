"""One rule says what an instance may be named: the loader's, which the commands and the scripts share."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runtime.agents.folders import NAME
from runtime.agents.instance import inspect_instance
from runtime.cli.names import refuse_name
from runtime.errors import UsageError

REPO = Path(__file__).resolve().parents[3]
NAMES = {
    "ada": True,
    "_x": True,
    "7": True,
    "a-b_c": True,
    "a" * 63: True,
    "a" * 64: False,
    "": False,
    "-a": False,
    "Ada": False,
    "aDa": False,
    "a.b": False,
    "a/b": False,
    "a b": False,
    "é": False,
    "a\nb": False,
    "a]": False,
}
SCRIPT = """
fail() { printf '%s\\n' "$3"; exit "$1"; }
GATEHOUSE_ROOT=/nowhere
. "$0"
AGENT=$1
instance_present
"""


@pytest.mark.parametrize(("name", "taken"), NAMES.items())
def test_the_loader_the_commands_and_the_scripts_take_the_same_names(
    tmp_path: Path, name: str, taken: bool
) -> None:
    assert (NAME.fullmatch(name) is not None) is taken
    problem = inspect_instance(tmp_path, name, {}).problems[0].message
    assert ("has no instance named" not in problem) is taken
    try:
        refuse_name(name)
        refused = False
    except UsageError:
        refused = True
    assert refused is not taken
    done = subprocess.run(
        ["sh", "-c", SCRIPT, str(REPO / "compose/host/settings.sh"), name],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, "is not a name" in done.stdout) == ((3, False) if taken else (2, True))
