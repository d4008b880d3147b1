"""Every row of the table of errors, over real HTTP: code, sentence, data, status, id, and nothing else.

Rows that no request reaches are raised by a double in the handler's or the executor's place, behind the real
server; what a double leaves out is why the error was raised.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from a2a.types import Task, TaskState, TaskStatus, TaskStatusUpdateEvent

from runtime.front.dialects import EXTENSION_REQUIRED, TABLE, VERSION_NOT_SUPPORTED
from runtime.front.executor import TurnExecutor
from runtime.front.handler import FrontRequestHandler

if TYPE_CHECKING:
    from runtime.front.dialects import Row

CANARY = "CANARY-5150"
SECRET = f"{CANARY} /srv/gatehouse/secret.py Traceback (most recent call last): sk-ant-test-0000"
# A handler that raises JSONParseError is no case: the SDK cannot put its own class into a 1.0 body (seen,
# 1.3.0), and parses nothing that the gate has not. Requests reach the row.
RAISED = [row for row in TABLE if row.code != -32700]
VERSION = {"0.3": None, "1.0": "1.0"}
NAMES = {
    "get": {"0.3": "tasks/get", "1.0": "GetTask"},
    "cancel": {"0.3": "tasks/cancel", "1.0": "CancelTask"},
    "send": {"0.3": "message/send", "1.0": "SendMessage"},
    "stream": {"0.3": "message/stream", "1.0": "SendStreamingMessage"},
    "subscribe": {"0.3": "tasks/resubscribe", "1.0": "SubscribeToTask"},
}
DIALECTS = pytest.mark.parametrize("dialect", ["0.3", "1.0"])
IDS = ["text", "", "ünï🎉", 0, 7, -3, 2**62, None]
ABSENT = object()


def info(reason: str, **metadata: str) -> list[dict[str, Any]]:
    kind = "type.googleapis.com/google.rpc.ErrorInfo"
    return [{"@type": kind, "reason": reason, "domain": "a2a-protocol.org", "metadata": metadata}]


def expected(row: Row, front: Any) -> tuple[int, str, list[dict[str, Any]] | None]:
    """Return what a client reads of a row that was raised while a method that we know was answered."""
    if row.code == -32600:  # the request had passed: what the SDK finds wrong then are its parameters
        return -32602, "Invalid params", None
    sentence = front.agent.messages.no_running if row.code == -32002 else row.sentence
    return row.code, sentence, info(row.reason, **row.metadata) if row.reason else None


def refusal(wanted: tuple[int, str, Any], request_id: Any = 1) -> dict[str, Any]:
    """Return the whole body that a code, its sentence and its data make."""
    code, sentence, data = wanted
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "error": {"code": code, "message": sentence} | ({"data": data} if data else {}),
    }


async def post(front: Any, method: str, params: Any, version: str | None, **extra: Any) -> Any:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params} | extra
    body = {name: value for name, value in body.items() if value is not ABSENT}
    headers = {"A2A-Version": version} if version else {}
    return await front.http.post("/", json=body, headers=headers)


def data_of(answer: Any) -> list[dict[str, Any]]:
    """Return the bodies in an answer, JSON or SSE, which must hold no trace of the fault."""
    assert answer.status_code == 200
    for trace in (CANARY, "Traceback", "sk-ant", "/srv", ".py", "pydantic"):
        assert trace not in answer.text
    if answer.headers["content-type"].startswith("text/event-stream"):
        return [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: ")]
    return [answer.json()]


def params_of(kit: Any, kind: str, dialect: str) -> dict[str, Any]:
    if kind in {"send", "stream"}:
        message: dict[str, Any] = (kit.message03 if dialect == "0.3" else kit.message10)("hi")
        return message
    return {"id": "some-task"}


@pytest.mark.control("WIRE-01", "WIRE-05")
@DIALECTS
async def test_each_class_of_error_has_its_code_and_sentence_in_a_json_body(
    front: Any, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    async def fail(*_arguments: Any) -> Any:
        raise row.raised

    monkeypatch.setattr(FrontRequestHandler, "on_get_task", fail)
    for row in RAISED:
        answer = await post(front, NAMES["get"][dialect], {"id": "t"}, VERSION[dialect])
        assert answer.headers["content-type"] == "application/json"
        assert answer.json() == refusal(expected(row, front))


@pytest.mark.control("WIRE-01", "WIRE-05")
@DIALECTS
async def test_each_class_of_error_has_its_code_and_sentence_in_an_event(
    front: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, dialect: str
) -> None:
    async def fail(*_arguments: Any) -> Any:
        yield Task(id="t", context_id="c", status=TaskStatus(state=TaskState.TASK_STATE_SUBMITTED))
        raise row.raised

    monkeypatch.setattr(FrontRequestHandler, "on_message_send_stream", fail)
    params = params_of(kit, "stream", dialect)
    for row in RAISED:
        answer = await post(front, NAMES["stream"][dialect], params, VERSION[dialect], id="my-id")
        assert answer.headers["content-type"].startswith("text/event-stream")
        first, last = data_of(answer)
        assert first["result"]
        assert last == refusal(expected(row, front), "my-id")


@pytest.mark.control("WIRE-01")
@DIALECTS
@pytest.mark.parametrize("kind", ["get", "send", "stream", "subscribe"])
async def test_what_an_error_says_of_itself_never_reaches_a_client(
    front: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, kind: str, dialect: str
) -> None:
    async def fail(*_arguments: Any) -> Any:
        raise row.raised(message=SECRET, data={"input": SECRET, "fieldViolations": [{"field": SECRET}]})

    async def fail_at_once(*arguments: Any) -> Any:
        await fail(*arguments)
        yield

    name = {"get": "get_task", "send": "message_send", "stream": "message_send_stream"}.get(
        kind, "subscribe_to_task"
    )
    double = fail if kind in {"get", "send"} else fail_at_once
    monkeypatch.setattr(FrontRequestHandler, f"on_{name}", double)
    params = params_of(kit, kind, dialect)
    for row in RAISED:
        (body,) = data_of(await post(front, NAMES[kind][dialect], params, VERSION[dialect]))
        code, sentence, data = expected(row, front)
        if dialect == "0.3" and row.code in {EXTENSION_REQUIRED, VERSION_NOT_SUPPORTED}:
            code, sentence, data = -32603, "Internal error", None  # the SDK has dropped the code by then
        assert body == refusal((code, sentence, data))


@pytest.mark.control("WIRE-01")
@DIALECTS
@pytest.mark.parametrize("kind", ["send", "stream"])
async def test_an_exception_is_an_internal_error_and_nothing_of_it(
    front: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, kind: str, dialect: str
) -> None:
    async def fail(*_arguments: Any) -> None:
        raise RuntimeError(SECRET)

    monkeypatch.setattr(TurnExecutor, "execute", fail)
    params = params_of(kit, kind, dialect)
    *_, last = data_of(await post(front, NAMES[kind][dialect], params, VERSION[dialect]))
    assert last == refusal((-32603, "Internal error", None))


@DIALECTS
@pytest.mark.parametrize("kind", ["send", "stream"])
async def test_an_executor_that_breaks_the_protocol_is_32006(
    front: Any, kit: Any, monkeypatch: pytest.MonkeyPatch, kind: str, dialect: str
) -> None:
    async def status_without_a_task(_self: Any, context: Any, queue: Any) -> None:
        status = TaskStatus(state=TaskState.TASK_STATE_COMPLETED)
        await queue.enqueue_event(
            TaskStatusUpdateEvent(task_id=context.task_id, context_id=context.context_id, status=status)
        )

    monkeypatch.setattr(TurnExecutor, "execute", status_without_a_task)
    params = params_of(kit, kind, dialect)
    *_, last = data_of(await post(front, NAMES[kind][dialect], params, VERSION[dialect]))
    assert last == refusal((-32006, "Invalid agent response", info("INVALID_AGENT_RESPONSE")))


def reached(kit: Any, dialect: str, finished: str) -> list[tuple[str, Any, int, str]]:
    """Return method, params, code and reason of the rows that a request of this dialect reaches."""
    old = dialect == "0.3"
    push = "tasks/pushNotificationConfig/" if old else ""
    make = kit.message03 if old else kit.message10
    part = {"kind": "data", "data": {"a": CANARY}} if old else {"data": {"a": CANARY}}
    names = {kind: names[dialect] for kind, names in NAMES.items()}
    inline = "pushNotificationConfig" if old else "taskPushNotificationConfig"
    hook = {"id": CANARY, "url": f"http://127.0.0.1:1/{CANARY}"}
    card = "agent/getAuthenticatedExtendedCard" if old else "GetExtendedAgentCard"
    rows: list[tuple[str, Any, int, str]] = [
        (f"nope/{CANARY}", {}, -32601, ""),
        (names["get"], {"id": {"a": CANARY}}, -32602, ""),
        (names["get"], CANARY, -32602, ""),
        (names["get"], {"id": CANARY}, -32001, "TASK_NOT_FOUND"),
        (names["cancel"], {"id": CANARY}, -32001, "TASK_NOT_FOUND"),
        (names["subscribe"], {"id": CANARY}, -32001, "TASK_NOT_FOUND"),
        (names["cancel"], {"id": finished}, -32002, "TASK_NOT_CANCELABLE"),
        (names["subscribe"], {"id": finished}, -32004, "UNSUPPORTED_OPERATION"),
        (card, {}, -32004, "UNSUPPORTED_OPERATION"),
    ]
    for kind in ("send", "stream"):
        said = {"taskId": CANARY, "contextId": CANARY, "messageId": CANARY}
        rows += [
            (names[kind], make(CANARY, message=said), -32001, "TASK_NOT_FOUND"),
            (names[kind], make(CANARY, message={"taskId": finished}), -32004, "UNSUPPORTED_OPERATION"),
            (
                names[kind],
                make(CANARY, message={"taskId": finished, "contextId": CANARY}),
                -32602,
                "",
            ),
            (names[kind], make(CANARY, message={"parts": [part]}), -32005, "CONTENT_TYPE_NOT_SUPPORTED"),
            (names[kind], make(CANARY, message={"role": CANARY}), -32602, ""),
            (names[kind], make(CANARY, message={"messageId": CANARY * 100}), -32602, ""),
            (
                names[kind],
                make(CANARY, configuration={inline: hook}),
                -32003,
                "PUSH_NOTIFICATION_NOT_SUPPORTED",
            ),
        ]
    config = {"taskId": CANARY, "id": CANARY, "url": CANARY, "pushNotificationConfig": hook}
    for name in (
        ("set", "get", "list", "delete")
        if old
        else (
            "CreateTaskPushNotificationConfig",
            "GetTaskPushNotificationConfig",
            "ListTaskPushNotificationConfigs",
            "DeleteTaskPushNotificationConfig",
        )
    ):
        rows.append((push + name, config, -32003, "PUSH_NOTIFICATION_NOT_SUPPORTED"))
    if not old:
        rows.append(("ListTasks", {"contextId": CANARY}, -32004, "UNSUPPORTED_OPERATION"))
    return rows


@pytest.mark.control("WIRE-01", "WIRE-05")
@DIALECTS
async def test_the_rows_that_requests_reach_are_the_table_s_in_json_and_sse(
    front: Any, kit: Any, dialect: str
) -> None:
    finished = (await front.ask("done"))["id"]
    runs = len(front.runner.plans)
    for method, params, code, reason in reached(kit, dialect, finished):
        (body,) = data_of(await post(front, method, params, VERSION[dialect], id=-5))
        assert (body["id"], body["jsonrpc"], set(body)) == (-5, "2.0", {"id", "jsonrpc", "error"})
        assert body["error"]["code"] == code, method
        assert body["error"]["message"], method
        if reason:
            metadata = {"acceptedTypes": "text/plain"} if code == -32005 else {}
            assert body["error"]["data"] == info(reason, **metadata)
    assert len(front.runner.plans) == runs


@pytest.mark.control("WIRE-01")
@pytest.mark.parametrize(
    ("body", "code", "sentence"),
    [
        (b"{" + CANARY.encode(), -32700, "Invalid JSON payload"),
        (b"", -32700, "Invalid JSON payload"),
        (f'["{CANARY}"]'.encode(), -32600, "Batch requests are not supported"),
        (f'{{"jsonrpc":"{CANARY}","id":[1],"method":"x"}}'.encode(), -32600, "Invalid request"),
    ],
)
async def test_what_is_no_request_is_answered_without_an_id(
    front: Any, body: bytes, code: int, sentence: str
) -> None:
    headers = {"content-type": "application/json"}
    answer = await front.http.post("/", content=body, headers=headers)
    (value,) = data_of(answer)
    assert value == refusal((code, sentence, None), None)


@DIALECTS
@pytest.mark.parametrize("request_id", [*IDS, ABSENT], ids=lambda one: "absent" if one is ABSENT else None)
async def test_an_id_comes_back_as_it_was_sent_and_an_absent_one_as_null(
    front: Any, kit: Any, request_id: Any, dialect: str
) -> None:
    wanted = None if request_id is ABSENT else request_id
    for kind in NAMES:
        params, version = params_of(kit, kind, dialect), VERSION[dialect]
        bodies = data_of(await post(front, NAMES[kind][dialect], params, version, id=request_id))
        assert bodies
        for body in bodies:
            assert body["id"] == wanted, kind
            assert type(body["id"]) is type(wanted)
    (unknown,) = data_of(await post(front, "nope", {}, VERSION[dialect], id=request_id))
    assert (unknown["id"], unknown["error"]["code"]) == (wanted, -32601)


async def test_a_request_without_an_id_is_answered_like_any_other(front: Any, kit: Any) -> None:
    (body,) = data_of(await post(front, "message/send", kit.message03("hi"), None, id=ABSENT))
    assert body["id"] is None
    assert kit.texts(body["result"])[1] == "echo: hi"


@DIALECTS
@pytest.mark.parametrize("kind", list(NAMES))
@pytest.mark.parametrize("how", ["header", "query"])
async def test_a_version_of_the_other_dialect_is_32009_with_the_same_typed_data(
    front: Any, kit: Any, kind: str, how: str, dialect: str
) -> None:
    given = "1.0" if dialect == "0.3" else "0.3"
    sent = {"params" if how == "query" else "headers": {"A2A-Version": given}}
    body = {"jsonrpc": "2.0", "id": "v", "method": NAMES[kind][dialect]}
    answer = await front.http.post("/", json=body | {"params": params_of(kit, kind, dialect)}, **sent)
    assert answer.headers["content-type"] == "application/json"
    sentence = f"A2A version '{given}' is not supported by this handler. Expected version '{dialect}'."
    assert answer.json() == refusal((-32009, sentence, info("VERSION_NOT_SUPPORTED")), "v")
    assert front.runner.plans == []
