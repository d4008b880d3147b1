"""Asks a service what operators may ask: `python -m runtime.health SERVICE [WORD]`, the words in QUESTIONS.

It is every container's healthcheck (the default, `health`) and, through `docker exec`, the operator's way to
`ops/<service>.sock`. The answer's body goes to stdout. Exit code: 0 for a 2xx answer, 3 for 422 (the
instance's files are wrong), 8 for 409 (the spawner serves another definition), 2 for 400 and for wrong usage,
else 1. What `forget` sends comes from stdin, because everybody on the host can read a process's arguments.
Why the standard library alone: it is started every few seconds in every service image, so it must be small
and must not need anything that one of them lacks.
"""

from __future__ import annotations

import http.client
import socket
import sys
from typing import NamedTuple

from runtime import layout

HEALTH_SECONDS = 4.0


class Question(NamedTuple):
    """What is sent for a word of the command line (with stdin or not), and how long the answer may take."""

    method: str
    path: str
    seconds: float
    takes_body: bool = False


QUESTIONS = {
    "health": Question("GET", "/health", HEALTH_SECONDS),
    # A person asks, so it may take the time to compare the files with what is served.
    "status": Question("GET", "/status?stale=1", 60.0),
    "metrics": Question("GET", "/metrics", 10.0),
    "reload": Question("POST", "/reload", 300.0),
    "forget": Question("POST", "/forget", 60.0, takes_body=True),
}
EXIT_CODES = {400: 2, 422: 3, 409: 8}
MAX_BODY_BYTES = 64 * 1024
MAX_BYTES = 16 * 1024 * 1024


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the Unix socket at `path`."""

    def __init__(self, path: str, timeout: float = HEALTH_SECONDS) -> None:
        super().__init__("ops", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path: str, question: Question, body: bytes | None = None) -> tuple[int, str]:
    """Return the status and the body of the ops socket's answer; (0, why) when there is none."""
    connection = UnixConnection(path, question.seconds)
    try:
        connection.request(question.method, question.path, body)
        response = connection.getresponse()
        text = response.read(MAX_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return 0, f"{path}: {error}"
    finally:
        connection.close()
    return response.status, text


def exit_code(status: int) -> int:
    """Return the exit code for an answer of this HTTP status; 0 is no answer."""
    return 0 if 200 <= status < 300 else EXIT_CODES.get(status, 1)


def main(arguments: list[str]) -> int:
    """Ask the named service, print what it answered, and return the exit code."""
    if not 1 <= len(arguments) <= 2 or (word := (*arguments, "health")[1]) not in QUESTIONS:
        sys.stderr.write(f"usage: python -m runtime.health SERVICE [{'|'.join(QUESTIONS)}]\n")
        return 2
    question = QUESTIONS[word]
    body = sys.stdin.buffer.read(MAX_BODY_BYTES + 1) if question.takes_body else None
    status, text = ask(str(layout.OPS / f"{arguments[0]}.sock"), question, body)
    (sys.stdout if status else sys.stderr).write(text.rstrip() + "\n")
    return exit_code(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
