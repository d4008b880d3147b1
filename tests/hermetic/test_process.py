"""The two programs as processes: a front and a single turn without a sandbox, their noise and their ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from runtime.agents.definition import Messages

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

REPO = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


@pytest.fixture
def root(stub: Any) -> Path:
    folder: Path = stub.folder / "instances" / "ada"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text(
        "name: Ada\ndescription: Answers.\ngrounding_dir: grounding\ntimeout: 20\n"
    )
    (folder / "system-prompt.md").write_text("You are Ada.\n")
    found: Path = stub.folder
    return found


def environment(stub: Any, **more: str) -> dict[str, str]:
    return {**stub.environ, "CLAUDE_BINARY": str(stub.program), "PYTHONPATH": REPO, **more}


def run(
    module: str, *arguments: str, env: dict[str, str], said: str = ""
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", module, *arguments]
    return subprocess.run(
        command, input=said, capture_output=True, text=True, check=False, timeout=60, env=env
    )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.asynccontextmanager
async def front(
    root: Path, env: dict[str, str], *arguments: str
) -> AsyncGenerator[tuple[Any, str, list[bytes]], None]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "runtime.server", "--agent", "ada", "--root", str(root)),
        *("--sandbox", "none", "--port", str(port), *arguments),
        stderr=subprocess.PIPE,
        env=env,
    )
    assert process.stderr is not None
    said: list[bytes] = []
    try:
        async with asyncio.timeout(30):
            while not said or b'"serving"' not in said[-1]:
                said.append(await process.stderr.readline())
                assert said[-1], said
        yield process, f"http://127.0.0.1:{port}", said
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


def message(text: str) -> dict[str, Any]:
    part = {"kind": "text", "text": text}
    said = {"kind": "message", "role": "user", "messageId": "m", "parts": [part]}
    return {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": said}}


async def test_a_front_answers_loudly_and_sigterm_ends_it_with_its_turn(
    stub: Any, kit: Any, root: Path, temporary: Path
) -> None:
    env = environment(stub)
    async with (
        front(root, env, "--model", "haiku") as (process, url, said),
        httpx2.AsyncClient(trust_env=False, timeout=20) as http,
    ):
        stub.play({"record": str(stub.record)}, kit.result("From the stub."))
        answer = (await http.post(url, json=message("hi"))).json()
        assert answer["result"]["status"]["message"]["parts"][0]["text"] == "From the stub."
        argv = stub.recorded()["argv"]
        assert argv[argv.index("--model") + 1] == "haiku"
        assert (await http.get(url + "/ready")).json() == {"status": "ready", "sandbox": "none"}
        card = (await http.get(url + "/.well-known/agent-card.json")).json()
        assert "without its sandbox" in card["description"]
        assert any(line.startswith(b"NO SANDBOX: turns of ada run as ") for line in said)
        warning = next(json.loads(line) for line in said if b"no-sandbox" in line)
        assert (warning["level"], warning["demo"]) == ("warning", False)
        stub.record.unlink()
        stub.play({"record": str(stub.record)}, {"hang": True})
        asking = asyncio.create_task(http.post(url, json=message("wait")))
        async with asyncio.timeout(20):
            await asyncio.to_thread(kit.wait_for, stub.record)
        process.send_signal(signal.SIGTERM)
        ended = (await asking).json()["result"]["status"]["message"]["parts"][0]["text"]
        assert ended == Messages().stopping
        async with asyncio.timeout(20):
            assert await process.wait() == 0
    assert not kit.alive(stub.recorded()["pid"])
    assert kit.inside(temporary) == []


@contextlib.asynccontextmanager
async def front_in_mid_turn(stub: Any, kit: Any, root: Path) -> AsyncGenerator[tuple[Any, Any], None]:
    stub.play({"ignore": "SIGTERM"}, {"record": str(stub.record)}, {"hang": True})
    async with (
        front(root, environment(stub)) as (process, url, _said),
        httpx2.AsyncClient(trust_env=False, timeout=20) as http,
    ):
        asking = asyncio.create_task(http.post(url, json=message("wait")))
        async with asyncio.timeout(20):
            await asyncio.to_thread(kit.wait_for, stub.record)
        yield process, asking


@pytest.mark.parametrize("number", [one for one in ENDING if one is not signal.SIGTERM])
async def test_a_front_whose_terminal_asks_it_to_end_ends_its_turn_and_removes_the_copy(
    stub: Any, kit: Any, root: Path, temporary: Path, number: signal.Signals
) -> None:
    async with front_in_mid_turn(stub, kit, root) as (process, asking):
        process.send_signal(number)
        status = (await asking).json()["result"]["status"]
        assert status["message"]["metadata"]["gatehouse"]["outcome"] == "stopping"
        async with asyncio.timeout(20):
            assert await process.wait() == 0
    assert not kit.alive(stub.recorded()["pid"])
    assert kit.inside(temporary) == []


async def test_a_front_that_is_killed_takes_the_cli_with_it(
    stub: Any, kit: Any, root: Path, temporary: Path
) -> None:
    async with front_in_mid_turn(stub, kit, root) as (process, asking):
        process.kill()
        with pytest.raises(httpx2.RemoteProtocolError):
            await asking
    assert kit.gone(stub.recorded()["pid"])
    (left,) = kit.inside(temporary)
    shutil.rmtree(left)


@pytest.mark.parametrize("number", ENDING)
async def test_a_front_that_is_asked_to_end_during_its_start_leaves_no_copy(
    stub: Any, kit: Any, root: Path, temporary: Path, number: signal.Signals
) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "runtime.server", "--agent", "ada", "--root", str(root)),
        *("--sandbox", "none", "--port", str(free_port())),
        stderr=subprocess.DEVNULL,
        env=environment(stub),
    )
    async with asyncio.timeout(30):
        await asyncio.to_thread(kit.wait_for_any, temporary)
        process.send_signal(number)
        assert await process.wait() == 0
    assert kit.inside(temporary) == []


@pytest.mark.parametrize(
    ("arguments", "extra", "code", "words"),
    [
        (("--sandbox", "none", "--host", "198.51.100.1"), {}, 2, "loopback"),
        (("--sandbox", "none"), {"AGENT_HOST": "192.0.2.1"}, 2, "loopback"),
        (("--sandbox", "none", "--host", "agent.example"), {}, 2, "loopback"),
        (("--sandbox", "none", "--sockets"), {}, 2, "sockets"),
        (("--sandbox", "none"), {"CLAUDE_BINARY": "/no/such/claude"}, 4, "no program"),
        (("--sandbox", "none"), {"MODEL": "opus"}, 3, "MODEL"),
        (("--sandbox", "maybe"), {}, 2, "invalid choice"),
        (("--model", "haiku"), {"CLAUDE_BINARY": ""}, 2, "--model needs --sandbox none"),
        ((), {}, 2, "CLAUDE_BINARY is set"),
    ],
)
def test_what_a_front_refuses_is_one_sentence_with_its_mend(
    stub: Any, root: Path, arguments: tuple[str, ...], extra: dict[str, str], code: int, words: str
) -> None:
    always = ("--agent", "ada", "--root", str(root), "--port", str(free_port()))
    done = run("runtime.server", *always, *arguments, env=environment(stub, **extra))
    assert done.returncode == code, done.stderr
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_the_spawner_refuses_a_binary_too(stub: Any) -> None:
    done = run("runtime.spawner", env=environment(stub))
    assert done.returncode == 2, done.stderr
    assert "CLAUDE_BINARY is set" in done.stderr
    assert "Traceback" not in done.stderr


def test_one_turn_is_told_as_ndjson(stub: Any, kit: Any, root: Path) -> None:
    usage = {"input_tokens": 5, "cache_read_input_tokens": 7, "output_tokens": 3}
    stub.play(kit.used("Grep"), kit.event("message_start"), kit.result("The answer.", usage=usage))
    env = environment(stub)
    done = run("runtime.unsandboxed", "--agent", "ada", "--root", str(root), env=env, said="When?")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [event["event"] for event in events] == ["planned", "step", "answer"]
    assert events[-1]["text"] == "The answer."
    assert events[-1]["usage"] == {
        "requests": 1,
        "input_tokens": 12,
        "output_tokens": 3,
        "refused": 0,
        "request_bytes": 0,
    }
    assert "NO SANDBOX" in done.stderr


def test_one_turn_that_fails_says_why_and_exits_with_1(stub: Any, root: Path) -> None:
    stub.play({"stderr": "out of luck"}, {"exit": 9})
    env = environment(stub)
    done = run("runtime.unsandboxed", "--agent", "ada", "--root", str(root), env=env, said="When?")
    last = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 1
    assert (last["event"], last["cause"]) == ("failed", "crash")
    assert "out of luck" in last["detail"]


@pytest.mark.parametrize(
    ("said", "extra", "code"),
    [(" ", {}, 2), ("x" * 5000, {}, 2), ("hi", {"CLAUDE_BINARY": "no-such-program"}, 4)],
)
def test_one_turn_that_cannot_be_is_a_sentence(
    stub: Any, root: Path, said: str, extra: dict[str, str], code: int
) -> None:
    env = environment(stub, **extra)
    done = run("runtime.unsandboxed", "--agent", "ada", "--root", str(root), env=env, said=said)
    assert done.returncode == code, done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("gatehouse: ")


@contextlib.contextmanager
def one_turn(stub: Any, root: Path) -> Iterator[Any]:
    """Start one turn, in a session of its own as a terminal's last program is once that is closed."""
    command = [sys.executable, "-m", "runtime.unsandboxed", "--agent", "ada", "--root", str(root)]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(stub),
        start_new_session=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"hi")
        process.stdin.close()
        try:
            yield process
        finally:
            process.kill()


