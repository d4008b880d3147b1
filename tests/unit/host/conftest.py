"""A bare host made of a folder: the scripts see its files and the programs on its PATH, and nothing else.

What it leaves out: a real engine and a real apt. Both are met by `./gatehouse test` itself, where it runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO = Path(__file__).resolve().parents[3]
TOOLS = (
    "sh awk cat chmod cksum cut date df dirname find flock grep head ls mkdir mv readlink "
    "rm sed setsid sleep sort tail tar timeout tr"
)

# What compose/host/example.py makes of a card; backslash, dollar and backtick must pass through as they are.
BODY = r'{"params":{"message":{"parts":[{"kind":"text","text":"What\u0027s `$HOME`?"}]}}}'

DEBIAN_12 = 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n'

# A client and an engine that are good enough. A test's own answers stand before these.
GOOD_DOCKER = f"""
  "version "*) echo "api 1.45" ;;
  "context "*) echo "unix://$HOST/var/run/docker.sock" ;;
  "compose version"*) echo "2.26.1-4" ;;
  "buildx version"*) echo "buildx 0.13.1" ;;
  "info --format {{{{.DockerRootDir}}}}") echo "$HOST" ;;
  "info "*) echo "[name=seccomp]" ;;
  "image inspect "*) ;;
  *" --mounts "*) ;;
  "run "*load_instance*) cat "$HOST/port" 2>/dev/null || echo 8011 ;;
  "run "*) cat >/dev/null ;;
  *" build") ;;
  *" exec -T ingress python -") cat >/dev/null; printf '%s\\n' '"When are office hours?"' '{BODY}' ;;
  *" exec -T ingress "*) echo '{{"status": "ok", "demo": true}}' ;;
  *"compose "*" up "*) ;;
  "ps "*working_dir*) ;;
  "ps --all --quiet --filter label=com.docker.compose.project=gatehouse")
    [ "$(grep -cx "docker $*" "$HOST/calls")" -lt 2 ] || echo 0123456789ab ;; # none before the start
  "ps "*) echo 0123456789ab ;;
  "inspect "*) echo "front running 0 0 healthy" ;;
"""


@dataclass
class Host:
    folder: Path
    root: bool = True
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def tree(self) -> Path:
        return self.folder / "checkout"

    @property
    def calls_file(self) -> Path:
        return self.folder / "calls"

    def file(self, path: str, text: str) -> Path:
        """Write one of the host's files, such as etc/os-release."""
        target = self.folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        return target

    def program(self, name: str, body: str) -> None:
        """Put a program on the PATH; each call of it is noted with its arguments."""
        target = self.folder / "bin" / name
        target.unlink(missing_ok=True)
        note = 'printf "%s\\n" "${0##*/} $*" >>"$HOST/calls"\n'
        target.write_text(f"#!{self.folder}/bin/sh\nHOST={self.folder}\n{note}{body}\n")
        target.chmod(0o755)

    def docker(self, *answers: str) -> None:
        """Put a docker client on the PATH whose engine is good but for the given `pattern) answer ;;`."""
        own = "\n".join(answers)
        self.program("docker", f'case "$*" in\n{own}\n{GOOD_DOCKER}\n*) ;;\nesac')

    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []

    def called(self, start: str) -> list[str]:
        return [call for call in self.calls() if call.startswith(start)]

    def variables(self) -> dict[str, str]:
        return {
            "PATH": str(self.folder / "bin"),
            "HOME": str(self.folder / "home"),
            "GATEHOUSE_HOST_FILES": str(self.folder),
            "GATEHOUSE_LOCK_SECONDS": "0",
            **self.environment,
        }

    def run(
        self, *arguments: str, user: int | None = None, stdin: str | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run ./gatehouse on this host."""
        self.program("id", f'[ "$1" = -u ] && echo {0 if self.root else 1000} || echo visitor')
        return subprocess.run(
            [str(self.folder / "bin" / "sh"), str(self.tree / "gatehouse"), *arguments],
            env=self.variables(),
            cwd=self.tree,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
            user=user,
        )

    def shell(self, program: str, *, parts: str = "words settings lock engine apt images stack") -> str:
        """Run a few lines with the scripts' functions at hand and return what they print."""
        self.program("id", f'[ "$1" = -u ] && echo {0 if self.root else 1000} || echo visitor')
        (self.tree / ".gatehouse").mkdir(exist_ok=True)
        source = f"set -eu; GATEHOUSE_ROOT={self.tree}; GATEHOUSE_HOST=$GATEHOUSE_ROOT/compose/host\n"
        source += "".join(f". $GATEHOUSE_HOST/{part}.sh\n" for part in parts.split())
        done = subprocess.run(
            [str(self.folder / "bin" / "sh"), "-c", source + "settings_load\n" + program],
            env=self.variables(),
            cwd=self.tree,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def host() -> Iterator[Host]:
    """A Debian 12 host, as root, without an engine. Its folder may be entered by any user."""
    folder = Path(tempfile.mkdtemp(prefix="gatehouse-host-"))
    folder.chmod(0o755)
    try:
        made = Host(folder)
        (folder / "bin").mkdir()
        for tool in TOOLS.split():
            found = shutil.which(tool)
            assert found, tool
            (folder / "bin" / tool).symlink_to(os.path.realpath(found))
        made.file("etc/os-release", DEBIAN_12)
        made.file("var/run/docker.sock", "")
        (folder / "tmp").mkdir()
        shutil.copytree(REPO / "compose", made.tree / "compose")
        for name in ("gatehouse", "compose.yaml", "pyproject.toml"):
            shutil.copy2(REPO / name, made.tree / name)
        made.file("checkout/instances/ada/agent.yaml", "name: Ada\n")
        made.file("checkout/requirements/dev.txt", "")
        yield made
    finally:
        shutil.rmtree(folder)
