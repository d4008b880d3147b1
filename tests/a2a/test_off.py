"""What is not served: push, extended card, REST, gRPC, WebSockets. Each says so and runs nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runtime.front.dialects import METHODS, V03_METHODS

INLINE = {
    "message/send": "pushNotificationConfig",
    "message/stream": "pushNotificationConfig",
    "SendMessage": "taskPushNotificationConfig",
    "SendStreamingMessage": "taskPushNotificationConfig",
}
REST = (
    ("POST", "/message:send"),
    ("POST", "/message:stream"),
    ("POST", "/v1/message:send"),
    ("POST", "/v1/message:stream"),
    ("POST", "/tenant/message:send"),
    ("GET", "/tasks"),
    ("GET", "/v1/tasks"),
    ("GET", "/v1/tasks/x"),
    ("GET", "/tasks/x:subscribe"),
    ("POST", "/v1/tasks/x:cancel"),
    ("GET", "/v1/card"),
    ("GET", "/extendedAgentCard"),
    ("GET", "/docs"),
    ("POST", "/lf.a2a.v1.A2AService/SendMessage"),
    ("POST", "/a2a.v1.A2AService/SendMessage"),
)


def version(method: str) -> str | None:
    return None if method in V03_METHODS else "1.0"


@pytest.mark.parametrize("method", sorted(one for one in METHODS if "ushNotificationConfig" in one))
async def test_every_push_method_is_32003(front: Any, method: str) -> None:
    params = {"taskId": "t", "id": "t", "url": "http://127.0.0.1:1/", "pushNotificationConfig": {"url": "x"}}
    every: tuple[Any, ...] = (params, {}, None, [])
    for given in every:
        error = (await front.rpc(method, given, version=version(method)))["error"]
        assert error["code"] == -32003
        assert error["data"][0]["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"


@pytest.mark.parametrize("method", list(INLINE))
async def test_an_inline_push_configuration_is_32003_and_runs_nothing(
    front: Any, kit: Any, method: str
) -> None:
    make = kit.message03 if version(method) is None else kit.message10
    for config in ({"url": "http://169.254.169.254/", "id": "x"}, {}, "x"):
        sent = make("hi", configuration={INLINE[method]: config})
        error = (await front.rpc(method, sent, version=version(method)))["error"]
        assert error["code"] == -32003
        assert error["data"][0]["reason"] == "PUSH_NOTIFICATION_NOT_SUPPORTED"
    assert front.runner.plans == []


async def test_a_configuration_that_asks_for_no_push_is_answered(front: Any, kit: Any) -> None:
    old = await front.ask("hi", configuration={"pushNotificationConfig": None, "blocking": True})
    assert old["status"]["state"] == "completed"
    newer = kit.message10("hi", configuration={"taskPushNotificationConfig": None})
    assert (await front.rpc("SendMessage", newer, version="1.0"))["result"]["task"]


@pytest.mark.parametrize("method", ["agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard"])
async def test_there_is_no_extended_card_and_the_card_does_not_say_so(front: Any, method: str) -> None:
    error = (await front.rpc(method, {}, version=version(method)))["error"]
    assert error["code"] == -32004
    assert error["data"][0]["reason"] == "UNSUPPORTED_OPERATION"
    card = (await front.http.get("/.well-known/agent-card.json")).json()
    assert not card["capabilities"].get("extendedAgentCard")
    assert not card.get("supportsAuthenticatedExtendedCard")
    assert not card["capabilities"].get("pushNotifications")
    assert {one["protocolBinding"] for one in card["supportedInterfaces"]} == {"JSONRPC"}


@pytest.mark.parametrize(("method", "path"), REST)
async def test_rest_and_grpc_paths_are_404_in_json_and_run_nothing(
    front: Any, kit: Any, method: str, path: str
) -> None:
    for kind in ("application/json", "application/a2a+json", "application/grpc"):
        headers = {"content-type": kind, "A2A-Version": "1.0"}
        answer = await front.http.request(
            method, path, content=json.dumps(kit.message10("hi")), headers=headers
        )
        assert answer.status_code == 404
        assert answer.json() == {"error": "Not Found"}
    assert front.runner.plans == []


@pytest.mark.parametrize(
    "preface",
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\r\n\x00\x00\r\n",
    ],
    ids=["http2", "tls", "noise"],
)
async def test_what_is_no_http_1_is_answered_400_or_closed(front: Any, preface: bytes) -> None:
    answer = await front.spoken(preface)
    assert b"HTTP/1.1 2" not in answer
    assert (b"HTTP/1.1 505 " if b"HTTP/2.0" in preface else b"HTTP/1.1 400 ") in answer
    assert front.runner.plans == []
    assert (await front.http.get("/health")).status_code == 200


async def test_an_upgrade_is_not_made(front: Any, kit: Any) -> None:
    for protocol in (b"websocket", b"h2c"):
        head = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade, close\r\nupgrade: %s\r\n" % protocol
        answer = await front.spoken(head + b"sec-websocket-key: eA==\r\nsec-websocket-version: 13\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 405 ")
    headers = {"connection": "Upgrade", "upgrade": "h2c"}
    sent = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": kit.message03("hi")}
    answered = await front.http.post("/", json=sent, headers=headers)
    assert answered.json()["result"]["status"]["state"] == "completed"
