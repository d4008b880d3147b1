"""One way in which a turn can end, as data: what happens, who runs it, and what the visitor reads then.

`Play` puts a program in the CLI's place and `Model` a script in the model's, which the CLI itself asks; both
are run by tests/endings/test_endings.py. `Run` names the test that brings a row about by itself, in this
folder or in another one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from tests.harness.contract import Told
from tests.harness.processes import MESSAGES
from tests.harness.quick_cli import script

FINE: Final = "The sky is blue."
SAID: Final = "The sky is said to be blue."
LONG: Final = "Over the hills and far away the sky is as blue as it was yesterday, and nobody knows why. " * 4
ANSWER: Final = "the answer"
NOBODY: Final = "nothing: the connection breaks"
MIB: Final = 1024 * 1024

Step = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Play:
    """A program in the CLI's place plays these steps; `filler` characters follow them in the message."""

    steps: tuple[Step, ...]
    filler: int = 0

    @property
    def words(self) -> str:
        return f"What colour is the sky? {script(list(self.steps))}" + "é" * self.filler


@dataclass(frozen=True, slots=True)
class Model:
    """The CLI itself, and a model that follows these steps (tests/scripted/model.py)."""

    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Run:
    """A test of its own: its file, and its name or what it is parametrized with."""

    file: str
    test: str


@dataclass(frozen=True, slots=True)
class Row:
    """One way to end.

    `text` is the key of the configured message that the visitor reads, or ANSWER, and `answer` then the text
    itself, or NOBODY. `outcome` is what the metadata say of it and the receipt as its cause. `reason` is how
    the spawner saw the turn end: "" when it had none, None when that differs or nobody looks. `partial`
    tells that a stream has shown some of an answer before.
    """

    sentence: str
    how: Play | Model | Run
    text: str = ANSWER
    outcome: str = ""
    reason: str | None = "exited"
    state: str = "completed"
    persona: str = "tester"
    answer: str = FINE
    partial: bool = False

    @property
    def both(self) -> bool:
        """Whether it is brought about for one who waits too: where that can differ from one who streams."""
        return self.partial or self.persona != "tester" or isinstance(self.how, Model)

    @property
    def told(self) -> Told:
        """What the visitor is told, {n} and {max} of a message that is too long filled in."""
        text = self.answer if self.text == ANSWER else MESSAGES[self.text]
        return Told(text.replace("{n}", "32001").replace("{max}", "32000"), self.outcome, self.state)


# -- what a program writes ----------------------------------------------------------------------------------
def say(**fields: Any) -> Step:
    return {"say": fields}


def result(text: object = FINE, **more: Any) -> Step:
    return say(**{"type": "result", "subtype": "success", "is_error": False, "result": text, **more})


def said(text: str = SAID, **more: Any) -> Step:
    content = [{"type": "text", "text": text}]
    return say(type="assistant", message={"role": "assistant", "content": content}, **more)


def used(tool: str) -> Step:
    content = [{"type": "tool_use", "id": "t", "name": tool, "input": {}}]
    return say(type="assistant", message={"role": "assistant", "content": content})


def event(kind: str, **more: Any) -> Step:
    return say(type="stream_event", event={"type": kind, **more})


def delta(text: str) -> Step:
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": text})


def write(text: str, n: int = 1) -> Step:
    return {"write": text, "n": n}


START: Final = event("message_start")
HANG: Final = {"hang": True}
CLOSED: Final = {"close": "stdout"}
CHILD: Final = ({"fork": [HANG], "leaves": "/tmp/child"}, {"wait_for": "/tmp/child"})
SHOWN: Final = (START, delta(LONG), event("content_block_stop"))


def leave(code: int) -> Step:
    return {"exit": code}


def die(signal: str) -> Step:
    return {"die": signal}


# -- rows of a program --------------------------------------------------------------------------------------
def answers(sentence: str, *steps: Step, **more: Any) -> Row:
    filler = more.pop("filler", 0)
    return Row(sentence, Play(steps, filler), **more)


def fails(outcome: str, text: str, sentence: str, *steps: Step, **more: Any) -> Row:
    return answers(sentence, *steps, outcome=outcome, text=text, **more)


def empty(sentence: str, *steps: Step) -> Row:
    return fails("empty", "empty_model", sentence, *steps)


def crashes(sentence: str, *steps: Step, **more: Any) -> Row:
    return fails("crash", "error", sentence, *steps, **more)


def times_out(sentence: str, *steps: Step, **more: Any) -> Row:
    return fails("timeout", "timeout", sentence, *steps, persona="brief", reason="deadline", **more)
