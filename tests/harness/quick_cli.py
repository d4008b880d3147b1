#!/usr/bin/python3 -IS
"""Stands in the CLI's place in turns of tests: what it does stands in the visitor's words.

Without a word for it, it asks the model once and gives its answer. With `script([...])` in a message it plays
that script, a JSON list of steps, each an object whose first key says what to do:

    {"say": {...}}           one line of JSON on stdout
    {"write": "...", "n": 9} the text n times on stdout, each character one byte, without a line feed
    {"stderr": "...", "n": 9} the same on stderr
    {"ask": {...}, "n": 9}   ask the model n times with these fields in the request; says nothing
    {"read": true}           read stdin to its end, of which no more than the script was read before
    {"wait_for": "PATH"}     wait until there is a file
    {"fork": [...]}          play a script in a child, which leaves a file when it begins: "leaves": "PATH"
    {"bomb": true}           start processes until there can be no more
    {"eat": true}            take memory without end
    {"close": "stdout"}      close stdout
    {"flood": "..."}         the text again and again, for ever, and {"drip": "..."} twenty times a second
    {"exit": 3}              end, and {"die": "SIGSEGV"} end by a signal
    {"hang": true}           stay for ever

With `REAL` in a message it becomes the CLI, which then stands beside it (`OwnEngine.quick`).

It leaves out what the CLI is: tools, retries, streaming, and the second that it takes to start, which a
hundred turns would take a hundred times.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import sys
import time

TYPE_CHECKING = False  # typing would be imported in each of some hundred turns
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STAYS = "whatever happens"  # a visitor's words: the program then stays until it is killed
REAL = "as the real CLI does"
KEPT = "/usr/local/bin/claude-kept"
CHUNK_BYTES = 4096
_SCRIPT = re.compile(rb"script\(([A-Za-z0-9_=-]*)\)")


def script(steps: Sequence[Mapping[str, object]]) -> str:
    """Return the words that make the program play these steps: one word, so that no JSON has to escape it."""
    return f"script({base64.urlsafe_b64encode(json.dumps(list(steps)).encode()).decode()})"


def post(fields: dict[str, object], message: object = "Hi") -> tuple[int, bytes]:
    """Ask the model once; returns status and body. Raises OSError and HTTPException without one."""
    body = {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": [message], **fields}
    connection = http.client.HTTPConnection("127.0.0.1", 8787)
    connection.request("POST", "/v1/messages", json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    return answer.status, answer.read()


class Player:
    """One method for each step, named like it."""

    def play(self, steps: list[dict[str, object]]) -> None:
        for step in steps:
            (kind, value), *more = step.items()
            getattr(self, f"do_{kind}")(value, **dict(more))

    def do_say(self, value: object) -> None:
        self.do_write(json.dumps(value) + "\n")

    def do_write(self, value: str, n: int = 1) -> None:
        sys.stdout.buffer.write(value.encode("latin-1") * n)
        sys.stdout.buffer.flush()

    def do_stderr(self, value: str, n: int = 1) -> None:
        sys.stderr.buffer.write(value.encode("latin-1") * n)
        sys.stderr.buffer.flush()

    def do_ask(self, value: dict[str, object], n: int = 1) -> None:
        for _ in range(n):
            post(value, {"role": "user", "content": "Hi"})

    def do_read(self, _: object) -> None:
        while os.read(0, CHUNK_BYTES):
            pass

    def do_wait_for(self, value: str) -> None:
        while not os.path.exists(value):  # noqa: PTH110  a bare interpreter starts sooner without pathlib
            time.sleep(0.01)

    def do_fork(self, value: list[dict[str, object]], leaves: str) -> None:
        if os.fork() == 0:
            os.close(os.open(leaves, os.O_CREAT))
            self.play(value)
            os._exit(0)

    def do_bomb(self, _: object) -> None:
        while True:
            try:
                pid = os.fork()
            except BlockingIOError:
                return
            if pid == 0:
                signal.pause()

    def do_eat(self, _: object) -> None:
        eaten = []
        while True:
            eaten.append(bytearray(b"x") * (16 * 1024 * 1024))

    def do_close(self, _: object) -> None:
        os.close(1)

    def do_flood(self, value: str) -> None:
        while True:
            self.do_write(value, 4096)

    def do_drip(self, value: str) -> None:
        while True:
            self.do_write(value)
            time.sleep(0.05)

    def do_exit(self, value: int) -> None:
        os._exit(value)

    def do_die(self, value: str) -> None:
        os.kill(os.getpid(), getattr(signal, value))
        signal.pause()

    def do_hang(self, _: object) -> None:
        signal.pause()


def become_the_cli(line: bytes) -> None:
    """Go on as the real CLI, with what was read of stdin before it again."""
    read_end, write_end = os.pipe()
    os.write(write_end, line)
    os.close(write_end)
    os.dup2(read_end, 0)
    os.execv(KEPT, sys.argv)  # noqa: S606  there is no shell in a turn


def main() -> int:
    """Run the turn; return its exit code."""
    line = b""
    while b"\n" not in line:
        chunk = os.read(0, CHUNK_BYTES)
        line += chunk
        found = _SCRIPT.search(line)
        if found:
            Player().play(json.loads(base64.urlsafe_b64decode(found[1])))
            return 0
        if not chunk:
            break
    if REAL.encode() in line:
        become_the_cli(line)
    try:
        status, body = post({}, json.loads(line)["message"])
        failed = status != http.client.OK
        text = "" if failed else json.loads(body)["content"][0]["text"]
    except (OSError, http.client.HTTPException):
        if STAYS.encode() in line:
            signal.pause()
        failed, text = True, ""
    result = {"type": "result", "subtype": "success", "is_error": failed, "result": text}
    sys.stdout.write(json.dumps(result) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
