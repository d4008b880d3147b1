"""What comes before the first turn without a sandbox: the agent marked as what it is, the checks, the noise.

Says on stderr, in the log and on the card that there is no sandbox, and which model answers. Imports no
server, because a single turn needs none.
"""

from __future__ import annotations

import dataclasses
import getpass
import importlib
import os
import sys
from typing import TYPE_CHECKING, Final

import structlog

from runtime.agents.instance import load_instance
from runtime.errors import HostError
from runtime.unsandboxed.runner import SubprocessRunner

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runtime.agents.definition import AgentDefinition

NOTICE: Final = "It runs without its sandbox, on its author's own machine: for development, not for visitors."

log = structlog.get_logger("unsandboxed")


def load(root: Path, name: str, environ: Mapping[str, str], **flags: str | None) -> AgentDefinition:
    """Return the agent with the flags over the environment over the file, marked as what it is.

    `flags` are variables of the environment by name; None is not given. Raises ConfigError.
    """
    given = {key: value for key, value in flags.items() if value is not None}
    agent = load_instance(root, name, {**environ, **given})
    description = f"{agent.card.description.strip()} {NOTICE}".strip()
    return dataclasses.replace(agent, card=dataclasses.replace(agent.card, description=description))


def start(agent: AgentDefinition, environ: Mapping[str, str], root: Path) -> SubprocessRunner:
    """Return the runner for an agent, announced.

    Raises HostError on another system than Linux, without a CLI or what the demo model needs, and
    ConfigError.
    """
    _refuse_this_system()
    runner = SubprocessRunner(agent, environ, root=root)
    try:
        _refuse_to_start(runner, agent)
        sys.stderr.write(banner(runner, agent))
    except BaseException:  # cancellation too leaves no copy behind, and passes on
        runner.snapshot.remove()
        raise
    log.warning(
        "no-sandbox",
        agent=agent.id,
        program=runner.program,
        model=agent.model,
        demo=runner.model.demo,
        why=runner.model.reason,
        hidden=list(runner.snapshot.hidden[:100]),
        not_inlined=list(runner.snapshot.not_inlined[:100]),
    )
    return runner


def _refuse_this_system() -> None:
    """Raise HostError where a turn's end cannot be waited for: pidfds are Linux's, from 5.3 on."""
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError):
        raise HostError(
            "Turns without a sandbox need Linux 5.3 or later.", "run them in the sandbox: ./gatehouse up"
        ) from None


def _refuse_to_start(runner: SubprocessRunner, agent: AgentDefinition) -> None:
    if not runner.program:
        raise HostError(
            f"There is no program {agent.binary!r} to run turns with.",
            "install the CLI, or name it with CLAUDE_BINARY or `binary` in agent.yaml",
        )
    if not runner.model.demo:
        return
    try:
        demo = importlib.import_module("runtime.unsandboxed.demo")
    except ModuleNotFoundError as error:
        raise HostError(
            f"The demo model needs {error.name or 'a module'}, which is not installed here.",
            "run it in the checkout's .venv, or give the CLI a way to a model, such as ANTHROPIC_API_KEY",
        ) from error
    folder = runner.doors_folder
    spare = demo.FOLDER_MAX_BYTES - len(os.fsencode(folder))
    if spare < 0:
        temporary = folder.parents[1]
        raise HostError(
            f"The demo model's sockets find no room below {temporary}: its path is too long.",
            f"set TMPDIR to a folder with a path of at most {len(os.fsencode(temporary)) + spare} bytes",
        )


def banner(runner: SubprocessRunner, agent: AgentDefinition) -> str:
    """Return what a person must have read before the first turn."""
    who = "the built-in demo model" if runner.model.demo else f"the CLI's own model, {agent.model}"
    lines = (
        f"NO SANDBOX: turns of {agent.id} run as {_user()} on this machine, beside your files and network.",
        "For you alone, to try things out. Never for visitors: no tunnel, no proxy, no public port.",
        f"{who[0].upper()}{who[1:]} answers, because {runner.model.reason}.",
        f"The CLI is {runner.program}.",
    )
    rule = "!" * max(len(line) for line in lines)
    return "\n".join((rule, *lines, rule)) + "\n"


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):  # a uid without a name
        return "this user"
