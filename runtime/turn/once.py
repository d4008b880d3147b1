"""One turn outside of any conversation, told as it happens: what `gatehouse turn` shows an author.

    python -m runtime.turn.once --agent NAME [--root ROOT]

It runs in the front's container: the visitor's text on stdin, NDJSON on stdout (docs/reference/protocols.md,
"One turn for its author"), problems on stderr. The turn goes the way of every other, through the spawner and
its ceilings, on the definition that the files give, and the text shown is screened as a visitor's is; what
differs is that nobody else sees it and that it belongs to no conversation. Exit codes: 0 an answer, 1 none,
2 usage, 3 the instance's files are wrong, 8 the spawner is out of reach or serves another definition, 130
ended by a signal.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from runtime import layout, log
from runtime.agents.instance import load_instance
from runtime.errors import DefinitionMismatch, GatehouseError, ServiceUnreachable, UsageError
from runtime.turn import ending
from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step, ToolFailed
from runtime.turn.messages import failure_text
from runtime.turn.plan import fits, plan_turn
from runtime.turn.runner import SandboxRunner
from runtime.turn.sandboxed import refuse_unsandboxed_settings
from runtime.turn.screen import is_blank, screen, screen_line, screen_partial
from runtime.turn.stream import DETAIL_MAX_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from runtime.agents.definition import AgentDefinition
    from runtime.turn.plan import TurnPlan
    from runtime.turn.runner import Runner

    Write = Callable[[str], None]

CONTEXT: Final = "local"
VISITOR: Final = "operator"
INTERRUPTED: Final = 130
READ_MAX_BYTES: Final = 1024 * 1024  # of stdin; the agent's own limit is far below


async def run_once(agent: AgentDefinition, runner: Runner, text: str, write: Write) -> int:
    """Run one turn of `agent` on a visitor's `text` and return the exit code: 0, 1 or 8.

    `write` gets one line at a time, a JSON object in ASCII with its line feed; the last is `answer` or
    `failed`. Raises UsageError before anything is written for a text that no visitor could send. What `write`
    raises ends the turn.
    """
    text = text.strip()
    refuse(text, agent)
    plan = plan_turn(agent, (), text, CONTEXT, VISITOR)
    return await _Telling(agent, write).run(runner, plan)


def refuse(text: str, agent: AgentDefinition) -> None:
    """Raise UsageError for a text that would be refused before any turn begins. `text` is trimmed."""
    if not text:
        raise UsageError("There is no text.", "write on stdin what a visitor would ask")
    most = agent.limits.max_input_chars
    if len(text) > most or not fits(text):
        raise UsageError(f"The text has {len(text)} characters; visitors may send {most}.", "shorten it")


class _Telling:
    """Tells one turn's events as JSON, each with the seconds since the start."""

    def __init__(self, agent: AgentDefinition, write: Write) -> None:
        self._messages = agent.messages
        self._write = write
        self._began = time.monotonic()
        self._first_text_seconds: float | None = None

    async def run(self, runner: Runner, plan: TurnPlan) -> int:
        self._tell("planned", prompt_bytes=len(plan.prompt.encode()))
        end: Answer | Failed = Failed(Cause.INTERNAL, "the runner gave no terminal event")
        async with contextlib.aclosing(runner.run(plan)) as events:
            async for event in events:
                match event:
                    case Step():
                        label = screen_line(event.label)
                        self._tell("step", tool=event.tool, label=label, seconds=self._seconds())
                    case ToolFailed():
                        detail = screen_line(event.detail, max_chars=DETAIL_MAX_CHARS)
                        self._tell("tool-failed", tool=event.tool, detail=detail, seconds=self._seconds())
                    case Snapshot():
                        self._snapshot(event.text)
                    case Answer() | Failed():
                        end = event
                        break
            return self._end(end)  # before the runner cleans up, as a visitor gets it

    def _snapshot(self, untrusted_text: str) -> None:
        text = screen_partial(untrusted_text).strip()
        if not text:
            return
        seconds = self._seconds()
        if self._first_text_seconds is None:
            self._first_text_seconds = seconds
        self._tell("snapshot", text=text, seconds=seconds)

    def _end(self, end: Answer | Failed) -> int:
        if isinstance(end, Answer):
            text = screen(end.text).text.strip()
            if not is_blank(text):
                self._last("answer", end, text=text)
                return 0
            end = Failed(Cause.EMPTY, "nothing was left to show", end.usage)
        message = failure_text(end.cause, self._messages)
        self._last("failed", end, cause=end.cause.value, detail=end.detail, message=message)
        return ServiceUnreachable.exit_code if end.cause is Cause.SPAWNER else 1

    def _last(self, event: str, end: Answer | Failed, **values: Any) -> None:
        first = self._first_text_seconds
        self._tell(
            event, **values, seconds=self._seconds(), first_text_seconds=first, usage=asdict(end.usage)
        )

    def _tell(self, event: str, **values: Any) -> None:
        self._write(json.dumps({"event": event, **values}, separators=(",", ":")) + "\n")

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 3)


