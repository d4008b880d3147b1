"""Refusals over HTTP: codes, fixed sentences, and nothing of the request or of an exception in them."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher

from runtime.front.tasks import BoundedTaskStore
from runtime.front.wire import body_max_bytes

CANARY = "CANARY-value-5150"


async def raw(front: Any, body: bytes, **headers: str) -> Any:
    return await front.http.post("/", content=body, headers={"content-type": "application/json"} | headers)


@pytest.mark.control("WIRE-02")
async def test_listing_tasks_is_refused_in_both_dialects(front: Any) -> None:
    await front.ask("hello")
    refused = await front.rpc("ListTasks", {}, version="1.0")
    assert refused["error"]["code"] == -32004
    assert refused["error"]["data"][0]["reason"] == "UNSUPPORTED_OPERATION"
    assert (await front.rpc("tasks/list", {}))["error"]["code"] == -32601


@pytest.mark.parametrize(
    ("method", "version", "given", "expected"),
    [
        ("SendMessage", None, "0.3", "1.0"),
        ("SendStreamingMessage", "0.3", "0.3", "1.0"),
        ("message/send", "1.0", "1.0", "0.3"),
        ("message/stream", "1.0", "1.0", "0.3"),
        ("tasks/get", f"x{CANARY}", "unknown", "0.3"),
    ],
)
async def test_a_version_mismatch_is_32009_with_typed_data_in_both_directions(
    front: Any, kit: Any, method: str, version: str | None, given: str, expected: str
) -> None:
    answer = await front.rpc(method, kit.message03("x"), version=version)
    error = answer["error"]
    assert error["code"] == -32009
    assert f"'{given}'" in error["message"]
    assert f"'{expected}'" in error["message"]
    assert error["data"] == [
        {
            "@type": "type.googleapis.com/google.rpc.ErrorInfo",
            "reason": "VERSION_NOT_SUPPORTED",
            "domain": "a2a-protocol.org",
            "metadata": {},
        }
    ]
    assert CANARY not in json.dumps(answer)


@pytest.mark.control("WIRE-01")
@pytest.mark.parametrize(
    ("method", "params", "version", "code"),
    [
        ("tasks/get", {"id": CANARY}, None, -32001),
        ("GetTask", {"id": CANARY}, "1.0", -32001),
        ("tasks/get", {"wrong": CANARY}, None, -32602),
        ("tasks/get", CANARY, None, -32602),
        ("GetTask", CANARY, "1.0", -32602),
        ("message/send", {"message": {"role": CANARY, "parts": [{"kind": CANARY}]}}, None, -32602),
        ("message/stream", {"message": {"role": CANARY}}, None, -32602),
        ("SendMessage", {"message": {"role": CANARY}}, "1.0", -32602),
        ("SendMessage", {"message": {"role": "ROLE_USER", "parts": CANARY}}, "1.0", -32602),
        (CANARY, {}, None, -32601),
        ("tasks/pushNotificationConfig/get", {"id": CANARY}, None, -32003),
        (
            "CreateTaskPushNotificationConfig",
            {"taskId": CANARY, "url": "http://169.254.169.254/"},
            "1.0",
            -32003,
        ),
        ("GetExtendedAgentCard", {}, "1.0", -32004),
        ("tasks/resubscribe", {"id": 5}, None, -32602),
        ("tasks/get", {"id": CANARY * 100}, None, -32602),
    ],
)
async def test_errors_carry_the_code_and_nothing_of_the_request(
    front: Any, method: str, params: Any, version: str | None, code: int
) -> None:
    answer = await front.rpc(method, params, version=version)
    assert answer["error"]["code"] == code
    assert answer["id"] == 1
    text = json.dumps(answer)
    assert CANARY not in text
    assert "Traceback" not in text
    assert "pydantic" not in text


@pytest.mark.control("WIRE-01")
async def test_a_stream_s_error_is_cleaned_too(front: Any) -> None:
    events = [event async for event in front.events("tasks/resubscribe", {"id": CANARY})]
    assert [event["error"]["code"] for event in events] == [-32001]
    assert CANARY not in json.dumps(events)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b'"text"', -32600),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tasks/get"}]', -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"tasks/get","params":{"id":"x"}}', -32600),
        (b'{"id":' + b"[" * 5000 + b"]" * 5000 + b"}", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"\\ud800"}}', -32602),
    ],
)
async def test_malformed_requests_get_their_json_rpc_code_with_http_200(
    front: Any, body: bytes, code: int
) -> None:
    answer = await raw(front, body)
    assert answer.status_code == 200
    assert answer.json()["error"]["code"] == code


async def test_a_lone_surrogate_is_an_error_or_an_answer_and_never_an_exception_text(front: Any) -> None:
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message","role":"user",'
        b'"messageId":"m","parts":[{"kind":"text","text":"\\ud800"}]}}}'
    )
    answer = await raw(front, body)
    assert answer.status_code == 200
    assert b"codec" not in answer.content


@pytest.mark.control("WIRE-03")
@pytest.mark.parametrize(
    "kind", ["text/plain", "", "application/x-www-form-urlencoded", "multipart/form-data"]
)
async def test_another_content_type_is_415_and_runs_nothing(front: Any, kit: Any, kind: str) -> None:
    body = json.dumps(
        {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": kit.message03("x")}
    ).encode()
    answer = await front.http.post("/", content=body, headers={"content-type": kind})
    assert answer.status_code == 415
    assert answer.json()["error"]["code"] == -32600
    assert front.runner.plans == []


@pytest.mark.control("WIRE-03")
async def test_a_body_over_the_cap_is_413_with_and_without_a_length(front: Any) -> None:
    assert body_max_bytes(front.agent.limits.max_input_chars) == 64 * 1024
    assert (await raw(front, b"x" * (64 * 1024 + 1))).status_code == 413

    async def chunks() -> Any:
        for _ in range(6):
            yield b"x" * 16384

    answer = await front.http.post("/", content=chunks(), headers={"content-type": "application/json"})
    assert answer.status_code == 413
    assert (await raw(front, b" " * (64 * 1024 - 1) + b"{")).json()["error"]["code"] == -32700


async def test_a_message_of_the_longest_length_passes_however_it_is_escaped(kit: Any) -> None:
    agent = kit.definition(max_input_chars=20_000)
    async with kit.serving(kit.Runner(), agent) as front:
        body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": kit.message03("🎉" * 20_000)}
        sent = json.dumps(body, ensure_ascii=True).encode()
        assert len(sent) > 12 * 20_000
        assert (await raw(front, sent)).json()["result"]["status"]["state"] == "completed"
        assert front.runner.prompt()[-1]["text"] == "🎉" * 20_000


HOSTILE = {"a": [0] * 80_000}
FILLED = {"a": [0] * 1500}


def hostile(kit: Any) -> list[tuple[str, bytes]]:
    """Return what one visitor may send to make the front work or remember: version and body."""
    bodies = []
    for big in (HOSTILE, FILLED):
        for version, method, message in (
            ("", "message/send", kit.message03),
            ("", "message/stream", kit.message03),
            ("1.0", "SendMessage", kit.message10),
            ("1.0", "SendStreamingMessage", kit.message10),
        ):
            part = {"text": ""} if version else {"kind": "text", "text": ""}
            bodies += [
                (version, method, message("", message={"metadata": big})),
                (version, method, message("", metadata=big)),
                (version, method, message("", message={"parts": [part | {"metadata": big}]})),
                (version, method, message("", message={"extensions": ["x"] * len(big["a"])})),
                (version, method, message("", message={"parts": [part] * 20_000})),
                (version, method, message("x" * 250_000)),
            ]
        for version, method in (("", "tasks/get"), ("", "tasks/cancel"), ("1.0", "GetTask"), ("1.0", "nope")):
            bodies.append((version, method, {"id": "t", "metadata": big}))
    return [
        (version, json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode())
        for version, method, params in bodies
    ]


@pytest.mark.control("WIRE-03")
async def test_no_body_makes_the_sdk_see_or_the_store_keep_much(
    kit: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bytes] = []
    kept: list[int] = []
    handle = JsonRpcDispatcher.handle_requests
    save = BoundedTaskStore.save

    async def spy(self: Any, request: Any) -> Any:
        seen.append(await request.body())
        assert len(request.headers) <= 4
        return await handle(self, request)

    async def spy_save(self: Any, task: Any, context: Any) -> None:
        await save(self, task, context)
        kept.append(task.ByteSize())

    monkeypatch.setattr(JsonRpcDispatcher, "handle_requests", spy)
    monkeypatch.setattr(BoundedTaskStore, "save", spy_save)
    extra = {"x-more": "y" * 8000, "a2a-extensions": ",".join(f"https://example.org/{n}" for n in range(200))}
    async with kit.serving(kit.Runner(), kit.definition(max_input_chars=3000)) as front:

        async def send(version: str, body: bytes) -> int:
            headers = extra | ({"A2A-Version": version} if version else {})
            return int((await raw(front, body, **headers)).status_code)

        sending = [asyncio.create_task(send(*one)) for one in hostile(kit)]
        health = [(await front.http.get("/health")).status_code for _ in range(10)]
        statuses = await asyncio.gather(*sending)
        too_long = await front.ask("x" * 40_000)
        assert front.runner.plans == []
    assert set(health) == {200}
    assert set(statuses) == {200, 413}
    assert seen
    assert max(body.count(b",") for body in seen) < 20
    assert too_long["status"]["state"] == "completed"
    assert len(too_long["history"][0]["parts"][0]["text"]) == 3000
    assert max(kept) < 5000


async def test_the_history_of_a_task_holds_the_text_alone(front: Any) -> None:
    task = await front.ask("hello", message={"metadata": {"a": CANARY}, "extensions": [CANARY]})
    again = (await front.rpc("tasks/get", {"id": task["id"]}))["result"]
    assert CANARY not in json.dumps([task, again])
    assert again["history"][0]["parts"] == [{"kind": "text", "text": "hello"}]


async def test_parts_that_are_no_text_are_refused_in_both_dialects(front: Any, kit: Any) -> None:
    file = {"kind": "file", "file": {"uri": "file:///etc/passwd"}}
    answer = await front.rpc("message/send", kit.message03("x", message={"parts": [file]}))
    assert answer["error"]["code"] == -32005
    newer = kit.message10("x", message={"parts": [{"text": "x"}, {"data": {"a": 1}}]})
    assert (await front.rpc("SendMessage", newer, version="1.0"))["error"]["code"] == -32005
    assert front.runner.plans == []


async def test_only_configured_origins_may_read_answers(kit: Any) -> None:
    plain = kit.definition()
    agent = replace(plain, network=replace(plain.network, cors_origins=("https://good.example",)))
    async with kit.serving(kit.Runner(), agent) as front:
        wanted = {
            "access-control-request-method": "POST",
            "access-control-request-headers": "content-type,a2a-version,a2a-extensions",
        }
        good = await front.http.options("/", headers={"origin": "https://good.example"} | wanted)
        assert good.status_code == 200
        assert good.headers["access-control-allow-origin"] == "https://good.example"
        assert "a2a-version" in good.headers["access-control-allow-headers"].lower()
        assert "access-control-allow-credentials" not in good.headers
        bad = await front.http.options("/", headers={"origin": "https://evil.example"} | wanted)
        assert "access-control-allow-origin" not in bad.headers
        cross = await front.http.get("/health", headers={"origin": "https://evil.example"})
        assert "access-control-allow-origin" not in cross.headers


async def test_a_preflight_is_refused_when_no_origin_is_configured(front: Any) -> None:
    answer = await front.http.options("/", headers={"origin": "https://x.example"})
    assert answer.status_code == 405


async def test_get_on_the_endpoint_is_405(front: Any) -> None:
    assert (await front.http.get("/")).status_code == 405
