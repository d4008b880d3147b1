from __future__ import annotations

import json
import logging
import sys
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import structlog
from prometheus_client import CollectorRegistry, Counter
from starlette.applications import Starlette

from runtime import health, log
from runtime.ops import ops_socket, serving_ops
from runtime.serving import bind, serving

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("o")


async def ask(folder: Path, path: str) -> httpx2.Response:
    transport = httpx2.AsyncHTTPTransport(uds=str(ops_socket("demo", folder)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://ops") as client:
        return await client.get(path)


async def test_health_status_and_metrics_are_told_on_the_ops_socket(folder: Path) -> None:
    reasons: list[str | None] = [None, "no engine"]
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc()

    async def is_healthy() -> str | None:
        return reasons.pop(0)

    async def status() -> dict[str, Any]:
        return {"running": 3}

    async with serving_ops("demo", is_healthy, status, registry, folder):
        assert ops_socket("demo", folder).stat().st_mode & 0o777 == 0o660
        assert (await ask(folder, "/health")).json() == {"status": "ok", "service": "demo"}
        ill = await ask(folder, "/health")
        assert (ill.status_code, ill.json()["reason"]) == (503, "no engine")
        assert (await ask(folder, "/status")).json() == {"service": "demo", "running": 3}
        assert "things_total 1.0" in (await ask(folder, "/metrics")).text
    assert not ops_socket("demo", folder).exists()


def test_a_healthcheck_fails_in_one_line_when_nobody_answers(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("runtime.layout.OPS", folder)
    assert health.main(["demo"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert health.main([]) == 2


async def test_a_socket_left_by_a_dead_process_is_replaced_and_a_file_is_not(folder: Path) -> None:
    bind(folder / "a.sock").close()
    async with serving(Starlette(), folder / "a.sock"):
        assert (folder / "a.sock").is_socket()
    (folder / "b.sock").write_text("mine")
    with pytest.raises(FileExistsError):
        bind(folder / "b.sock")
    assert (folder / "b.sock").read_text() == "mine"


def test_logs_are_json_lines_with_the_services_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    handlers = logging.getLogger().handlers[:]
    monkeypatch.setattr(sys.stderr, "isatty", lambda: False)
    try:
        log.configure("demo")
        structlog.get_logger().info("ready", port=1)
        logging.getLogger("uvicorn.error").warning("odd %s", "thing")
    finally:
        logging.getLogger().handlers[:] = handlers
        structlog.reset_defaults()
        structlog.contextvars.clear_contextvars()
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["service"], line["event"], line["level"]) for line in lines] == [
        ("demo", "ready", "info"),
        ("demo", "odd thing", "warning"),
    ]
    assert lines[0]["port"] == 1
