"""The command that asks `ops/<service>.sock`: what it sends, what it prints, how it exits."""

from __future__ import annotations

import ast
import asyncio
import io
import sys
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route

from runtime import health
from runtime.serving import serving


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("o")
    monkeypatch.setattr("runtime.layout.OPS", folder)
    return folder


class Service:
    """Answers every question with one status, and keeps what was asked."""

    def __init__(self, status: int = 200, body: str = '{"status":"ok"}') -> None:
        self.status = status
        self.body = body
        self.asked: list[str] = []
        self.bodies: list[bytes] = []

    def app(self) -> Starlette:
        async def answer(request: Any) -> Response:
            query = f"?{request.url.query}" if request.url.query else ""
            self.asked.append(f"{request.method} {request.url.path}{query}")
            self.bodies.append(await request.body())
            return Response(self.body, self.status, media_type="application/json")

        return Starlette(routes=[Route("/{path}", answer, methods=["GET", "POST"])])


async def run(folder: Path, service: Service, *words: str) -> int:
    async with serving(service.app(), folder / "demo.sock"):
        return await asyncio.to_thread(health.main, ["demo", *words])


@pytest.mark.parametrize(
    ("words", "asked"),
    [
        ((), "GET /health"),
        (("health",), "GET /health"),
        (("status",), "GET /status?stale=1"),
        (("metrics",), "GET /metrics"),
        (("reload",), "POST /reload"),
        (("forget",), "POST /forget"),
    ],
)
async def test_each_word_is_one_question_and_its_answer_is_printed(
    folder: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    asked: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO()))
    service = Service(body='{"known":"ö"}')
    assert await run(folder, service, *words) == 0
    assert service.asked == [asked]
    assert capsys.readouterr() == ('{"known":"ö"}\n', "")


@pytest.mark.parametrize(
    ("status", "code"),
    [(200, 0), (204, 0), (400, 2), (422, 3), (409, 8), (503, 1), (404, 1), (500, 1), (302, 1)],
)
async def test_the_exit_code_says_how_it_went_and_the_body_is_on_stdout_either_way(
    folder: Path, capsys: pytest.CaptureFixture[str], status: int, code: int
) -> None:
    body = "" if status == 204 else '{"error":"x"}'
    assert await run(folder, Service(status, body), "reload") == code
    assert capsys.readouterr() == (f"{body}\n", "")


async def test_what_is_to_be_forgotten_is_read_from_stdin_and_no_other_question_reads_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stdin = io.BytesIO(b'{"all": true}')
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(stdin))
    service = Service()
    assert await run(folder, service, "status") == 0
    assert stdin.tell() == 0
    assert await run(folder, service, "forget") == 0
    assert service.bodies == [b"", b'{"all": true}']


async def test_a_long_answer_is_printed_whole(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "x" * 3_000_000
    assert await run(folder, Service(body=body), "metrics") == 0
    assert capsys.readouterr().out == f"{body}\n"


def test_a_healthcheck_fails_in_one_line_when_nobody_answers(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert health.main(["demo"]) == 1
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert str(folder) in said.err


@pytest.mark.parametrize("words", [[], ["demo", "restart"], ["demo", "health", "more"]])
def test_wrong_usage_is_exit_2_and_names_the_words(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert health.main(words) == 2
    assert "[health|status|metrics|reload|forget]" in capsys.readouterr().err


def test_a_healthcheck_waits_less_than_the_engine_lets_it() -> None:
    assert health.QUESTIONS["health"].seconds < 5


def test_it_needs_the_standard_library_and_the_layout_alone() -> None:
    tree = ast.parse(Path(health.__file__).read_text())
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert {name for name in names if name.partition(".")[0] not in sys.stdlib_module_names} == {"runtime"}
