"""`python -m runtime.unsandboxed --agent NAME`: one turn without a sandbox, its question on stdin.

Prints NDJSON, as `python -m runtime.turn.once` does for a turn in a container (docs/reference/protocols.md,
"One turn for its author"), on stdout; the banner and the log are on stderr. The exit codes are the same too,
and 4 where there is no CLI to run.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runtime import log
from runtime.turn import ending
from runtime.turn.once import exit_code, interruptible, read_text, refuse, run_once, write_line
from runtime.unsandboxed.starting import load, start

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.agents.definition import AgentDefinition
    from runtime.unsandboxed.runner import SubprocessRunner


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line; exits with 2 on wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m runtime.unsandboxed",
        description="Runs one turn without a sandbox, as you, on the text on stdin, and tells it as NDJSON.",
        allow_abbrev=False,
    )
    parser.add_argument("--agent", required=True, metavar="NAME", help="instance folder below instances/")
    parser.add_argument("--model", metavar="MODEL", help="alias or id of the model")
    parser.add_argument("--root", type=Path, help="the folder that holds instances/")
    return parser.parse_args(argv)


async def _turn(agent: AgentDefinition, runner: SubprocessRunner, text: str) -> int:
    try:
        return await run_once(agent, runner, text, write_line)
    finally:
        await runner.aclose()


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Load the instance and run the turn. Raises GatehouseError for every failure that has a name."""
    root = options.root or Path(__file__).resolve().parents[2]
    agent = load(root, options.agent, environ, CLAUDE_MODEL=options.model)
    text = read_text()
    refuse(text.strip(), agent)
    ending.hold()  # until the turn can be cancelled: the copy of the documents must go with us
    try:
        runner = start(agent, environ, root)
        try:
            return asyncio.run(interruptible(_turn(agent, runner, text)))
        finally:
            runner.snapshot.remove()
    finally:
        ending.release()


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one turn and return the exit code (docs/reference/exit-codes.md)."""
    options = arguments(argv)
    log.configure("unsandboxed")
    return exit_code(lambda: run(options, environ))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
