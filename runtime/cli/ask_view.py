"""What `ask` shows of an agent's answer: as text that builds up on a terminal, or as lines of JSON.

Everything here comes from a server that may be anybody's; text passes `printable` before a terminal sees it.
"""

from __future__ import annotations

import json
import re
import shlex
import sys
import time
from dataclasses import dataclass
from typing import Any, Final, Protocol

from runtime.cli.failures import Told, told
from runtime.cli.output import Progress, printable, result, result_json, talk
from runtime.errors import GatehouseError

# Ids that every shell takes for one plain word, whatever server made them.
PLAIN_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,256}")
SNAPSHOT_GROWTH: Final = 1.05
SNAPSHOTS_MAX_CHARS: Final = 16 * 1024 * 1024
COMPLETED: Final = "completed"
PAUSED: Final = frozenset({"input-required", "auth-required"})
FULL: Final = frozenset(
    {"busy", "stopping"}
)  # outcomes of a Gatehouse that takes the question a little later


@dataclass(frozen=True, slots=True)
class Begun:
    """The agent has taken the question; `task` is "" where it answers with a message alone."""

    task: str
    context: str


@dataclass(frozen=True, slots=True)
class Doing:
    """What the agent says that it does."""

    untrusted_text: str


@dataclass(frozen=True, slots=True)
class Partial:
    """The answer so far, whole."""

    untrusted_text: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The one end of a question. `outcome` is Gatehouse's word for a text that no model wrote, else ""."""

    state: str
    untrusted_text: str
    outcome: str
    task: str
    context: str

    @property
    def failure(self) -> GatehouseError | None:
        """Return what is wrong with this end, or None for an answer."""
        if self.state != COMPLETED:
            mend = "ask again with --context" if self.state in PAUSED else "see what the agent says"
            return GatehouseError(f"the agent ended the question as {self.state}", mend)
        if self.outcome:
            mend = (
                "ask again in a moment"
                if self.outcome in FULL
                else "the reason is in its log: ./gatehouse logs front"
            )
            return GatehouseError(f"the agent could not answer: {self.outcome}", mend)
        if not printable(self.untrusted_text).strip():
            return GatehouseError("the agent gave an answer without text", "ask again")
        return None


Event = Begun | Doing | Partial | Ended


class View(Protocol):
    """Who shows the events of one question, in their order, and how it failed if it did."""

    def show(self, event: Event) -> None:
        """Show one event."""
        ...

    def failed(self, error: Told) -> None:
        """Show that there will be no further event; the error itself is reported by who raises it."""
        ...


class TextView:
    """Text for a reader: steps on stderr, the answer on stdout, where it builds up if that is a terminal.

    A snapshot that continues the one before adds its new end, so that nothing flickers; any other is printed
    anew below it. `again` are the words of a command that goes on with the conversation.
    """

    def __init__(self, again: tuple[str, ...] = ("ask",)) -> None:
        self._live = sys.stdout.isatty()
        self._again = again
        self._shown = ""
        self._step = ""
        self._progress = Progress()
        self._progress.show("asking …")

    def show(self, event: Event) -> None:
        """Show one event."""
        match event:
            case Begun():
                self._progress.show("waiting for the answer …")
            case Doing():
                self._doing(" ".join(printable(event.untrusted_text).split()))
            case Partial():
                if self._live:
                    self._text(printable(event.untrusted_text))
            case Ended():
                self._ended(event)

    def failed(self, error: Told) -> None:
        """End the line that an unfinished answer stands in."""
        del error
        self._progress.clear()
        self._break()

    def _doing(self, step: str) -> None:
        if step and step != self._step:
            self._step = step
            self._progress.clear()
            self._break()
            talk(step, dim=True)

    def _text(self, text: str) -> None:
        self._progress.clear()
        if not text.startswith(self._shown):
            self._break(lines=2)
        result(text[len(self._shown) :], end="")
        self._shown = text

    def _break(self, lines: int = 1) -> None:
        if self._shown:
            result("\n" * lines, end="")
            self._shown = ""

    def _ended(self, event: Ended) -> None:
        self._progress.clear()
        text = printable(event.untrusted_text).strip("\n")
        if text:
            self._text(text)
            result("")
            self._shown = ""
        if PLAIN_ID.fullmatch(event.context) and not event.context.startswith("-"):
            words = ("./gatehouse", *self._again, "--context", event.context)
            talk(f'to go on: {shlex.join(words)} "…"', dim=True)


class JsonView:
    """One JSON object a line for each event, the last with the whole answer or the failure.

    The last has the same keys whatever happened (docs/reference/json.md). A snapshot repeats the answer so
    far, so one is printed only when it is a good deal longer than the one before it, or begins anew, and all
    of them together are bounded.
    """

    def __init__(self) -> None:
        self._began = time.monotonic()
        self._begun = Begun("", "")
        self._over = False
        self._snapshot = ""
        self._left = SNAPSHOTS_MAX_CHARS

    def show(self, event: Event) -> None:
        """Print one event."""
        match event:
            case Begun():
                self._begun = event
                self._print("task", task=event.task, context=event.context)
            case Doing():
                self._print("step", text=event.untrusted_text)
            case Partial():
                self._partial(event.untrusted_text)
            case Ended():
                failure = event.failure
                self._end(event, None if failure is None else told(failure))

    def failed(self, error: Told) -> None:
        """Print the last line of a question that has no end of its own."""
        if not self._over:
            self._end(None, error)

    def _partial(self, untrusted_text: str) -> None:
        before = self._snapshot
        if len(untrusted_text) < len(before) * SNAPSHOT_GROWTH and untrusted_text.startswith(before):
            return
        size = len(json.dumps(untrusted_text))
        if size <= self._left:
            self._left -= size
            self._snapshot = untrusted_text
            self._print("snapshot", text=untrusted_text)

    def _end(self, ended: Ended | None, error: Told | None) -> None:
        self._over = True
        self._print(
            "answer" if error is None else "failed",
            text=None if ended is None else ended.untrusted_text,
            state=None if ended is None else ended.state,
            outcome=None if ended is None else ended.outcome or None,
            task=(ended or self._begun).task or None,
            context=(ended or self._begun).context or None,
            error=error,
        )

    def _print(self, event: str, **values: Any) -> None:
        result_json({"event": event, **values, "seconds": round(time.monotonic() - self._began, 3)})
