"""Exit codes are the same in the shell, in Python and in the documentation."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runtime import errors

REPO = Path(__file__).resolve().parents[3]
FAIL = re.compile(r"\b(?:fail|apt_may) ([0-9]+) ([a-z-]+) ")
ROW = re.compile(r"^\| ([0-9]+) \| (.*?) \|")
WITHOUT_CLASS = {0, 130}


def classes() -> dict[str, int]:
    """Return every named failure's code and exit code."""
    found = [errors.GatehouseError]
    for one in found:
        found.extend(one.__subclasses__())
    return {one.code: one.exit_code for one in found}


def scripts() -> list[tuple[int, str]]:
    files = [REPO / "gatehouse", *sorted((REPO / "compose" / "host").glob("*.sh"))]
    return [(int(code), name) for file in files for code, name in FAIL.findall(file.read_text())]


def test_every_failure_of_the_scripts_is_one_of_the_tree() -> None:
    known = classes()
    found = scripts()
    assert len(found) > 30
    assert [pair for pair in found if known.get(pair[1]) != pair[0]] == []


def test_the_page_lists_every_exit_code_and_every_name() -> None:
    page = (REPO / "docs/reference/exit-codes.md").read_text()
    rows = {int(row[1]): row[2] for row in map(ROW.match, page.splitlines()) if row}
    known = classes()
    assert set(rows) == set(known.values()) | WITHOUT_CLASS
    for code, exit_code in known.items():
        assert f"`{code}`" in rows[exit_code], code
    named = {name: exit_code for exit_code, text in rows.items() for name in re.findall(r"`([a-z-]+)`", text)}
    assert named == known


def ended(*command: str, **settings: str) -> tuple[int, str]:
    """Start a service that cannot start; return its exit code and its last words."""
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=REPO,
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("command", "code", "name"),
    [
        (("runtime.server", "--agent", "nobody"), 3, "config-invalid"),
        (("runtime.ingress", "--host", "192.0.2.1"), 4, "host-not-ready"),
    ],
)
def test_front_and_ingress_end_with_the_sentence_of_the_page(
    command: tuple[str, ...], code: int, name: str
) -> None:
    exit_code, words = ended(*command)
    assert exit_code == code
    assert re.fullmatch(rf"gatehouse: {name}: .+ \(.+\)", words)


@pytest.mark.parametrize(
    ("service", "settings", "code", "name"),
    [
        ("spawner", {"TURN_PIDS": "0"}, 2, "usage"),
        ("modelproxy", {"MODEL_DAILY_USD": "-1"}, 3, "config-invalid"),
    ],
)
def test_spawner_and_model_proxy_end_with_a_line_of_their_log_that_holds_the_code(
    service: str, settings: dict[str, str], code: int, name: str
) -> None:
    exit_code, words = ended(f"runtime.{service}", **settings)
    line = json.loads(words)
    assert exit_code == code
    assert (line["service"], line["code"]) == (service, name)
    assert next(iter(settings)) in line["reason"]
