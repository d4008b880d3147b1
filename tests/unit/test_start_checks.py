"""What `./gatehouse up` asks of each service before it touches a stack that runs: an answer, and quickly."""

from __future__ import annotations

import subprocess
import sys

import pytest

SERVING = {
    "a2a",
    "anyio",
    "asyncio",
    "docker",
    "h11",
    "httpx2",
    "prometheus_client",
    "requests",
    "starlette",
    "structlog",
    "urllib3",
    "uvicorn",
    "yaml",
}
CHECK = """
import runpy, sys
try:
    runpy.run_module("runtime." + sys.argv.pop(1), run_name="__main__", alter_sys=True)
except SystemExit as end:
    print(*sorted(sys.modules))
    raise
"""


@pytest.mark.parametrize("service", ["front", "spawner", "modelproxy"])
def test_a_check_imports_no_server_no_client_and_no_engine(service: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CHECK, service, "--check"],
        env={"MODEL_API_KEY_FILE": "/dev/null"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    loaded = set(done.stdout.split())
    assert (done.returncode, done.stderr) == (0, "")
    assert f"runtime.{service}.settings" in loaded
    assert loaded & SERVING == set()


@pytest.mark.parametrize(
    ("service", "name"),
    [("front", "FRONT_MAX_STREAMS"), ("spawner", "SPAWNER_MAX_RUNNING"), ("modelproxy", "MODEL_DAILY_USD")],
)
def test_a_check_says_which_setting_would_keep_the_service_from_starting(service: str, name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"runtime.{service}", "--check"],
        env={"MODEL_API_KEY_FILE": "/dev/null", name: "nothing"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode in {2, 3}
    assert name in done.stderr
    assert "Traceback" not in done.stderr
