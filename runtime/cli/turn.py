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
from runtime.cli.engine import AGENT, Engine
from runtime.cli.failures import INTERRUPTION, Told, told
from runtime.cli.log_lines import bounded
from runtime.cli.names import complete_names, refuse_name
from runtime.cli.output import Progress, printable, result, result_json, talk
from runtime.cli.said import line_of
from runtime.cli.settings import Settings, pass_settings
from runtime.cli.turn_process import Program
from runtime.cli.waiting import overrides_waiting
from runtime.errors import INTERRUPTED, GatehouseError, ImageError, ServiceUnreachable, UsageError
from runtime.turn.sandboxed import refuse_unsandboxed_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

MODEL: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:\[\]-]{0,127}")
MARK: Final = "GATEHOUSE_OPERATOR_TURN"
# What every program of ours says at its end (docs/reference/exit-codes.md).
OURS: Final = re.compile(r"gatehouse: ([a-z-]+): (.*?)(?: \(([^()]*)\))?")
# The keys of a `failed` that the turn's program prints (docs/reference/protocols.md).
FAILED: Final = ("cause", "detail", "message", "seconds", "first_text_seconds", "usage")
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
        "tokens and how large the requests were. With --json one object a line: planned, step, tool-failed, "
        "snapshot, and last answer or failed with seconds, first_text_seconds and usage, for failed also the "
        "cause, its detail, the message that a visitor reads, and error."
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
    view = TurnView(as_json=as_json)
    try:
        refuse_name(name)
        if model is not None and sandbox == "none" and not MODEL.fullmatch(model):
            raise UsageError(f"--model is no model: {model[:80]!r}", "give an alias or an id")
        text = read_question(words)
        program = on_host(settings, name, model) if sandbox == "none" else in_stack(settings, name, model)
        asyncio.run(_run(program, view, text))
        return _end(view, program)
    except KeyboardInterrupt:
        view.broken(INTERRUPTION)
        talk("gatehouse: interrupted; the turn was ended")
        return INTERRUPTED
    except GatehouseError as error:
        view.broken(told(error))
        raise


def in_stack(settings: Settings, name: str, model: str | None) -> Program:
    """Return the program of a turn in the running stack.

    Raises UsageError for what only a run without a sandbox may be told, ServiceUnreachable or
    EngineUnavailable. An override that the stack was started without is told: it does nothing here.
    """
    refuse_unsandboxed_settings(settings.environ, model=model)
    engine = Engine.of(settings)
    front = engine.service("front")
    serves = front.environ.get(AGENT, "")
    if serves and serves != name:
        raise ServiceUnreachable(
            f"the stack serves {line_of(serves, 63)}, not {name}", f"{AGENT}={name} ./gatehouse up"
        )
    if waiting := overrides_waiting(settings.environ, front.environ):
        talk(f"not taken over before ./gatehouse up: {', '.join(waiting)}")
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
    """Shows one turn's events, and keeps its last.

    A `failed` of the turn is printed by `broken` alone, when its exit code is known, so that there is one.
    """

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
            if event["event"] != "failed":
                result_json(event)
            return
        match event["event"]:
            case "planned":
                self._step(0.0, f"asked with a prompt of {_count(event, 'prompt_bytes')} bytes")
            case "step" | "tool-failed":
                self._step(_seconds(event), _said(event))
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

    def broken(self, error: Told) -> None:
        """Show that there is no answer: what the turn said of it, as far as it did, and the error."""
        self.clear()
        if self.as_json:
            said = self.last if self.last.get("event") == "failed" else {}
            result_json({"event": "failed", **{key: said.get(key) for key in FAILED}, "error": error})

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
        first = bounded(event.get("first_text_seconds"))
        came = f"first text after {first:.2f} s" if first is not None else "no text before the end"
        talk(f"{_seconds(event):.2f} s in all, {came}")
        usage = event.get("usage")
        if not isinstance(usage, dict):
            return
        talk(
            f"{_count(usage, 'requests')} requests to the model ({_count(usage, 'refused')} refused), "
            f"{_count(usage, 'input_tokens')} tokens in, {_count(usage, 'output_tokens')} out"
        )
        size = bounded(usage.get("request_bytes"))
        if size is not None:
            talk(f"{size:,.0f} bytes of requests ({size / 1024:.1f} KB)")

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
    if program.code > 0 and (said := OURS.fullmatch(program.complaint)):
        # It has said what is wrong in the words of every command, and they have been passed on.
        view.broken({"code": said[1], "message": said[2], "mend": said[3]})
        return program.code
    raise GatehouseError(
        f"the turn's program ended with {program.code} {'after' if last else 'without'} an answer",
        "./gatehouse status",
    )


def _stop(engine: Engine, mark: str) -> None:
    with contextlib.suppress(GatehouseError):
        engine.run_in(engine.service("front"), "python", "-c", STOPPER, mark)


def _seconds(event: Mapping[str, Any]) -> float:
    return bounded(event.get("seconds")) or 0.0


def _count(values: Mapping[str, Any], name: str) -> str:
    value = bounded(values.get(name))
    return "?" if value is None else f"{value:,.0f}"


def _said(event: Mapping[str, Any]) -> str:
    if event["event"] == "tool-failed":
        return f"Using {_tool(event)}: failed: {line_of(str(event.get('detail', '')))}"
    return f"{line_of(str(event.get('label', '')))} ({_tool(event)})"


def _tool(event: Mapping[str, Any]) -> str:
    return line_of(str(event.get("tool", "")), 60)
