"""What only a run without a sandbox may be told: said in one place for every process that has a sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


def refuse_unsandboxed_settings(environ: Mapping[str, str], *, model: str | None = None) -> None:
    """Raise UsageError for `--model` and CLAUDE_BINARY, which would do nothing in the sandbox.

    Why an error: whoever sets one expects another program or model to answer, and would not notice. The model
    of a sandboxed turn is CLAUDE_MODEL or the instance's `model`, which front and spawner must agree on.
    """
    if model is not None:
        raise UsageError(
            "--model needs --sandbox none.", "set CLAUDE_MODEL, or `model` in the instance's agent.yaml"
        )
    if environ.get("CLAUDE_BINARY", "").strip():
        raise UsageError(
            "CLAUDE_BINARY is set, but a turn in the sandbox runs the CLI of its own image.",
            "unset it, or add --sandbox none",
        )
