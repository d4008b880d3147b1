"""`python -m runtime.spawner --check`: what a start would refuse, without an engine and without a socket."""

from __future__ import annotations

import pytest

from runtime.spawner import __main__ as program
from runtime.spawner.policy import RUNTIMES

PAGE = "(mend it or leave it unset; see docs/reference/spawner-settings.md)"


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("TURN_CPUS", "many", f"TURN_CPUS is not a number from 0.1 to 256 {PAGE}"),
        ("TURN_PIDS", "5", f"TURN_PIDS is not a whole number from 32 to 4096 {PAGE}"),
        ("TURN_RUNTIME", "x", f"TURN_RUNTIME is none of {', '.join(RUNTIMES)} {PAGE}"),
        (
            "CLAUDE_BINARY",
            "/x",
            "CLAUDE_BINARY is set, but a turn in the sandbox runs the CLI of its own image.",
        ),
    ],
)
def test_a_check_ends_as_a_start_would(
    name: str,
    value: str,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv(name, value)
    assert program.main(["--check"]) == 2
    out, told = capsys.readouterr()
    assert out == ""
    assert told.startswith(f"gatehouse: usage: {said}")
    assert told.count("\n") == 1


def test_a_check_of_good_settings_starts_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("runtime.spawner.process.run", lambda: pytest.fail("it served"))
    monkeypatch.delenv("CLAUDE_BINARY", raising=False)
    assert program.main(["--check"]) == 0
    assert capsys.readouterr() == ("", "")
