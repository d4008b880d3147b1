"""Tests answer the same whatever the person who runs them has exported for a stack of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from runtime.agents.fields import ENVIRONMENT, OVERRIDES

ROOT = Path(__file__).resolve().parents[2]
EXPORTED = {
    "COMPOSE_PROJECT_NAME": "mine",
    "GATEHOUSE_AGENT": "mira",
    "MODEL": "demo",
    "MODEL_API_KEY_FILE": "/nowhere",
    "SPAWNER_MAX_RUNNING": "1",
    "TURN_PIDS": "1",
    **dict.fromkeys((*OVERRIDES, ENVIRONMENT), "test"),
}
PROBE = "tests/unit/test_environment.py::test_no_setting_of_the_operator_reaches_a_test"


def test_no_setting_of_the_operator_reaches_a_test() -> None:
    assert EXPORTED.keys() & os.environ.keys() == set()


def test_a_test_that_starts_gatehouse_itself_does_not_wait_for_the_run_it_is_part_of() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"{Path(__file__)}::test_the_lock_is_told",
        ],
        cwd=ROOT,
        env={**os.environ, "GATEHOUSE_LOCKED": "1", "EXPECT_LOCKED": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout


def test_the_lock_is_told() -> None:
    assert "EXPECT_LOCKED" not in os.environ or os.environ["GATEHOUSE_LOCKED"] == "1"


def test_what_is_exported_is_taken_out_before_the_first_test() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", PROBE],
        cwd=ROOT,
        env={**os.environ, **EXPORTED},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout
