"""The front as deployed: two Unix sockets and an ops socket, no port; and the ingress before it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import stat
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

from runtime.agents.instance import load_instance
from runtime.ingress.forward import Forwarder
from runtime.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.requests import Request

# The paths are the deployment's own; only their folder is another one here.
START = """
import os, sys
from pathlib import Path
from runtime import layout
here = Path(sys.argv[1])
layout.FRONT_LOCAL_SOCKET = here / "local.sock"
layout.FRONT_TUNNEL_SOCKET = here / "tunnel.sock"
layout.OPS = here
from runtime.server import main
sys.exit(main(["--agent", "test", "--root", sys.argv[1], "--spawn-socket", str(here / "spawn.sock")],
              {**os.environ, "GATEHOUSE_SOCKETS": "1"}))
"""


def make_instance(root: Path) -> str:
    (root / "grounding").mkdir()
    (root / "grounding" / "fact.md").write_text("A fact.\n")
    folder = root / "instances" / "test"
    (folder / "tools").mkdir(parents=True)
    (folder / "agent.yaml").write_text("name: Test\ndescription: A test.\ngrounding_dir: grounding\n")
    (folder / "system-prompt.md").write_text("You are a test.\n")
    return load_instance(root, "test", {}).digest


def spawner(root: Path, visitors: list[str]) -> Starlette:
    async def agent(_request: Request) -> Response:
        digest = (root / "served").read_text()
        return JSONResponse({"id": "test", "digest": digest, "pack": "p" * 64, "demo": False})

    async def turns(request: Request) -> Response:
        visitors.append((await request.json())["visitor"])
        data = json.dumps({"type": "result", "is_error": False, "result": "Fine."})
        lines = [{"event": "line", "data": data}, {"event": "end", "reason": "exited", "exit_code": 0}]
        body = "".join(json.dumps(line) + "\n" for line in lines)
        return StreamingResponse(iter([body.encode()]), media_type="application/x-ndjson")

    return Starlette(routes=[Route("/agents/{agent}", agent), Route("/turns", turns, methods=["POST"])])


@contextlib.asynccontextmanager
async def deployed() -> AsyncGenerator[tuple[Path, list[str]], None]:
    visitors: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        here = Path(name)
        (here / "served").write_text(make_instance(here))
        async with serving(spawner(here, visitors), here / "spawn.sock", grace_seconds=1):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", START, name, stderr=subprocess.PIPE
            )
            assert process.stderr is not None
            try:
                async with asyncio.timeout(30):
                    while b'"serving"' not in (line := await process.stderr.readline()):
                        assert line, "the front ended"
                yield here, visitors
            finally:
                process.terminate()
                await process.communicate()
        assert process.returncode == 0


def over(path: Path) -> httpx2.AsyncClient:
    transport = httpx2.AsyncHTTPTransport(uds=str(path))
    return httpx2.AsyncClient(transport=transport, base_url="http://front", trust_env=False)


def message() -> dict[str, Any]:
    part = {"kind": "text", "text": "hi"}
    said = {"kind": "message", "role": "user", "messageId": "m", "parts": [part]}
    return {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": {"message": said}}


@pytest.mark.control("ADDR-01")
async def test_both_sockets_answer_and_only_the_tunnel_s_forwarded_addresses_count() -> None:
    async with (
        deployed() as (here, visitors),
        over(here / "local.sock") as local,
        over(here / "tunnel.sock") as tunnel,
    ):
        assert stat.S_IMODE((here / "local.sock").stat().st_mode) == 0o660
        assert stat.S_IMODE((here / "tunnel.sock").stat().st_mode) == 0o666
        for client, address in (
            (local, "203.0.113.1"),
            (local, "203.0.113.2"),
            (tunnel, "203.0.113.1"),
            (tunnel, "203.0.113.2"),
            (tunnel, "203.0.113.1"),
        ):
            answer = await client.post("/", json=message(), headers={"CF-Connecting-IP": address})
            assert answer.json()["result"]["status"]["message"]["parts"][0]["text"] == "Fine."
        assert visitors[0] == visitors[1]
        assert visitors[2] == visitors[4]
        assert len({visitors[0], visitors[2], visitors[3]}) == 3
        assert not any("203.0.113" in visitor for visitor in visitors)


async def test_detail_and_metrics_are_on_the_ops_socket_alone() -> None:
    async with (
        deployed() as (here, _visitors),
        over(here / "front.sock") as ops,
        over(here / "local.sock") as local,
    ):
        await local.post("/", json=message())
        assert (await ops.get("/health")).json()["status"] == "ok"
        assert (await ops.get("/status")).json()["agent"] == "test"
        metrics = (await ops.get("/metrics")).text
        assert 'gatehouse_turns_total{agent="test",cause="",outcome="answered"} 1.0' in metrics
        for path in ("/metrics", "/status"):
            assert (await local.get(path)).status_code == 404
        assert (await local.get("/ready")).json() == {"status": "ready"}


@pytest.mark.control("OPS-01")
async def test_an_operator_s_reload_swaps_the_card_and_every_failure_leaves_it() -> None:
    async with (
        deployed() as (here, _visitors),
        over(here / "front.sock") as ops,
        over(here / "local.sock") as local,
    ):
        card = "/.well-known/agent-card.json"
        file = here / "instances" / "test" / "agent.yaml"
        first = (await local.get(card)).content
        started = (await ops.get("/status")).json()
        assert started["digest"] == (here / "served").read_text()
        assert (started["pack"], started["running"], started["reason"]) == ("p" * 64, 0, None)
        file.write_text(file.read_text() + "unknown_key: 1\nport: none\n")
        answer = await ops.post("/reload")
        assert (answer.status_code, answer.json()["error"]) == (422, "config-invalid")
        assert [problem["path"] for problem in answer.json()["problems"]] == ["unknown_key", "port"]
        file.write_text("name: Test\ndescription: Anew.\ngrounding_dir: grounding\nport: 9000\n")
        answer = await ops.post("/reload")
        assert (answer.status_code, answer.json()["error"]) == (409, "definition-mismatch")
        assert (await local.get(card)).content == first
        assert (await ops.get("/status")).json() == started
        digest = load_instance(here, "test", {}).digest
        (here / "served").write_text(digest)
        answer = await ops.post("/reload")
        assert answer.status_code == 200
        assert answer.json() == {"agent": "test", "digest": digest, "changed": True, "restart": ["port"]}
        after = (await local.get(card)).json()
        assert after["description"].startswith("Anew.")
        assert after["url"] == json.loads(first)["url"]
        status = (await ops.get("/status")).json()
        assert (status["digest"], status["spawner_digest"]) == (digest, digest)
        assert status["loaded_at"] > started["loaded_at"]
        assert (await local.post("/reload")).status_code == 404
        assert (await ops.get("/reload")).status_code == 405


@pytest.mark.control("OPS-01")
async def test_an_operator_has_a_task_forgotten_and_no_visitor_s_socket_can() -> None:
    async with (
        deployed() as (here, _visitors),
        over(here / "front.sock") as ops,
        over(here / "local.sock") as local,
        over(here / "tunnel.sock") as tunnel,
    ):
        task = (await local.post("/", json=message())).json()["result"]["id"]
        for visitor in (local, tunnel):
            for method in ("POST", "GET", "PUT", "DELETE"):
                assert (await visitor.request(method, "/forget", json={"all": True})).status_code == 404
            asked = {"jsonrpc": "2.0", "id": 1, "method": "forget", "params": {"task": task}}
            assert (await visitor.post("/", json=asked)).json()["error"]["code"] == -32601
        forgotten = await ops.post("/forget", json={"task": task.upper()})
        assert forgotten.json() == {"contexts": 1, "tasks": 1, "cancelled": 0}
        assert (await ops.get("/forget")).status_code == 405
        asked = {"jsonrpc": "2.0", "id": 1, "method": "tasks/get", "params": {"id": task}}
        assert (await local.post("/", json=asked)).json()["error"]["code"] == -32001


async def test_a_stream_comes_whole_through_the_ingress() -> None:
    async with deployed() as (here, _visitors):
        forwarder = Forwarder(here / "local.sock")
        await forwarder.start("127.0.0.1", 0)
        url = f"http://127.0.0.1:{forwarder.port}"
        async with httpx2.AsyncClient(trust_env=False) as http:
            assert (await http.get(url + "/health")).json() == {"status": "ok", "agent": "test"}
            async with http.stream("POST", url, json=message() | {"method": "message/stream"}) as response:
                text = (await response.aread()).decode()
        events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: ")]
        assert events[0]["result"]["kind"] == "task"
        assert events[-1]["result"]["final"] is True
        await forwarder.stop(0)
