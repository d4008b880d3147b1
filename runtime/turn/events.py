"""What a turn says while it runs and when it ends: the one vocabulary between runner and executor.

A runner yields any number of Step, ToolFailed and Snapshot events and then exactly one of Answer or Failed,
within the turn's deadline, on every path (architecture §6). Text in them is checked and capped by
`turn/stream.py`, not yet screened.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cause(StrEnum):
    """Why a turn has no answer of the model. Each maps to one configured message; detail is for the log."""

    TIMEOUT = "timeout"  # message: timeout
    EMPTY = "empty"  # message: empty_model
    BUSY = "busy"  # spawner ceiling reached; message: busy
    ENGINE = "engine"  # container could not be created or started; message: spawn_error
    SPAWNER = "spawner"  # spawner unreachable; message: spawn_error
    MODEL = "model"  # API failure, budget or grammar refusal; message: error
    OUTPUT = "output"  # output cap passed; message: error
    CRASH = "crash"  # CLI or container died before it answered; message: error
    CANCELLED = "cancelled"  # message: cancelled
    ABANDONED = "abandoned"  # nobody watched it any more; message: cancelled
    STOPPING = "stopping"  # the front was stopped; message: stopping
    INTERNAL = "internal"  # a bug of ours; message: error


@dataclass(frozen=True, slots=True)
class Step:
    """The model uses a tool. `label` is made of fixed words and a file's base name.

    `tool` is `Read`, `Glob`, `Grep`, `Other` or `mcp__grants__NAME`; whether the agent has a tool of that
    name is not known here, because a turn can write what it likes.
    """

    tool: str
    label: str


@dataclass(frozen=True, slots=True)
class ToolFailed:
    """A tool that a Step told of has failed, as the model was told; the turn goes on.

    For the agent's author alone, and never for a visitor. `tool` is the Step's. `detail` is the end of what
    the tool said, at most 200 printable characters on one line: untrusted, it can hold a visitor's words.
    """

    tool: str
    detail: str


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The answer so far, whole (not a delta)."""

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What a turn cost, as the model's door counted it; zeros when unknown.

    `request_bytes` is the sum of the bodies of the `POST /v1/messages` that the door took, as received.
    """

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    refused: int = 0
    request_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Answer:
    """The one answer: non-empty text. Terminal."""

    text: str
    usage: Usage = Usage()


@dataclass(frozen=True, slots=True)
class Failed:
    """No answer, and why. `detail` is for operators' logs only and holds no visitor text. Terminal."""

    cause: Cause
    detail: str
    usage: Usage = Usage()


TurnEvent = Step | ToolFailed | Snapshot | Answer | Failed
