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

from runtime import log
from runtime.errors import (
    ConfigError,
    DefinitionMismatch,
    HostError,
    Problem,
    ServiceUnreachable,
    UsageError,
)
from runtime.ops import FORGET_MAX_BYTES, ops_socket, serving_ops
from runtime.serving import bind, serving

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.errors import GatehouseError


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("o")


async def healthy() -> str | None:
    return None


async def nothing() -> dict[str, Any]:
    return {}


async def ask(folder: Path, path: str, method: str = "GET", content: bytes = b"") -> httpx2.Response:
    transport = httpx2.AsyncHTTPTransport(uds=str(ops_socket("demo", folder)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://ops") as client:
        return await client.request(method, path, content=content)


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


async def test_what_takes_a_while_is_told_only_to_who_asks_for_it(folder: Path) -> None:
    async def status() -> dict[str, Any]:
        return {"running": 3}

    async def status_with_stale() -> dict[str, Any]:
        return {"running": 3, "stale": True}

    async with serving_ops(
        "demo", healthy, status, CollectorRegistry(), folder, status_with_stale=status_with_stale
    ):
        for path in ("/status", "/status?stale=0", "/status?stale"):
            assert (await ask(folder, path)).json() == {"service": "demo", "running": 3}
        assert (await ask(folder, "/status?stale=1")).json()["stale"] is True


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (
            ConfigError((Problem("a.yaml", 1, 2, "x", "is wrong", "mend it"),)),
            422,
            {
                "error": "config-invalid",
                "problems": [
                    {
                        "file": "a.yaml",
                        "line": 1,
                        "col": 2,
                        "path": "x",
                        "message": "is wrong",
                        "mend": "mend it",
                    }
                ],
            },
        ),
        (
            DefinitionMismatch("They differ.", "reload both"),
            409,
            {"error": "definition-mismatch", "detail": "They differ. (reload both)"},
        ),
        (
            ServiceUnreachable("Nobody answers."),
            503,
            {"error": "service-unreachable", "detail": "Nobody answers."},
        ),
        (HostError("No space."), 503, {"error": "host-not-ready", "detail": "No space."}),
    ],
)
async def test_a_reload_answers_how_it_went(
    folder: Path, error: GatehouseError, status: int, body: dict[str, Any]
) -> None:
    fails = [True]

    async def reload() -> dict[str, Any]:
        if fails:
            fails.pop()
            raise error
        return {"changed": False}

    async with serving_ops("demo", healthy, nothing, CollectorRegistry(), folder, reload=reload):
        failed = await ask(folder, "/reload", "POST")
        assert (failed.status_code, failed.json()) == (status, body)
        done = await ask(folder, "/reload", "POST")
        assert (done.status_code, done.json()) == (200, {"changed": False})


async def test_a_service_without_a_reload_has_none_and_no_other_method_asks_for_one(folder: Path) -> None:
    async with serving_ops("demo", healthy, nothing, CollectorRegistry(), folder):
        assert (await ask(folder, "/reload", "POST")).status_code == 404
    async with serving_ops("demo", healthy, nothing, CollectorRegistry(), folder, reload=nothing):
        assert (await ask(folder, "/reload")).status_code == 405


@pytest.mark.parametrize(
    ("error", "status", "body"),
    [
        (UsageError("No id.", "give one"), 400, {"error": "usage", "detail": "No id.", "mend": "give one"}),
        (
            ServiceUnreachable("A turn did not end."),
            503,
            {"error": "service-unreachable", "detail": "A turn did not end.", "mend": ""},
        ),
    ],
)
async def test_what_is_forgotten_is_told_and_so_is_why_nothing_was(
    folder: Path, error: GatehouseError, status: int, body: dict[str, str]
) -> None:
    bodies: list[bytes] = []

    async def forget(untrusted_body: bytes) -> dict[str, int]:
        bodies.append(untrusted_body)
        if len(bodies) == 1:
            raise error
        return {"tasks": 1}

    async with serving_ops("demo", healthy, nothing, CollectorRegistry(), folder, forget=forget):
        failed = await ask(folder, "/forget", "POST", b"one")
        assert (failed.status_code, failed.json()) == (status, body)
        done = await ask(folder, "/forget", "POST", b"two")
        assert (done.status_code, done.json(), bodies) == (200, {"tasks": 1}, [b"one", b"two"])
        long = await ask(folder, "/forget", "POST", b"x" * (FORGET_MAX_BYTES + 1))
        assert (long.status_code, len(bodies)) == (400, 2)
        assert (await ask(folder, "/forget")).status_code == 405
    async with serving_ops("demo", healthy, nothing, CollectorRegistry(), folder):
        assert (await ask(folder, "/forget", "POST")).status_code == 404


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
