"""turn_init and grants as processes on the host, with their fixed places moved into a folder."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

INIT = """
import os, sys
from sandbox import turn_init
turn_init.CONTEXT_FILE, turn_init.DOOR, turn_init.PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
turn_init.UNCLAIMED_SECONDS = float(sys.argv[4])
sys.argv[1:] = sys.argv[5:]
os._exit(turn_init.main())
"""

GRANTS = """
import sys
from sandbox import grants
grants.TOOLS, grants.PYTHON, grants.CONTEXT_FILE = sys.argv[1], sys.executable, sys.argv[2]
grants.TIME_LIMIT_SECONDS = float(sys.argv[3])
sys.argv[1:] = sys.argv[4:]
grants.main()
"""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass
class Init:
    """Starts turn_init with a Python program as the CLI."""

    folder: Path
    port: int
    unclaimed_seconds: float = 60.0

    @property
    def context_file(self) -> Path:
        return self.folder / "context"

    @property
    def door(self) -> Path:
        return self.folder / "model.sock"

    def start(self, *argv: str) -> subprocess.Popen[bytes]:
        places = [str(self.context_file), str(self.door), str(self.port), str(self.unclaimed_seconds)]
        return subprocess.Popen(
            [sys.executable, "-c", INIT, *places, *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def run(self, program: str, line: bytes | None = None, **fields: Any) -> tuple[int, bytes, bytes]:
        """Run a fake CLI to its end; returns exit code, stdout, stderr."""
        process = self.start(sys.executable, "-c", program)
        out, err = process.communicate(self.line(**fields) if line is None else line, timeout=30)
        return process.returncode, out, err

    @staticmethod
    def line(**fields: Any) -> bytes:
        order = {"v": 1, "context": "c-1", "deadline_seconds": 30.0, "message": "hello", **fields}
        return json.dumps(order).encode() + b"\n"


@pytest.fixture
def init(tmp_path: Path) -> Init:
    return Init(tmp_path, free_port())


@dataclass
class Grants:
    """Runs the MCP server on a list of lines; `tools` holds the scripts."""

    tools: Path
    context_file: Path
    time_limit_seconds: float = 20.0

    def script(self, name: str, source: str) -> None:
        (self.tools / f"{name}.py").write_text(source)

    def raw(
        self, names: tuple[str, ...], data: bytes, *, seconds: float = 30
    ) -> subprocess.CompletedProcess[bytes]:
        places = [str(self.tools), str(self.context_file), str(self.time_limit_seconds)]
        tools = [word for name in names for word in ("--tool", name)]
        return subprocess.run(
            [sys.executable, "-c", GRANTS, *places, *tools],
            input=data,
            capture_output=True,
            timeout=seconds,
            check=False,
        )

    def ask(self, names: tuple[str, ...], *requests: Any) -> list[dict[str, Any]]:
        """Send requests (objects, or raw bytes) and return the responses."""
        lines = [
            request if isinstance(request, bytes) else json.dumps(request).encode() for request in requests
        ]
        done = self.raw(names, b"\n".join(lines) + b"\n")
        assert done.returncode == 0, done.stderr
        return [json.loads(row) for row in done.stdout.splitlines()]

    def call(self, name: str, arguments: Any) -> dict[str, Any]:
        """Call one tool and return its result."""
        params = {"name": name, "arguments": arguments}
        (response,) = self.ask((name,), {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})
        return dict(response["result"])


@pytest.fixture
def grants(tmp_path: Path) -> Grants:
    tools = tmp_path / "tools"
    tools.mkdir()
    return Grants(tools, tmp_path / "context")
