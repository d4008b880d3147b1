"""`gatehouse forget`: have the running stack forget a conversation, or all of them, without a restart.

The id goes to the front on stdin, never as an argument: it is the right to go on with the conversation, and
everybody on the host can read the arguments of a process. For the same reason `-` takes it from this
command's own stdin.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import Any, Final

import click

from runtime.cli.command import Command
from runtime.cli.engine import FORGET_SECONDS, Engine
from runtime.cli.failures import INTERRUPTION, Told, told
from runtime.cli.output import Progress, result, result_json, talk
from runtime.cli.said import OUTDATED, Said, line_of
from runtime.cli.settings import Settings, pass_settings
from runtime.errors import INTERRUPTED, GatehouseError, ImageError, ServiceUnreachable, UsageError

ID_MAX_BYTES: Final = 32 * 1024  # of a line on stdin; runtime/ops.py takes twice that
USAGE: Final = 2  # of runtime.health, for what the front does not understand
STAYS: Final = "logs and the model provider keep what they have: docs/how-to/privacy.md"


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How much was held and is gone: None while that is not known."""

    contexts: int | None = None
    tasks: int | None = None
    cancelled: int | None = None

    def as_json(self, error: Told | None = None) -> dict[str, Any]:
        """Return it as one object, whose keys are always the same (docs/reference/json.md)."""
        return {
            "ok": error is None,
            "contexts": self.contexts,
            "tasks": self.tasks,
            "cancelled": self.cancelled,
            "error": error,
        }

    def words(self) -> str:
        """Say it in one line."""
        if not (self.contexts or self.tasks or self.cancelled):
            return "nothing was held"
        counts = (
            (self.contexts, "conversation"),
            (self.tasks, "task"),
            (self.cancelled, "running turn"),
        )
        return "forgotten: " + ", ".join(
            f"{count or 0} {word}{'' if count == 1 else 's'}" for count, word in counts
        )


@click.command(
    "forget",
    cls=Command,
    prints=(
        "How many conversations, tasks and running turns were held and are gone, or that nothing was held. "
        "With --json one object."
    ),
    exits=(0, 5, 8),
    notes={
        0: "nothing of it is held; an id that is not known is no failure",
        2: "the command line is not understood, or the id is none",
        5: "the running stack is older than this checkout",
        8: "the front does not answer, or a turn did not end and may still be held",
        130: "interrupted, or the question was not answered with yes",
    },
    examples=(
        "gatehouse forget --task 7d0c1a52-6a0e-4d55-9c3e-0d3f6f1f2f61",
        "gatehouse forget --context - < the-id",
        "gatehouse forget --all --yes",
    ),
)
@click.option("--context", metavar="ID", help="The conversation of a context; - reads the id from stdin.")
@click.option("--task", metavar="ID", help="The conversation that a task belongs to; - as above.")
@click.option("--all", "everything", is_flag=True, help="Every conversation and every task.")
@click.option("--yes", is_flag=True, help="Do not ask before --all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@pass_settings
def command(
    settings: Settings, *, context: str | None, task: str | None, everything: bool, yes: bool, as_json: bool
) -> int:
    """Forget a conversation with all its tasks, or all of them, in the running front.

    Its running and waiting turns are cancelled first. Where visitors can guess the context's id and may share
    it, --task takes that task alone. Logs (which hold no text) and the model's provider keep what they have.
    """
    try:
        body = asked(context, task, everything=everything)
        if everything and not yes and not confirmed(settings):
            talk("nothing was forgotten")
            if as_json:
                result_json(Forgotten().as_json(INTERRUPTION))
            return INTERRUPTED
        forgotten = forget(settings, body)
    except GatehouseError as error:
        if as_json:
            result_json(Forgotten().as_json(told(error)))
        raise
    except (KeyboardInterrupt, click.Abort):
        if as_json:
            result_json(Forgotten().as_json(INTERRUPTION))
        raise
    if as_json:
        result_json(forgotten.as_json())
    else:
        result(forgotten.words())
    talk(STAYS)
    return 0


def asked(context: str | None, task: str | None, *, everything: bool) -> dict[str, Any]:
    """Return what the front is asked. Raises UsageError unless exactly one thing is named."""
    named = {key: text for key, text in (("context", context), ("task", task)) if text is not None}
    if len(named) + everything != 1:
        raise UsageError("nothing or too much is named", "give one of --context, --task and --all")
    if everything:
        return {"all": True}
    ((key, text),) = named.items()
    text = (_from_stdin(key) if text == "-" else text).strip()
    if not text:
        raise UsageError(f"the id of the {key} is empty", "an answer names it: ./gatehouse ask --json")
    return {key: text}


def confirmed(settings: Settings) -> bool:
    """Ask whether to forget everything. Raises UsageError where there is nobody to ask."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError("--all asks before it forgets everything, and there is no terminal", "add --yes")
    return click.confirm(
        f"Forget all conversations and tasks of the stack {settings.project}, and end its turns?", err=True
    )


def forget(settings: Settings, body: dict[str, Any]) -> Forgotten:
    """Have the front forget. Raises EngineUnavailable, ServiceUnreachable, ImageError, UsageError."""
    engine = Engine.of(settings)
    front = engine.service("front")
    with Progress() as progress:
        progress.show("the front forgets …")
        said = engine.health(front, "forget", FORGET_SECONDS, json.dumps(body).encode())
    if said.code == 0:
        counts = said.json()
        return Forgotten(*(_count(counts.get(key)) for key in ("contexts", "tasks", "cancelled")))
    if said.outdated:
        raise ImageError(f"the front cannot forget: {OUTDATED}", "./gatehouse up")
    kind = UsageError if said.code == USAGE else ServiceUnreachable
    raise kind(said.reason(), _mend(said))


def _mend(said: Said) -> str:
    mend = said.json().get("mend")
    return line_of(mend) if isinstance(mend, str) and mend else "./gatehouse logs front"


def _from_stdin(what: str) -> str:
    if sys.stdin.isatty():
        talk(f"id of the {what}: ", end="")
    return sys.stdin.buffer.readline(ID_MAX_BYTES).decode("utf-8", "replace")


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