def reach_the_step(process: Any) -> None:
    assert json.loads(process.stdout.readline())["event"] == "planned"
    assert json.loads(process.stdout.readline())["event"] == "step"


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_the_turn_and_what_it_started_and_removes_the_copy(
    stub: Any, kit: Any, root: Path, temporary: Path, number: signal.Signals
) -> None:
    stub.play({"record": str(stub.record)}, kit.used("Grep"), {"hang": True})
    with one_turn(stub, root) as process:
        reach_the_step(process)
        process.send_signal(number)
        assert process.wait(timeout=30) == 130
    assert not kit.alive(stub.recorded()["pid"])
    assert kit.inside(temporary) == []


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_during_the_start_leaves_no_copy(
    stub: Any, kit: Any, root: Path, temporary: Path, number: signal.Signals
) -> None:
    stub.play({"hang": True})
    with one_turn(stub, root) as process:
        kit.wait_for_any(temporary)
        process.send_signal(number)
        assert process.wait(timeout=30) == 130
    assert kit.inside(temporary) == []


def test_a_turn_whose_own_process_is_killed_takes_the_cli_with_it(
    stub: Any, kit: Any, root: Path, temporary: Path
) -> None:
    stub.play({"ignore": "SIGTERM"}, {"record": str(stub.record)}, kit.used("Grep"), {"hang": True})
    with one_turn(stub, root) as process:
        reach_the_step(process)
        process.kill()
        assert process.wait(timeout=30) == -signal.SIGKILL
    assert kit.gone(stub.recorded()["pid"])
    (left,) = kit.inside(temporary)  # nobody was there to remove it, as the how-to says
    assert left.name.startswith("gatehouse-")
    shutil.rmtree(left)


