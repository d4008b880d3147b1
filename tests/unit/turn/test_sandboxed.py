"""What a process with a sandbox refuses to be told."""

from __future__ import annotations

import pytest

from runtime.errors import UsageError
from runtime.turn.sandboxed import refuse_unsandboxed_settings


def test_a_model_needs_a_run_without_a_sandbox() -> None:
    with pytest.raises(UsageError, match=r"--model needs --sandbox none\. \(set CLAUDE_MODEL"):
        refuse_unsandboxed_settings({}, model="haiku")


def test_a_binary_needs_one_too() -> None:
    with pytest.raises(UsageError, match=r"CLAUDE_BINARY is set.*\(unset it, or add --sandbox none\)"):
        refuse_unsandboxed_settings({"CLAUDE_BINARY": "/opt/claude"})


@pytest.mark.parametrize("environ", [{}, {"CLAUDE_BINARY": ""}, {"CLAUDE_BINARY": "  "}])
def test_nothing_said_is_nothing_refused(environ: dict[str, str]) -> None:
    refuse_unsandboxed_settings(environ)
    assert environ.get("CLAUDE_BINARY", "").strip() == ""