def read_text() -> str:
    """Return what is on stdin. Raises UsageError when it is not UTF-8 text of a sane size."""
    raw = sys.stdin.buffer.read(READ_MAX_BYTES + 1)
    if len(raw) > READ_MAX_BYTES:
        raise UsageError(f"The text on stdin is longer than {READ_MAX_BYTES} bytes.", "shorten it")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise UsageError("The text on stdin is not UTF-8.", "send it as UTF-8") from None


def write_line(line: str) -> None:
    """Write one line to stdout, at once."""
    sys.stdout.write(line)
    sys.stdout.flush()


async def interruptible(work: Coroutine[Any, Any, int]) -> int:
    """Await `work` and return its exit code; what asks this process to end cancels it: the turn ends first.

    That is a signal, or that nobody reads stdout any more (then it raises BrokenPipeError).
    """
    task = asyncio.create_task(work)
    unread = False

    def end() -> None:
        if not task.cancelling():
            task.cancel()

    def leave() -> None:
        nonlocal unread
        unread = True
        end()

    ending.hear(end)
    ending.hear_reader_leave(sys.stdout.fileno(), leave)
    await asyncio.wait({task})
    if task.cancelled() and unread:
        raise BrokenPipeError
    return INTERRUPTED if task.cancelled() else task.result()


def exit_code(run: Callable[[], int]) -> int:
    """Return what `run` returns, or the exit code of what ended it, a problem told on stderr."""
    try:
        return run()
    except GatehouseError as error:
        sys.stderr.write(error.report())
        return error.exit_code
    except BrokenPipeError:
        return 1
    except KeyboardInterrupt:
        return INTERRUPTED


async def _through_the_spawner(agent: AgentDefinition, socket: Path, text: str) -> int:
    runner = SandboxRunner(socket)
    try:
        try:
            described = await runner.agent(agent.id)
        except OSError as error:
            raise ServiceUnreachable(f"{error}.", "see the spawner's log") from error
        if described.get("digest") != agent.digest:
            raise DefinitionMismatch(
                f"The spawner serves another definition of {agent.id} than the files are now.",
                "run ./gatehouse reload",
            )
        return await run_once(agent, runner, text, write_line)
    finally:
        await runner.aclose()


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line; exits with 2 on wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m runtime.turn.once",
        description="Runs one turn on the text on stdin and tells what happens as NDJSON.",
        allow_abbrev=False,
    )
    parser.add_argument("--agent", required=True, metavar="NAME", help="instance folder below instances/")
    parser.add_argument("--spawn-socket", type=Path, default=layout.SPAWN_SOCKET, help="the spawner's socket")
    parser.add_argument("--root", type=Path, help="the folder that holds instances/")
    return parser.parse_args(argv)


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> int:
    """Run the turn. Raises GatehouseError for every failure that has a name."""
    refuse_unsandboxed_settings(environ)
    root = options.root or (layout.ROOT if layout.INSTANCES.is_dir() else Path(__file__).parents[2])
    agent = load_instance(root, options.agent, environ, check_sources=False)
    text = read_text()
    refuse(text.strip(), agent)
    return asyncio.run(interruptible(_through_the_spawner(agent, options.spawn_socket, text)))


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run one turn and return the exit code (docs/reference/exit-codes.md)."""
    options = arguments(argv)
    log.configure("turn")
    return exit_code(lambda: run(options, environ))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
