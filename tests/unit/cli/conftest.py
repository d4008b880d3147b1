"""A checkout with a template and one persona, the commands run in it, and a terminal to run them on."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest

from runtime.cli.main import main

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO = Path(__file__).resolve().parents[3]


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str


@dataclass
class Checkout:
    root: Path
    capsys: pytest.CaptureFixture[str]
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def instances(self) -> Path:
        return self.root / "instances"

    def variables(self) -> dict[str, str]:
        home = {"PATH": os.environ["PATH"], "HOME": str(self.root), "LANG": "C.UTF-8"}
        return {**home, "GATEHOUSE_ROOT": str(self.root), **self.environment}

    def run(self, *words: str) -> Done:
        """Run one command in this process, where stdin is no terminal."""
        self.capsys.readouterr()
        code = main(words, self.variables())
        out, err = self.capsys.readouterr()
        return Done(code, out, err)

    def start(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """Run one command in a process of its own, without a terminal."""
        return subprocess.run(
            [sys.executable, "-m", "runtime.cli", *words],
            cwd=REPO,
            env=self.variables(),
            input=stdin,
            capture_output=True,
            timeout=60,
            check=False,
        )

    @contextmanager
    def terminal(self, *words: str) -> Iterator[Terminal]:
        """Run one command on a terminal of its own."""
        ours, theirs = pty.openpty()
        with subprocess.Popen(
            [sys.executable, "-m", "runtime.cli", *words],
            cwd=REPO,
            env={"TERM": "xterm", **self.variables()},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        ) as process:
            os.close(theirs)
            try:
                yield Terminal(process, ours)
            finally:
                process.kill()
                os.close(ours)


@dataclass
class Terminal:
    process: subprocess.Popen[bytes]
    fd: int
    text: str = ""
    _read: int = 0

    def until(self, words: str) -> Self:
        """Read on until these words have come since the last call; fails when they never do."""
        while words not in self.text[self._read :]:
            assert self._more(), f"ended without {words!r}: {self.text}"
        self._read = self.text.index(words, self._read) + len(words)
        return self

    def type(self, text: str) -> Self:
        os.write(self.fd, text.encode())
        return self

    def end(self) -> int:
        """Read the rest and return the exit code."""
        while self._more():
            pass
        return self.process.wait(timeout=60)

    def _more(self) -> bool:
        try:
            read = os.read(self.fd, 65536)
        except OSError:  # Linux says so when the other side is closed
            return False
        self.text += read.decode().replace("\r\n", "\n")
        return bool(read)


@pytest.fixture
def checkout(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Checkout:
    for name in ("_template", "ada"):
        shutil.copytree(
            REPO / "instances" / name,
            tmp_path / "instances" / name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    shutil.copy2(REPO / "pyproject.toml", tmp_path)
    return Checkout(tmp_path, capsys)
