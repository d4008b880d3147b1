"""A program that stands for the CLI: it plays the script in the file that STUB_SCRIPT names, no more.

A script is a JSON list of steps, each an object whose first key says what to do:

    {"say": {…}}            one line of JSON on stdout
    {"line": "…"}           one line as it is; "{prompt}" becomes the message's text, as in a JSON string
    {"bytes": "…", "n": 9}  the text n times, without a line feed
    {"stderr": "…"}         a text on stderr
    {"read": true}          read stdin to its end (nothing is read before)
    {"record": "PATH"}      write argv, environment, working directory, pid and what was read, as JSON
    {"fork": […]}           play a script in a child; "session": true puts it into a session of its own
    {"ignore": "SIGTERM"}   ignore a signal
    {"close": "stdout"}     close stdout
    {"wait": "PATH"}        wait until there is a file
    {"flood": "…"}          the line again and again, for ever
    {"exit": 3}             end, and {"die": "SIGSEGV"} end by a signal
    {"hang": true}          stay for ever
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any


class Player:
    """One method for each step, named like it."""

    def __init__(self) -> None:
        self.stdin = ""

    def play(self, steps: list[dict[str, Any]]) -> None:
        for step in steps:
            kind, value = next(iter(step.items()))
            more = {key: step[key] for key in list(step)[1:]}
            getattr(self, f"do_{kind}")(value, **more)

    def out(self, text: str) -> None:
        sys.stdout.write(text)
        sys.stdout.flush()

    def do_say(self, value: dict[str, Any]) -> None:
        self.out(json.dumps(value) + "\n")

    def do_line(self, value: str) -> None:
        read = json.loads(self.stdin)["message"]["content"][0]["text"] if self.stdin else ""
        self.out(value.replace("{prompt}", json.dumps(read)[1:-1]) + "\n")

    def do_bytes(self, value: str, n: int) -> None:
        self.out(value * n)

    def do_stderr(self, value: str) -> None:
        sys.stderr.write(value)
        sys.stderr.flush()

    def do_read(self, _value: bool) -> None:
        self.stdin = sys.stdin.read()

    def do_record(self, value: str) -> None:
        told = {"argv": sys.argv, "env": dict(os.environ), "cwd": str(Path.cwd()), "pid": os.getpid()}
        unfinished = Path(f"{value}.new")
        unfinished.write_text(json.dumps({**told, "stdin": self.stdin}))
        unfinished.rename(value)

    def do_fork(self, value: list[dict[str, Any]], *, session: bool = False) -> None:
        if os.fork() == 0:
            if session:
                os.setsid()
            self.play(value)
            os._exit(0)

    def do_ignore(self, value: str) -> None:
        signal.signal(getattr(signal, value), signal.SIG_IGN)

    def do_close(self, _value: str) -> None:
        sys.stdout.flush()
        os.close(1)

    def do_wait(self, value: str) -> None:
        while not Path(value).exists():
            signal.sigtimedwait((), 0.01)

    def do_flood(self, value: str) -> None:
        while True:
            self.out(value + "\n")

    def do_exit(self, value: int) -> None:
        sys.stdout.flush()
        os._exit(value)

    def do_die(self, value: str) -> None:
        os.kill(os.getpid(), getattr(signal, value))

    def do_hang(self, _value: bool) -> None:
        while True:
            signal.sigtimedwait((), 60)


Player().play(json.loads(Path(os.environ["STUB_SCRIPT"]).read_text()))
