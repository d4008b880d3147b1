"""A docker client on a PATH of its own that plays answers and notes how it was called.

What it leaves out: an engine, containers and their streams; tests/e2e/test_cli.py meets those. An answer is
chosen by the words of the call alone.
"""

from __future__ import annotations

import json
import os
import stat
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """#!{python} -I
import json, pathlib, signal, sys
folder = pathlib.Path({folder!r})
words = " ".join(sys.argv[1:])
stdin = sys.stdin.read() if sys.argv[1] == "exec" and "--interactive" in sys.argv else ""
with (folder / "calls").open("a") as calls:
    calls.write(json.dumps([sys.argv[1:], stdin]) + "\\n")
for answer in json.loads((folder / "answers.json").read_text()):
    if all(part in words for part in answer["words"]):
        sys.stdout.write(answer["stdout"])
        sys.stdout.flush()
        sys.stderr.write(answer["stderr"])
        if answer["hangs"]:
            signal.pause()
        sys.exit(answer["code"])
sys.stderr.write("no answer for: " + words + "\\n")
sys.exit(97)
"""


@dataclass
class FakeDocker:
    """`folder` holds the program, its answers and the calls; `environ` is for what calls it."""

    folder: Path
    answers: list[dict[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        binary = self.folder / "bin" / "docker"
        binary.parent.mkdir(parents=True)
        binary.write_text(PROGRAM.format(python=sys.executable, folder=str(self.folder)))
        binary.chmod(binary.stat().st_mode | stat.S_IXUSR)
        self._write()

    @property
    def environ(self) -> dict[str, str]:
        return {"PATH": f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}", "HOME": "/home/owner"}

    def answer(
        self, *words: str, stdout: str = "", stderr: str = "", code: int = 0, hangs: bool = False
    ) -> None:
        """Answer calls that hold all the words; a later answer stands before an earlier one."""
        told = {"words": words, "stdout": stdout, "stderr": stderr, "code": code, "hangs": hangs}
        self.answers.insert(0, told)
        self._write()

    def stack(self, *containers: dict[str, Any]) -> None:
        """Have these containers, as `container` makes them."""
        self.answer("ps --all", stdout="".join(f"{one['Id']}\n" for one in containers))
        self.answer("inspect --type container", stdout=json.dumps(containers))

    def calls(self, *words: str) -> list[tuple[list[str], str]]:
        """Return the arguments and the stdin of the calls that hold all the words."""
        path = self.folder / "calls"
        noted = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [(call, stdin) for call, stdin in noted if all(part in " ".join(call) for part in words)]

    def _write(self) -> None:
        path = self.folder / "answers.json"
        path.with_suffix(".new").write_text(json.dumps(self.answers))
        path.with_suffix(".new").replace(path)


def container(
    service: str,
    *,
    state: str = "running",
    health: str = "healthy",
    exit_code: int = 0,
    restarts: int = 0,
    port: int | None = None,
    environ: dict[str, str] | None = None,
    mounts: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return what `docker inspect` would say of a service's container, as far as the commands read it."""
    bound = [{"HostIp": "127.0.0.1", "HostPort": str(port)}] if port else None
    return {
        "Id": f"id-of-{service}",
        "RestartCount": restarts,
        "State": {"Status": state, "ExitCode": exit_code, "Health": {"Status": health} if health else None},
        "Config": {
            "Labels": {"com.docker.compose.service": service, "com.docker.compose.oneoff": "False"},
            "Env": [f"{name}={value}" for name, value in (environ or {}).items()],
        },
        "NetworkSettings": {"Ports": {"8011/tcp": bound}},
        "Mounts": [
            {"Type": "bind", "Source": source, "Destination": target}
            for target, source in (mounts or {}).items()
        ],
    }
