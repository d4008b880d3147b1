"""`gatehouse turn`: one turn outside of any conversation, with what it took.

It is what an author tunes a persona with: which documents a question makes the model read, when the first
text comes, and how large the requests are that are paid for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import click

from runtime.cli.ask import read_question
from runtime.cli.command import Command
from runtime.cli.engine import Engine, line_of
from runtime.cli.names import complete_names
from runtime.cli.output import Progress, printable, result, result_json, talk
from runtime.cli.settings import Settings, pass_settings
from runtime.cli.turn_process import Program
from runtime.errors import GatehouseError, ImageError, ServiceUnreachable, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\[\]-]{0,127}")
MARK: Final = "GATEHOUSE_OPERATOR_TURN"
INTERRUPTED: Final = 130
OURS: Final = "gatehouse: "
# Ends the turn's program inside its container: a docker client that is killed leaves it running.
STOPPER: Final = """
import os, signal, sys
for name in filter(str.isdigit, os.listdir("/proc")):
    try:
        found = sys.argv[1].encode() in open(f"/proc/{name}/environ", "rb").read().split(b"\\0")
    except OSError:
        continue
    if found and int(name) != os.getpid():
        os.kill(int(name), signal.SIGTERM)
"""


@click.command(
    "turn",
    cls=Command,
    prints=(
        "The answer. On stderr: each step with its time, when the first text came, the whole time, requests, "
        "tokens and how large the requests were. With --json one object a line, as protocols.md has them."
    ),
    exits=(0, 1, 3, 4, 5, 8),
    notes={
        0: "an answer",
        1: "no answer: the cause and its detail are on stderr",
        8: "the stack, or a service of it, does not answer",
        130: "interrupted; the turn was ended",
    },
    examples=(
        'gatehouse turn ada "When are office hours?"',
        "gatehouse turn ada - <question.txt",
        'gatehouse turn ada --sandbox none --model haiku "Who are you?"',
        'gatehouse turn ada --json "Who are you?" | tail -n 1',
    ),
)
@click.argument("name", metavar="NAME", shell_complete=complete_names)
@click.argument("words", metavar="TEXT", nargs=-1, required=True)
@click.option(
    "--sandbox",
    type=click.Choice(["docker", "none"]),
    default="docker",
    show_default=True,
    help="Where the turn runs: in the running stack, or on this host without any sandbox.",
)
@click.option("--model", metavar="M", help="Another model; with --sandbox none alone.")
@click.option("--json", "as_json", is_flag=True, help="Print what happens as JSON, one object a line.")
@pass_settings
def command(
    settings: Settings, *, name: str, words: tuple[str, ...], sandbox: str, model: str | None, as_json: bool
) -> int:
    """Run one turn of an instance and show its steps, times, tokens and sizes.

    TEXT is what a visitor would write, or - to read it from stdin. The turn belongs to no conversation.
    """
    if not NAME.fullmatch(name):
        raise UsageError(f"NAME is no instance: {name[:80]!r}", "letters, digits, - and _")
    if model is not None and sandbox != "none":
        raise UsageError(
            "--model needs --sandbox none", "in the stack the model is `model` of agent.yaml or CLAUDE_MODEL"
        )
    if model is not None and not MODEL.fullmatch(model):
        raise UsageError(f"--model is no model: {model[:80]!r}")
    text = read_question(words)
    program = in_stack(settings, name) if sandbox == "docker" else on_host(settings, name, model)
    view = TurnView(as_json=as_json)
    try:
        asyncio.run(_run(program, view, text))
    except KeyboardInterrupt:
        view.clear()
        talk("gatehouse: interrupted; the turn was ended")
        return INTERRUPTED
    except GatehouseError as error:
        view.broken(error)
        raise
    return _end(view, program)


def in_stack(settings: Settings, name: str) -> Program:
    """Return the program of a turn in the running stack. Raises ServiceUnreachable or EngineUnavailable."""
    engine = Engine.of(settings)
    front = engine.service("front")
    mark = f"{MARK}={secrets.token_hex(16)}"
    once = ["python", "-m", "runtime.turn.once", "--agent", name]
    return Program(
        engine.command("exec", "--interactive", "--env", mark, front.id, *once),
        settings.environ,
        settings.root,
        stop=lambda: _stop(engine, mark),
    )


def on_host(settings: Settings, name: str, model: str | None) -> Program:
    """Return the program of a turn on this host, without a sandbox."""
    words = [sys.executable, "-m", "runtime.unsandboxed", "--agent", name, "--root", str(settings.root)]
    path = os.pathsep.join(filter(None, (str(settings.root), settings.environ.get("PYTHONPATH", ""))))
    chosen = ["--model", model] if model is not None else []
    return Program([*words, *chosen], {**settings.environ, "PYTHONPATH": path}, settings.root)


@dataclass(slots=True)
class TurnView:
    """Shows one turn's events, and keeps its last."""

    as_json: bool
    last: Mapping[str, Any] = field(default_factory=dict)
    told: int = 0
    first_text: bool = False
    progress: Progress = field(default_factory=Progress)

    def show(self, event: Mapping[str, Any]) -> None:
        """Show one event."""
        self.told += 1
        if event["event"] in {"answer", "failed"}:
            self.last = event
        if self.as_json:
            result_json(event)
            return
        match event["event"]:
            case "planned":
                self._step(0.0, f"asked with a prompt of {_count(event, 'prompt_bytes')} bytes")
            case "step":
                self._step(_seconds(event), f"{line_of(str(event.get('label', '')))} ({_tool(event)})")
            case "snapshot":
                if not self.first_text:
                    self.first_text = True
                    self._step(_seconds(event), "first text")
                self.progress.show(str(event.get("text", ""))[-400:])
            case "answer":
                self._answer(event)
            case "failed":
                self._step(_seconds(event), "failed")
                self._sums(event)

    def broken(self, error: GatehouseError) -> None:
        """Show that there will be no last event."""
        self.clear()
        if self.as_json and not self.last:
            result_json({"event": "failed", "cause": error.code, "detail": error.sentence, "message": ""})

    def clear(self) -> None:
        """Take away what is shown while the turn runs."""
        self.progress.clear()

    def _answer(self, event: Mapping[str, Any]) -> None:
        text = printable(str(event.get("text", ""))).strip("\n")
        self._step(_seconds(event), f"answer of {len(text):,} characters")
        talk()
        result(text)
        talk()
        self._sums(event)

    def _sums(self, event: Mapping[str, Any]) -> None:
        first = event.get("first_text_seconds")
        came = (
            f"first text after {first:.2f} s" if isinstance(first, int | float) else "no text before the end"
        )
        talk(f"{_seconds(event):.2f} s in all, {came}")
        usage = event.get("usage")
        if not isinstance(usage, dict):
            return
        talk(
            f"{_count(usage, 'requests')} requests to the model ({_count(usage, 'refused')} refused), "
            f"{_count(usage, 'input_tokens')} tokens in, {_count(usage, 'output_tokens')} out"
        )
        size = usage.get("request_bytes")
        if isinstance(size, int):
            talk(f"{size:,} bytes of requests ({size / 1024:.1f} KB)")

    def _step(self, seconds: float, words: str) -> None:
        self.progress.clear()
        talk(f"{seconds:8.2f} s  {words}")


