"""The commands of README, tutorial and how-to pages, run as a reader would run them, in their written order.

What is run, and what is not and why, stands in tests/harness/page_course.py. All of it happens in a copy of
the checkout with a home of its own, on a stack with a name and a port of its own. The tests look at what was
seen.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.harness.page_blocks import Block, all_blocks
from tests.harness.page_course import COURSE, Step
from tests.harness.stack import REPO, docker, free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.engine
NAME = "mira"
LEFT_BEHIND = (
    *(".git", ".venv", ".env", ".gatehouse", ".hypothesis"),
    *(".*_cache", "__pycache__", "*.egg-info", "build", "dist"),
)
KEPT = ("PATH", "LANG", "EXTRA_CA_CERTS", "BASE", "DOCKER_HOST", "PIP_CERT", "SSL_CERT_FILE")
# Fills in what stands in the template's angle brackets, and writes a key into a file that is empty.
EDITOR = """\
#!{python}
import pathlib, re, sys
for path in map(pathlib.Path, sys.argv[1:]):
    text = path.read_text()
    filled = re.sub("<[A-Za-z][^<>]*>", "Mira of the ferry", text)
    path.write_text(filled if text else "sk-ant-test-0000-made-up\\n")
"""
# For a host without curl, which the pages ask for: only what they use of it.
CURL = """\
#!{python}
import sys, urllib.request
url, *rest = [one for one in sys.argv[1:] if one not in ("-s", "-sN")]
given = dict(zip(rest[::2], rest[1::2], strict=True))
headers = dict([given["-H"].split(": ", 1)]) if "-H" in given else {{}}
data = given["-d"].encode() if "-d" in given else None
with urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=100) as reply:
    for line in reply:
        sys.stdout.buffer.write(line)
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """How one block ended."""

    code: int
    out: str
    talk: str


@dataclass
class Reader:
    """Somebody who follows the pages: a checkout, a home, and the names and ports that they write."""

    folder: Path
    project: str = field(default_factory=lambda: f"gatehouse-pages-{secrets.token_hex(3)}")
    port: int = field(default_factory=free_port)
    other_port: int = field(default_factory=free_port)
    seen: dict[tuple[str, str], Seen] = field(default_factory=dict)

    @property
    def tree(self) -> Path:
        return self.folder / "checkout"

    @property
    def projects(self) -> tuple[str, str]:
        return self.project, f"{self.project}-second"

    def written(self, text: str) -> str:
        """Return a text of the pages with what this reader writes in it."""
        changes = {
            r"\b8011\b": str(self.port),
            r"\b8012\b": str(self.other_port),
            r"\bNAME\b": NAME,
            r"=second\b": f"={self.projects[1]}",
            r"\bgatehouse_packs\b": f"{self.project}_packs",
        }
        for pattern, change in changes.items():
            text = re.sub(pattern, change, text)
        return text

    def settle(self) -> None:
        """Make the checkout with its environment, the home, and the programs that a reader has."""
        self.folder.chmod(0o755)
        shutil.copytree(REPO, self.tree, symlinks=True, ignore=shutil.ignore_patterns(*LEFT_BEHIND))
        if (REPO / ".venv").is_dir():
            shutil.copytree(REPO / ".venv", self.tree / ".venv", symlinks=True, copy_function=linked)
            for path in (self.tree / ".venv").rglob("gatehouse.*"):
                text = path.read_text().replace(str(REPO), str(self.tree))
                path.unlink()
                path.write_text(text)
        (self.folder / "home").mkdir()
        programs = {"editor": EDITOR} if shutil.which("curl") else {"editor": EDITOR, "curl": CURL}
        for name, program in programs.items():
            path = self.folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(program.format(python=sys.executable))
            path.chmod(path.stat().st_mode | stat.S_IXUSR)

    def run(self, program: str, seconds: float = 170) -> Seen:
        """Run a shell program in the checkout."""
        environment = {name: value for name, value in os.environ.items() if name in KEPT}
        environment |= {
            "HOME": str(self.folder / "home"),
            "EDITOR": "editor",
            "PATH": f"{self.folder / 'bin'}:{environment['PATH']}",
            "DOCKER_CONFIG": os.environ.get("DOCKER_CONFIG", str(Path.home() / ".docker")),
        }
        done = subprocess.run(
            ["sh", "-e", "-c", self.written(program)],
            cwd=self.tree,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        return Seen(done.returncode, done.stdout, done.stderr)

    def follow(self, step: Step, block: Block) -> None:
        """Do what one block says."""
        if not step.keeps_env:
            settings = f"COMPOSE_PROJECT_NAME={self.project}\nAGENT_PORT={self.port}\n"
            (self.tree / ".env").write_text(settings)
        if step.before:
            before = self.run(step.before)
            assert before.code == 0, before.talk
        lines = [line for line in commands(block) if line.split("  #")[0].strip() not in step.without]
        self.seen[step.key] = self.run("\n".join(lines))

    def leave(self) -> None:
        """Take down what the pages started."""
        for project in self.projects:
            self.run(f"COMPOSE_PROJECT_NAME={project} ./gatehouse down")
            label = f"label=com.docker.compose.project={project}"
            for volume in docker("volume", "ls", "--quiet", "--filter", label).split():
                docker("volume", "rm", volume, check=False)


def linked(source: str, target: str) -> str:
    """Link a file, or copy it where the two places cannot be linked."""
    with contextlib.suppress(OSError):
        os.link(source, target)
        return target
    return str(shutil.copy2(source, target))


def commands(block: Block) -> list[str]:
    """Return the lines to type: of a console's, those behind the prompt."""
    lines = block.text.splitlines()
    if block.language != "console":
        return lines
    return [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]


def printed(block: Block) -> str:
    """Return what a console's block says that is printed."""
    return "\n".join(line for line in block.text.splitlines() if not line.startswith("$ "))


BLOCKS = {block.key: block for block in all_blocks()}


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    """Somebody who has followed the whole course."""
    made = Reader(Path(tempfile.mkdtemp(prefix="gatehouse-pages-")))
    try:
        made.settle()
        for step in COURSE:
            made.follow(step, BLOCKS[step.key])
        yield made
    finally:
        made.leave()
        shutil.rmtree(made.folder)


@pytest.mark.parametrize("step", COURSE, ids=[f"{step.page}: {step.first}" for step in COURSE])
def test_a_block_does_what_its_page_says(reader: Reader, step: Step) -> None:
    seen, block = reader.seen[step.key], BLOCKS[step.key]
    assert seen.code == step.code, f"{block.text}\n{seen.out}\n{seen.talk}"
    for text in step.shows:
        assert reader.written(text) in seen.out, f"{block.text}\n{seen.out}\n{seen.talk}"
    for text in step.hides:
        assert reader.written(text) not in seen.out
    if block.language == "console":
        assert seen.out.strip() == reader.written(printed(block)).strip()
