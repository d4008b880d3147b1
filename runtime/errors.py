"""Every failure the product names, for operators.

    GatehouseError                  1  unexpected
    ├── UsageError                  2  usage
    ├── ConfigError                 3  config-invalid       carries Problems with file:line:col
    ├── HostError                   4  host-not-ready
    │   ├── EngineUnavailable       4  engine-unavailable
    │   ├── EngineTooOld            4  engine-too-old
    │   └── PortInUse               4  port-in-use
    ├── ImageError                  5  image-missing
    ├── ControlFailed               6  control-failed
    ├── SecretError                 7  secret-unusable
    └── ServiceUnreachable          8  service-unreachable
        └── DefinitionMismatch      8  definition-mismatch

Why one tree: a reader of a log line, an exit code or a page of the docs finds the same `code` in all three.
None of it is for visitors: what they read on failure is one of the instance's `messages` (architecture §6).
Exit codes are in docs/reference/exit-codes.md; a test compares that page with this file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

INTERRUPTED: Final = 130  # the exit code of a process that a signal ended; it is no failure and has no class


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in one place: `file:line:col: path: message`, and how to mend it.

    `line` and `col` count from 1; 0 means the whole file. `path` is the dotted key (`skills[0].tags`), or "".
    """

    file: str
    line: int
    col: int
    path: str
    message: str
    mend: str

    def __str__(self) -> str:
        """Render as editors and compilers do, so that a click opens the place."""
        where = f"{self.file}:{self.line}:{self.col}" if self.line else self.file
        middle = f"{self.path}: " if self.path else ""
        return _one_line(f"{where}: {middle}{self.message} ({self.mend})")

    def as_json(self) -> dict[str, str | int]:
        """Return the problem for a program to read; its keys are the names of the fields.

        `gatehouse check --json` and the operators' sockets print it (docs/reference/protocols.md).
        """
        return {
            "file": self.file,
            "line": self.line,
            "col": self.col,
            "path": self.path,
            "message": self.message,
            "mend": self.mend,
        }


def _one_line(text: str) -> str:
    """Return text in which nothing moves a cursor: a file's name may hold what no terminal should get."""
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text
    )


class GatehouseError(Exception):
    """Root of every named failure: a sentence for the operator, and a hint.

    `sentence` says what failed and where; `hint` says how to mend it. Neither ever reaches a visitor.
    """

    code: ClassVar[str] = "unexpected"
    exit_code: ClassVar[int] = 1

    def __init__(self, sentence: str, hint: str = "") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint

    def __str__(self) -> str:
        """One sentence with its mend."""
        return f"{self.sentence} ({self.hint})" if self.hint else self.sentence

    def report(self) -> str:
        """Return what a process that ends with this says on stderr (docs/reference/exit-codes.md).

        `gatehouse: CODE: SENTENCE (MEND)`, one such line for each problem, each with its line feed.
        """
        return "".join(f"gatehouse: {self.code}: {line}\n" for line in str(self).splitlines())


class UsageError(GatehouseError):
    """The command line was wrong."""

    code = "usage"
    exit_code = 2


class ConfigError(GatehouseError):
    """An instance's files are wrong; every problem of the instance is carried at once."""

    code = "config-invalid"
    exit_code = 3

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems


class HostError(GatehouseError):
    """The machine lacks something that Gatehouse needs."""

    code = "host-not-ready"
    exit_code = 4


class EngineUnavailable(HostError):
    """No Docker engine answers."""

    code = "engine-unavailable"


class EngineTooOld(HostError):
    """The engine speaks an API below 1.45 (Docker 26.0): no volume subpaths, so no packs."""

    code = "engine-too-old"


class PortInUse(HostError):
    """The port to publish is taken."""

    code = "port-in-use"


class ImageError(GatehouseError):
    """The turn image is missing or is not the one that was checked."""

    code = "image-missing"
    exit_code = 5


class ControlFailed(GatehouseError):
    """A security control did not hold; no turn is taken."""

    code = "control-failed"
    exit_code = 6


class SecretError(GatehouseError):
    """A secret file is missing, unreadable, malformed or exposed. Never falls back to the demo."""

    code = "secret-unusable"
    exit_code = 7


class ServiceUnreachable(GatehouseError):
    """Another service of the stack does not answer."""

    code = "service-unreachable"
    exit_code = 8


class DefinitionMismatch(ServiceUnreachable):
    """Front and spawner loaded different definitions of the same agent."""

    code = "definition-mismatch"