async def _run(program: Program, view: TurnView, text: str) -> None:
    async with contextlib.aclosing(program.events(text)) as events:
        async for event in events:
            view.show(event)


def _end(view: TurnView, program: Program) -> int:
    """Return the exit code of a run that has ended, or raise why there is no answer."""
    last = view.last
    if last.get("event") == "answer" and program.code == 0:
        return 0
    if last.get("event") == "failed":
        cause, detail = line_of(str(last.get("cause", ""))), line_of(str(last.get("detail", "")), 2000)
        message = line_of(str(last.get("message", "")))
        told = f"a visitor reads: {message}" if message else "see the log: ./gatehouse logs"
        kind = ServiceUnreachable if program.code == ServiceUnreachable.exit_code else GatehouseError
        raise kind(f"the turn failed: {cause}" + (f": {detail}" if detail else ""), told)
    if "No module named" in program.complaint and program.stop is not None:
        raise ImageError("the running stack is older than this checkout", "./gatehouse up")
    if program.code > 0 and program.complaint.startswith(OURS):
        # It has said what is wrong in the words of every command, and they have been passed on.
        view.broken(GatehouseError(program.complaint.removeprefix(OURS)))
        return program.code
    error = GatehouseError(
        f"the turn's program ended with {program.code} and no answer", "./gatehouse status"
    )
    view.broken(error)
    raise error


def _stop(engine: Engine, mark: str) -> None:
    with contextlib.suppress(GatehouseError):
        engine.run_in(engine.service("front"), "python", "-c", STOPPER, mark)


def _seconds(event: Mapping[str, Any]) -> float:
    value = event.get("seconds")
    return float(value) if isinstance(value, int | float) else 0.0


def _count(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    return f"{value:,}" if isinstance(value, int) else "?"


def _tool(event: Mapping[str, Any]) -> str:
    return line_of(str(event.get("tool", "")), 60)
