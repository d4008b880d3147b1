"""The front as a process: start against a spawner, SIGTERM in the middle of a stream, bad input.

What the fake spawner leaves out: containers. It speaks docs/reference/protocols.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from runtime.agents.definition import Messages
from runtime.agents.instance import load_instance
from runtime.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from starlette.requests import Request

AGENT = """\
name: Test
description: A test.
grounding_dir: grounding
timeout: 20
skills:
  - id: x
    name: X
    description: x
    tags: [x]
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "instances" / "test"
    (folder / "tools").mkdir(parents=True)
    (tmp_path / "grounding").mkdir()
    (tmp_path / "grounding" / "fact.md").write_text("A fact.\n")
    (folder / "agent.yaml").write_text(AGENT)
    (folder / "system-prompt.md").write_text("You are a test.\n")
    return tmp_path


class Spawner:
    def __init__(self, digest: str) -> None:
        self.digest = digest
        self.holding = asyncio.Event()
        self.release = asyncio.Event()
        self.deleted = 0

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/agents/{agent}", self.agent),
                Route("/turns", self.turns, methods=["POST"]),
                Route("/turns/{turn}", self.delete, methods=["DELETE"]),
            ]
        )

    async def agent(self, request: Request) -> Response:
        return JSONResponse(
            {"id": request.path_params["agent"], "digest": self.digest, "pack": "", "demo": True}
        )

    async def delete(self, _request: Request) -> Response:
        self.deleted += 1
        self.release.set()
        return JSONResponse({})

    async def turns(self, request: Request) -> Response:
        hold = "hold" in (await request.json())["prompt"]
        headers = {"gatehouse-turn": "ab" * 16}
        return StreamingResponse(self.lines(hold=hold), media_type="application/x-ndjson", headers=headers)

    async def lines(self, *, hold: bool) -> AsyncIterator[bytes]:
        yield b'{"event":"started","turn":"abababababababababababababababab"}\n'
        if hold:
            self.holding.set()
            await self.release.wait()
        data = json.dumps({"type": "result", "is_error": False, "result": "From the sandbox."})
        yield json.dumps({"event": "line", "data": data}).encode() + b"\n"
        yield b'{"event":"end","reason":"exited","exit_code":0,"oom":false,"usage":{},"detail":""}\n'


def environment() -> dict[str, str]:
    kept = ("PATH", "HOME", "PYTHONPATH", "VIRTUAL_ENV", "LANG")
    return {key: os.environ[key] for key in kept if key in os.environ}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextlib.asynccontextmanager
async def front(root: Path, *arguments: str, spawner: Spawner) -> AsyncGenerator[tuple[Any, str], None]:
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spawn.sock"
        async with serving(spawner.app(), path, grace_seconds=1):
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "runtime.server", "--agent", "test", "--root", str(root)),
                *("--port", str(port), "--spawn-socket", str(path), *arguments),
                stderr=subprocess.PIPE,
                env=environment(),
            )
            assert process.stderr is not None
            try:
                async with asyncio.timeout(30):
                    while b'"serving"' not in (line := await process.stderr.readline()):
                        assert line, "the front ended"
                yield process, f"http://127.0.0.1:{port}"
            finally:
                if process.returncode is None:
                    process.terminate()
                await process.communicate()


