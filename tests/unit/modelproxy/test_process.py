"""The process as the stack starts it: what it says, what it refuses, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import anyio
import httpx2
import pytest

from runtime.modelproxy.ledger import Ledger, Limits
from runtime.modelproxy.prices import Bill, Tokens

if TYPE_CHECKING:
    from pathlib import Path

KEY = "sk-ant-test-0000-process"


def environment(folder: Path, **more: str) -> dict[str, str]:
    for name in ("doors", "ctl", "ops", "state"):
        (folder / name).mkdir(exist_ok=True)
    (folder / "key").touch()
    return {
        "PATH": os.environ["PATH"],
        "MODEL_API_KEY_FILE": str(folder / "key"),
        "MODEL_DOORS_DIR": str(folder / "doors"),
        "MODEL_CONTROL_SOCKET": str(folder / "ctl" / "control.sock"),
        "MODEL_OPS_DIR": str(folder / "ops"),
        "MODEL_STATE_DIR": str(folder / "state"),
        **more,
    }


def fails(env: dict[str, str], *arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "runtime.modelproxy", *arguments]
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=30, check=False)
    return done.returncode, done.stderr


async def run_until_started(env: dict[str, str], then: Any = None) -> tuple[int, str]:
    """Start the process, wait for its `started` line, do `then`, end it with SIGTERM."""
    command = [sys.executable, "-m", "runtime.modelproxy"]
    said = ""
    with anyio.fail_after(30):
        async with await anyio.open_process(command, env=env) as process:
            assert process.stderr is not None
            while '"event": "started"' not in said:
                said += (await process.stderr.receive()).decode()
            if then is not None:
                await then()
            process.send_signal(signal.SIGTERM)
            try:
                while True:
                    said += (await process.stderr.receive()).decode()
            except anyio.EndOfStream:
                pass
            code = await process.wait()
    return code, said


def line(said: str) -> dict[str, Any]:
    (found,) = [json.loads(text) for text in said.splitlines() if '"event": "started"' in text]
    return dict(found)


async def test_an_empty_key_file_is_the_demo_and_sigterm_ends_it_cleanly(folder: Path) -> None:
    stale = folder / "doors" / ("a" * 32)
    env = environment(folder, MODEL_DAILY_USD="2.50")
    stale.mkdir()
    seen: dict[str, Any] = {}
    day = time.strftime("%Y-%m-%d", time.gmtime())
    ledger = Ledger(folder / "state" / "ledger.sqlite3", 1_000_000)
    ledger.reserve("t", "ada", Bill(Tokens(), 1_234_567), Limits(1, 1, 1), time.time() - 86_400)
    ledger.reserve("u", "ada", Bill(Tokens(), 12_345), Limits(1, 1, 1), time.time())
    ledger.close()

    async def look() -> None:
        for name, path in (("control", "ctl/control.sock"), ("ops", "ops/modelproxy.sock")):
            async with httpx2.AsyncClient(
                transport=httpx2.AsyncHTTPTransport(uds=str(folder / path))
            ) as client:
                seen[name] = (await client.get("http://x/health")).json()
                seen[f"{name} status"] = (await client.get("http://x/status")).text
                assert (await client.post("http://x/reload")).status_code == 404

    code, said = await run_until_started(env, look)
    assert code == 0
    assert line(said)["model"] == "demo"
    assert seen["control"] == {"status": "ok", "demo": True}
    assert seen["ops"]["status"] == "ok"
    status = json.loads(seen["ops status"])
    today = status.pop("day")
    assert status == {
        "service": "modelproxy",
        "demo": True,
        "doors": 0,
        "spent_today_usd": {"ada": 0.012345} if today == day else {},
        "daily_limit_usd": 2.5,
    }
    assert not (folder / "ctl" / "control.sock").exists()


@pytest.mark.control("KEY-03")
async def test_a_stack_that_ran_live_refuses_the_demo_unless_asked(folder: Path) -> None:
    env = environment(folder)
    (folder / "key").write_text(KEY)
    code, said = await run_until_started(env)
    assert (code, line(said)["model"]) == (0, "live")
    assert KEY not in said
    (folder / "key").write_text("")
    code, said = fails(env)
    assert code == 7
    assert "MODEL=demo" in said
    code, said = await run_until_started({**env, "MODEL": "demo"})
    assert (code, line(said)["model"]) == (0, "demo")


@pytest.mark.control("KEY-03")
def test_a_malformed_key_is_exit_7_one_line_and_no_key(folder: Path) -> None:
    env = environment(folder)
    (folder / "key").write_text(f"{KEY} and more")
    code, said = fails(env)
    assert code == 7
    assert KEY not in said
    assert len(said.splitlines()) == 1
    (folder / "key").unlink()
    assert fails(env)[0] == 7


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"MODEL_AUTH_HEADER": "cookie"}, 3),
        ({"MODEL_STATE_DIR": "/nonexistent"}, 4),
        ({"MODEL_CONTROL_SOCKET": "/nonexistent/control.sock"}, 4),
    ],
)
def test_what_is_set_wrong_ends_it_with_its_code_and_no_traceback(
    folder: Path, more: dict[str, str], code: int
) -> None:
    found, said = fails(environment(folder, **more))
    assert found == code
    assert "Traceback" not in said
    assert '"event": "cannot_start"' in said


def test_a_check_starts_nothing_and_makes_nothing(folder: Path) -> None:
    env = environment(folder)
    assert fails(env, "--check") == (0, "")
    assert [path for name in ("doors", "ctl", "ops", "state") for path in (folder / name).iterdir()] == []


@pytest.mark.parametrize(
    ("settings", "code", "words"),
    [
        ({"MODEL_DAILY_USD": "5,00"}, 3, "gatehouse: config-invalid: environment: MODEL_DAILY_USD: "),
        ({"MODEL_API_KEY_FILE": "/nowhere"}, 7, "gatehouse: secret-unusable: the model key file /nowhere is"),
        ({"MODEL_CA_FILE": "/nowhere"}, 4, "gatehouse: host-not-ready: the certificates in /nowhere cannot"),
    ],
)
def test_a_check_ends_as_a_start_would_with_one_sentence(
    folder: Path, settings: dict[str, str], code: int, words: str
) -> None:
    ended, said = fails(environment(folder, **settings), "--check")
    assert ended == code
    assert said.startswith(words)
    assert said.count("\n") == 1


def test_a_check_knows_that_the_stack_has_answered_from_a_model(folder: Path) -> None:
    env = environment(folder)
    ledger = Ledger(folder / "state" / "ledger.sqlite3", 1)
    ledger.mark_live()
    ended, said = fails(env, "--check")  # beside a process that has the ledger open
    ledger.close()
    assert ended == 7
    assert "this stack has answered from a real model (put the key back, or set MODEL=demo)" in said
    assert fails({**env, "MODEL": "demo"}, "--check") == (0, "")
