"""Browsers and addresses over real HTTP: whose pages read answers, and that no request names our server."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from runtime.front import card, security_txt
from runtime.front.wire import SECURITY_HEADERS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

GOOD = "https://good.example"
FOREIGN = (
    "https://evil.example",
    "null",
    "*",
    "http://good.example",
    "https://good.example.evil.example",
    "https://good.example:8443",
    "https://GOOD.example",
    "https://good.example/",
)
DIALECTS = {"message/send": None, "SendMessage": "1.0"}


@pytest.fixture
async def pages(kit: Any) -> AsyncIterator[Any]:
    plain = kit.definition()
    origins = (GOOD, "http://127.0.0.1:3000")
    agent = replace(plain, network=replace(plain.network, cors_origins=origins))
    async with kit.serving(kit.Runner(), agent) as front:
        yield front


def preflight(origin: str, headers: str = "content-type,a2a-version") -> dict[str, str]:
    return {
        "origin": origin,
        "access-control-request-method": "POST",
        "access-control-request-headers": headers,
    }


async def post(front: Any, kit: Any, method: str, **headers: str) -> Any:
    version = DIALECTS[method]
    params = (kit.message03 if version is None else kit.message10)("hi")
    if version is not None:
        headers["A2A-Version"] = version
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await front.http.post("/", json=body, headers=headers)


@pytest.mark.parametrize("path", ["/", "/.well-known/agent-card.json", "/health"])
async def test_a_preflight_of_a_configured_origin_allows_what_both_dialects_send(
    pages: Any, path: str
) -> None:
    answer = await pages.http.options(path, headers=preflight(GOOD))
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == GOOD
    assert answer.headers["access-control-allow-methods"] == "GET, POST, OPTIONS"
    allowed = answer.headers["access-control-allow-headers"].split(", ")
    assert allowed == ["content-type", "a2a-version", "a2a-extensions"]
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.content == b""


@pytest.mark.parametrize("method", list(DIALECTS))
async def test_a_page_of_a_configured_origin_reads_answers_and_errors(
    pages: Any, kit: Any, method: str
) -> None:
    answer = await post(pages, kit, method, origin=GOOD)
    assert answer.json()["result"]
    for one in (
        answer,
        await pages.http.get("/nope", headers={"origin": GOOD}),
        await pages.http.post("/", content=b"x", headers={"origin": GOOD}),
        await pages.http.get(card.PATHS[0], headers={"origin": GOOD}),
    ):
        assert one.headers["access-control-allow-origin"] == GOOD
        assert one.headers["vary"] == "Origin"


@pytest.mark.control("WIRE-04")
@pytest.mark.parametrize("origin", FOREIGN)
async def test_a_foreign_origin_is_told_nothing(pages: Any, kit: Any, origin: str) -> None:
    refused = await pages.http.options("/", headers=preflight(origin))
    assert refused.status_code == 403
    # What needs no preflight is refused by its content type (test_bounds.py). A browser sends the rest only
    # after the preflight, so this POST is no browser's, and is answered like any program's.
    posted = await post(pages, kit, "message/send", origin=origin)
    assert posted.json()["result"]["status"]["state"] == "completed"
    for answer in (refused, posted, await pages.http.get("/health", headers={"origin": origin})):
        assert answer.headers["vary"] == "Origin"
        assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_who_sends_no_origin_gets_no_permission_and_the_same_vary(pages: Any) -> None:
    answer = await pages.http.get(card.PATHS[0])
    assert answer.headers["vary"] == "Origin"
    assert "access-control-allow-origin" not in answer.headers


async def test_without_configured_origins_there_is_no_cors(front: Any) -> None:
    answer = await front.http.options("/", headers=preflight(GOOD))
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control-")]


async def test_every_answer_has_the_security_headers(pages: Any, kit: Any) -> None:
    http = pages.http
    json_type = {"content-type": "application/json"}
    answers = [
        await http.get("/health"),
        await http.head("/health"),
        await http.get("/ready"),
        await http.get(card.PATHS[0]),
        await http.get(card.PATHS[0], headers={"if-none-match": "*"}),
        await http.get(security_txt.PATH),
        await http.get("/nope"),
        await http.get("/"),
        await http.delete("/health"),
        await http.options("/", headers=preflight(GOOD)),
        await http.options("/", headers=preflight("https://evil.example")),
        await http.post("/", content=b"x"),
        await http.post("/", content=b"x", headers=json_type),
        await http.post("/", content=b"x" * 100_000, headers=json_type),
        await http.get("/health?" + "x" * 20_000),
        await http.get("/health%0A"),
        await post(pages, kit, "SendMessage"),
    ]
    assert [one.status_code for one in answers] == [
        *(200, 200, 200, 200, 304, 404, 404, 405, 405),
        *(200, 403, 415, 200, 413, 431, 404, 200),
    ]
    for answer in answers:
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name] == value
        assert answer.headers["cache-control"] in {"no-store", card.CACHE_CONTROL}
        assert "server" not in answer.headers
        assert answer.headers.get("content-type", "application/json").startswith("application/json")


async def test_a_stream_and_a_bug_have_the_security_headers_too(
    pages: Any, kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": kit.message03("hi")}
    answers = [await pages.http.post("/", json=body)]

    def broken(_self: Any) -> Any:
        raise RuntimeError("CANARY")

    monkeypatch.setattr(type(pages.current), "now", property(broken))
    answers.append(await pages.http.get(card.PATHS[0]))
    assert [one.status_code for one in answers] == [200, 500]
    assert answers[1].json() == {"error": "Internal Server Error"}
    for answer in answers:
        for name, value in SECURITY_HEADERS.items():
            assert answer.headers[name] == value


HOSTILE = (
    b"evil.example",
    b"evil.example:99999",
    b"127.0.0.1:1@evil.example",
    b"[::1",
    b"a\tb",
    b'"><script>',
)


@pytest.mark.control("WIRE-04")
@pytest.mark.parametrize("host", HOSTILE)
async def test_no_answer_is_made_of_what_a_request_calls_its_host(front: Any, host: bytes) -> None:
    wanted = (await front.http.get(card.PATHS[0])).content
    extra = b"x-forwarded-host: evil.example\r\nx-forwarded-proto: gopher\r\nforwarded: host=evil.example\r\n"
    for path in (*card.PATHS, "/", "//evil.example", "/nope/", "/.well-known/", "/health/"):
        request = b"GET %s HTTP/1.1\r\nhost: %s\r\n%sconnection: close\r\n\r\n" % (path.encode(), host, extra)
        answer = await front.spoken(request)
        assert b"evil" not in answer
        assert b"location" not in answer.lower()
        if path in card.PATHS:
            assert answer.endswith(wanted)


async def test_an_absolute_target_is_no_path_of_ours(front: Any, kit: Any) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": kit.message03("hi")})
    head = "POST http://evil.example/ HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    answer = await front.spoken(
        f"{head}connection: close\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode()
    )
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"evil" not in answer
    assert front.runner.plans == []


@pytest.mark.control("WIRE-03", "WIRE-04")
@pytest.mark.parametrize("path", ["/%0A", "/%0a", "//", "/%2F", "/.", "/;x", "/%00", "/\\"])
async def test_no_spelling_of_the_endpoint_goes_round_the_gate(front: Any, kit: Any, path: str) -> None:
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": kit.message03("hi")})
    request = f"POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\nconnection: close\r\n"
    answer = await front.spoken(f"{request}content-length: {len(body)}\r\n\r\n{body}".encode())
    assert answer.startswith((b"HTTP/1.1 404 ", b"HTTP/1.1 400 "))
    assert front.runner.plans == []