def message(text: str) -> dict[str, Any]:
    part = {"kind": "text", "text": text}
    said = {"kind": "message", "role": "user", "messageId": "m", "parts": [part]}
    return {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": said}}


async def test_the_process_serves_a_turn_of_the_spawner_s_and_says_that_it_is_the_demo(root: Path) -> None:
    spawner = Spawner(load_instance(root, "test", {}).digest)
    async with front(root, spawner=spawner) as (process, url), httpx2.AsyncClient(trust_env=False) as http:
        answer = (await http.post(url, json=message("hi"))).json()
        assert answer["result"]["status"]["message"]["parts"][0]["text"] == "From the sandbox."
        assert (await http.get(url + "/ready")).json() == {"status": "ready", "demo": True}
        assert (await http.get(url + "/health")).json() == {"status": "ok", "agent": "test"}
        process.terminate()
        async with asyncio.timeout(10):
            assert await process.wait() == 0


async def test_a_second_sigterm_ends_an_open_stream_with_a_terminal_event_and_the_turn_at_the_spawner(
    root: Path,
) -> None:
    spawner = Spawner(load_instance(root, "test", {}).digest)
    async with front(root, spawner=spawner) as (process, url), httpx2.AsyncClient(trust_env=False) as http:
        body = message("hold") | {"method": "message/stream"}
        events = []
        async with http.stream("POST", url, json=body, timeout=20) as response:
            async for line in response.aiter_lines():
                if line.startswith("data: "):
                    events.append(json.loads(line[6:])["result"])
                if spawner.holding.is_set() and process.returncode is None and len(events) == 2:
                    process.terminate()
                    await not_ready(http, url)
                    process.terminate()
        assert events[-1]["final"] is True
        assert events[-1]["status"]["message"]["parts"][0]["text"] == Messages().stopping
        async with asyncio.timeout(15):
            assert await process.wait() == 0
    assert spawner.deleted == 1


@pytest.mark.control("LOAD-03")
async def test_sigterm_leaves_a_turn_its_time_and_its_sender_the_answer(root: Path) -> None:
    spawner = Spawner(load_instance(root, "test", {}).digest)
    async with front(root, spawner=spawner) as (process, url), httpx2.AsyncClient(trust_env=False) as http:
        asking = asyncio.create_task(http.post(url, json=message("hold"), timeout=30))
        async with asyncio.timeout(20):
            await spawner.holding.wait()
            process.terminate()
            while True:
                late = (await http.post(url, json=message("hi"))).json()["result"]["status"]["message"]
                if late["parts"][0]["text"] == Messages().stopping:
                    break
            assert not asking.done()
            spawner.release.set()
            answer = (await asking).json()
            assert await process.wait() == 0
    assert answer["result"]["status"]["message"]["parts"][0]["text"] == "From the sandbox."
    assert late["metadata"]["gatehouse"]["outcome"] == "stopping"


async def not_ready(http: httpx2.AsyncClient, url: str) -> None:
    """Wait until a front has heard its signal."""
    while (await http.get(url + "/ready")).status_code == 200:
        pass  # each question takes a while


def run(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "runtime.server", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=60, env=environment() | extra
    )


def test_a_taken_port_is_one_sentence_and_exit_4(root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
        done = run("--agent", "test", "--root", str(root), "--port", port)
    assert done.returncode == 4
    assert done.stderr == (
        f"gatehouse: port-in-use: Port {port} on 127.0.0.1 is taken. (stop what uses it, or choose --port)\n"
    )


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("--agent", "nobody"), 3),
        (("--agent", "../test"), 3),
        (("--agent", "test", "--port", "99999"), 2),
        (("--agent", "test", "--sockets", "--port", "1"), 2),
        (("--agent", "test", "--host", "192.0.2.77"), 4),
        (("--agent", "test", "--host", "no.such.host.invalid"), 4),
        ((), 2),
    ],
)
def test_bad_input_is_a_sentence_and_its_exit_code_and_no_traceback(
    root: Path, arguments: tuple[str, ...], code: int
) -> None:
    done = run(*arguments, "--root", str(root))
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
    if arguments:  # argparse says the missing name itself
        assert all(line.startswith("gatehouse: ") for line in done.stderr.splitlines())


async def test_another_definition_at_the_spawner_is_exit_8(root: Path) -> None:
    spawner = Spawner("0" * 64)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "spawn.sock"
        async with serving(spawner.app(), path, grace_seconds=1):
            done = await asyncio.to_thread(
                run,
                "--agent",
                "test",
                "--root",
                str(root),
                "--port",
                str(free_port()),
                "--spawn-socket",
                str(path),
            )
    assert done.returncode == 8
    assert "another definition" in done.stderr
    assert "Traceback" not in done.stderr