def test_a_turn_that_nobody_reads_any_more_ends(stub: Any, kit: Any, root: Path, temporary: Path) -> None:
    stub.play({"record": str(stub.record)}, kit.used("Grep"), {"hang": True})
    with one_turn(stub, root) as process:
        reach_the_step(process)
        process.stdout.close()
        assert process.wait(timeout=15) == 1
    assert not kit.alive(stub.recorded()["pid"])
    assert kit.inside(temporary) == []


def test_a_turn_under_nohup_outlasts_its_terminal(stub: Any, kit: Any, root: Path, tmp_path: Path) -> None:
    released = tmp_path / "released"
    stub.play(kit.used("Grep"), {"wait": str(released)}, kit.result("Done."))
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # a child inherits that, as from nohup
    try:
        with one_turn(stub, root) as process:
            reach_the_step(process)
            process.send_signal(signal.SIGHUP)
            released.touch()
            assert json.loads(process.stdout.readline())["text"] == "Done."
            assert process.wait(timeout=30) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_demo_whose_sockets_find_no_room_is_refused_at_the_start_with_the_room_there_is(
    stub: Any, kit: Any, root: Path, temporary: Path
) -> None:
    deep = temporary / ("d" * 100)
    deep.mkdir()
    asked = ("runtime.unsandboxed", "--agent", "ada", "--root", str(root))
    env = environment(stub, MODEL="demo", TMPDIR=str(deep))
    done = run(*asked, env=env, said="When?")
    assert done.returncode == 4, done.stderr
    assert kit.inside(deep) == []
    deep.rmdir()
    most = re.search(r"set TMPDIR to a folder with a path of at most (\d+) bytes", done.stderr)
    assert most is not None, done.stderr
    just = temporary / ("j" * (int(most[1]) - len(os.fsencode(temporary)) - 1))
    just.mkdir()
    done = run(*asked, env=env | {"TMPDIR": str(just)}, said="When?")
    assert done.returncode == 0, done.stderr
    assert kit.inside(just) == []
    just.rmdir()
