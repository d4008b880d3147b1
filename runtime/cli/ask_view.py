"""What `ask` shows of an agent's answer: as text that builds up on a terminal, or as lines of JSON.

Everything here comes from a server that may be anybody's; text passes `printable` before a terminal sees it.
"""

from __future__ import annotations

import shlex
import sys
import time
from dataclasses import dataclass
from typing import Any, Final, Protocol

from runtime.cli.output import Progress, printable, result, result_json, talk
from runtime.errors import GatehouseError

COMPLETED: Final = "completed"
PAUSED: Final = frozenset({"input-required", "auth-required"})


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
            return GatehouseError(
                f"the agent could not answer: {self.outcome}",
                "the reason is in its log: ./gatehouse logs front",
            )
        if not printable(self.untrusted_text).strip():
            return GatehouseError("the agent gave an answer without text", "ask again")
        return None


Event = Begun | Doing | Partial | Ended


class View(Protocol):
    """Who shows the events of one question, in their order, and how it failed if it did."""

    def show(self, event: Event) -> None:
        """Show one event."""
        ...

    def failed(self, error: GatehouseError) -> None:
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

    def failed(self, error: GatehouseError) -> None:
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
        if event.context:
            words = ("./gatehouse", *self._again, "--context", printable(event.context))
            talk(f'to go on: {shlex.join(words)} "…"', dim=True)


class JsonView:
    """One JSON object a line for each event, the last with the whole answer or the failure."""

    def __init__(self) -> None:
        self._began = time.monotonic()

    def show(self, event: Event) -> None:
        """Print one event."""
        match event:
            case Begun():
                self._print("task", task=event.task, context=event.context)
            case Doing():
                self._print("step", text=event.untrusted_text)
            case Partial():
                self._print("snapshot", text=event.untrusted_text)
            case Ended():
                failure = event.failure
                self._print(
                    "answer" if failure is None else "failed",
                    text=event.untrusted_text,
                    state=event.state,
                    outcome=event.outcome,
                    task=event.task,
                    context=event.context,
                    **({} if failure is None else _told(failure)),
                )

    def failed(self, error: GatehouseError) -> None:
        """Print the last line of a question that has no end of its own."""
        self._print("failed", **_told(error))

    def _print(self, event: str, **values: Any) -> None:
        result_json({"event": event, **values, "seconds": round(time.monotonic() - self._began, 3)})


def _told(error: GatehouseError) -> dict[str, str]:
    return {"code": error.code, "message": error.sentence, "mend": error.hint}
