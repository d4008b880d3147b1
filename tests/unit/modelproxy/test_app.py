"""What a door lets through and what it answers, against the scripted model over real sockets."""

from __future__ import annotations

import contextlib
import json
import time
from typing import Any

import anyio
import httpx2
import pytest

from runtime.modelproxy.backend import Reply, UpstreamError
from runtime.modelproxy.grammar import Terms
from runtime.modelproxy.ledger import Limits, utc_day
from runtime.modelproxy.messages_sse import sse
from runtime.modelproxy.prices import TABLE

PATHS = [
    ("GET", "/v1/messages"),
    ("HEAD", "/v1/messages"),
    ("PUT", "/v1/messages"),
    ("TRACE", "/v1/messages"),
    ("OPTIONS", "/v1/messages"),
    ("DELETE", "/v1/messages"),
    ("POST", "/v1/messages/"),
    ("POST", "/v1//messages"),
    ("POST", "//v1/messages"),
    ("POST", "/v1/%6dessages"),
    ("POST", "/v1%2fmessages"),
    ("POST", "/v1/messages%2fcount_tokens"),
    ("POST", "/v1/messages/../messages"),
    ("POST", "/v1/messages/batches"),
    ("POST", "/v1/messages/count_tokens/"),
    ("POST", "/v1/messages?beta=false"),
    ("POST", "/v1/messages?beta=true&x=1"),
    ("POST", "/v1/messages?"),
    ("POST", "/v1/messages?beta=true#x"),
    ("POST", "/v1/files"),
    ("GET", "/v1/models"),
    ("POST", "/v1/skills"),
    ("POST", "/v1/complete"),
    ("GET", "/v1/organizations/x"),
    ("POST", "/v1/oauth/token"),
    ("POST", "http://attacker.example/v1/messages"),
    ("POST", "http://127.0.0.1:8787/v1/messages"),
    ("CONNECT", "attacker.example:443"),
    ("CONNECT", "/v1/messages"),
    ("POST", "*"),
]


async def raw(rig: Any, door: Any, data: bytes) -> bytes:
    async with await anyio.connect_unix(str(rig.socket(door))) as stream:
        await stream.send(data)
        received = b""
        with anyio.fail_after(10):
            try:
                while True:
                    received += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
                return received


@pytest.mark.control("MODEL-01")
@pytest.mark.parametrize(("method", "target"), [pair for pair in PATHS if pair[1] != "/v1/messages?"])
async def test_any_other_path_or_method_is_403_and_no_upstream_call(
    live: Any, asking: Any, method: str, target: str
) -> None:
    door = await live.open()
    body = json.dumps(asking()).encode()
    head = f"{method} {target} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    answer = await raw(live, door, f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    assert answer.startswith(b"HTTP/1.1 403 ")
    assert not live.model.requests


@pytest.mark.control("MODEL-01")
@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x00\xa5\x01\x00\r\n\r\n",
        b"GET\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nbad header\r\n\r\n",
        (
            b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n"
            b"transfer-encoding: chunked\r\n\r\n0\r\n"
            b"\r\n"
        ),
        b"POST /v1/messages HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx",
        b"POST /v1/messages HTTP/1.1\r\nhost: a\r\nx-api-key : k\r\n\r\n",
        b"POST /v1/messages HTTP/1.1\r\nhost: a\r\nx: " + b"a" * 40_000,
    ],
)
async def test_what_is_no_strict_http_is_403(live: Any, data: bytes) -> None:
    door = await live.open()
    answer = await raw(live, door, data)
    assert answer.startswith(b"HTTP/1.1 403 "), answer[:80]
    assert not live.model.requests


@pytest.mark.control("MODEL-02")
async def test_an_allowed_request_streams_and_carries_the_key_and_the_visitor(
    live: Any, asking: Any, script: Any, key: bytes
) -> None:
    script({"text": "An answer in parts.", "chunks": 3})
    door = await live.open()
    answer = await live.post(door, asking(metadata={"user_id": "device"}))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text.count("text_delta") == 3
    (seen,) = live.model.requests
    headers = dict(seen["headers"])
    assert headers["x-api-key"] == key.decode()
    assert seen["body"]["metadata"] == {"user_id": "visitor-hmac"}
    assert (seen["path"], seen["query"]) == ("/v1/messages", "beta=true")


@pytest.mark.control("MODEL-02")
async def test_visitor_supplied_credentials_and_odd_headers_never_reach_the_upstream(
    live: Any, asking: Any, key: bytes
) -> None:
    door = await live.open()
    body = json.dumps(asking()).encode()
    lines = [
        b"POST /v1/messages HTTP/1.1",
        b"host: attacker.example",
        b"content-type: application/json",
        b"X-Api-Key: mine",
        b"x-api-key: mine-again",
        b"x_api_key: mine",
        b"AUTHORIZATION: Bearer mine",
        b"authorization: Basic mine",
        b"Proxy-Authorization: mine",
        b"Cookie: mine=1",
        b"X-Forwarded-For: 10.0.0.1",
        b"anthropic-version: 2099-01-01",
        b"anthropic-beta: effort-2025-11-24,web-search-2099-01-01, mine",
        b"connection: close",
        b"content-length: " + str(len(body)).encode(),
    ]
    answer = await raw(live, door, b"\r\n".join(lines) + b"\r\n\r\n" + body)
    assert answer.startswith(b"HTTP/1.1 200 ")
    (seen,) = live.model.requests
    assert sorted(name for name, _ in seen["headers"]) == [
        "accept",
        "accept-encoding",
        "anthropic-beta",
        "anthropic-version",
        "content-length",
        "content-type",
        "host",
        "user-agent",
        "x-api-key",
    ]
    headers = dict(seen["headers"])
    assert headers["anthropic-beta"] == "effort-2025-11-24"
    assert headers["anthropic-version"] == "2023-06-01"
    assert headers["x-api-key"] == key.decode()
    assert "mine" not in json.dumps(seen["headers"])


@pytest.mark.control("MODEL-05")
@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 413, 418])
async def test_an_upstream_error_becomes_403_in_our_words_without_a_second_try(
    live: Any, asking: Any, script: Any, status: int
) -> None:
    script({"status": status, "body": "internal-host.example says sk-ant-planted"})
    door = await live.open()
    answer = await live.post(door, asking())
    assert answer.status_code == 403
    assert answer.json() == {
        "type": "error",
        "error": {"type": "permission_error", "message": "The model cannot be reached."},
    }
    assert len(live.model.requests) == 1


@pytest.mark.parametrize("status", [429, 500, 503, 529])
async def test_a_passing_failure_is_tried_once_more_before_the_first_byte(
    live: Any, asking: Any, script: Any, status: int
) -> None:
    script({"status": status, "times": 1}, {"text": "second try"})
    door = await live.open()
    answer = await live.post(door, asking())
    assert (answer.status_code, len(live.model.requests)) == (200, 2)
    assert "second try" in answer.text


@pytest.mark.control("MODEL-05")
async def test_a_lasting_failure_is_tried_twice_and_costs_nothing(
    live: Any, asking: Any, script: Any
) -> None:
    script({"status": 529, "body": "overloaded"})
    door = await live.open()
    answer = await live.post(door, asking())
    assert (answer.status_code, len(live.model.requests)) == (403, 2)
    usage = await live.doors.close(door.turn)
    assert (usage.requests, usage.input_tokens, usage.output_tokens, usage.refused) == (1, 0, 0, 0)


class Failing:
    """A backend that fails as told, try by try, then passes on to another."""

    demo = False

    def __init__(self, failures: list[UpstreamError], then: Any) -> None:
        self.failures = failures
        self.then = then

    @contextlib.asynccontextmanager
    async def ask(self, request: Any) -> Any:
        if self.failures:
            raise self.failures.pop(0)
        async with self.then.ask(request) as reply:
            yield reply

    def leaks(self, _data: bytes) -> bool:
        return False


class Answering:
    """A backend whose every answer says that it cost five tokens in and seven out."""

    @contextlib.asynccontextmanager
    async def ask(self, _request: Any) -> Any:
        usage = {"input_tokens": 5, "output_tokens": 7}

        async def chunks() -> Any:
            yield sse({"type": "message_start", "message": {"usage": usage}})
            yield sse({"type": "message_delta", "usage": usage})
            yield sse({"type": "message_stop"})

        yield Reply(200, "text/event-stream", chunks())


def lost() -> UpstreamError:
    return UpstreamError("connection lost", sent=True, again=True)


def not_sent() -> UpstreamError:
    return UpstreamError("no connection", sent=False, again=True)


@pytest.mark.control("MODEL-04")
@pytest.mark.parametrize(
    ("failures", "requests", "output_tokens"),
    [
        ([not_sent, not_sent], 1, 0),
        ([lost, not_sent], 2, 4000),
        ([not_sent, lost], 1, 4000),
        ([lost, lost], 2, 8000),
        ([not_sent], 1, 7),
        ([lost], 2, 4007),
    ],
)
async def test_each_try_that_the_upstream_may_have_taken_is_paid_for(
    folder: Any, rigs: Any, asking: Any, failures: list[Any], requests: int, output_tokens: int
) -> None:
    backend = Failing([failure() for failure in failures], Answering())
    async with rigs(backend, folder) as rig:
        door = await rig.open()
        answer = await rig.post(door, asking())
        assert answer.status_code == (200 if len(failures) == 1 else 403)
        spent = await rig.doors.close(door.turn)
        (today,) = (await rig.books.days(utc_day(time.time()))).values()
    assert (spent.requests, spent.output_tokens) == (requests, output_tokens)
    assert today >= output_tokens * rig.prices.output
    assert (today == 0) is (output_tokens == 0)


@pytest.mark.control("MODEL-04")
async def test_a_second_try_that_cannot_be_paid_is_not_made(folder: Any, rigs: Any, asking: Any) -> None:
    backend = Failing([lost(), lost()], None)
    async with rigs(backend, folder) as rig:
        answer = await rig.post(await rig.open(limits=Limits(1, 100_000, 4000)), asking())
    assert answer.status_code == 402
    assert len(backend.failures) == 1


@pytest.mark.control("MODEL-01")
async def test_a_redirect_is_refused_and_not_followed(live: Any, asking: Any, script: Any) -> None:
    script({"status": 307, "headers": {"location": "/v1/messages?to=elsewhere"}})
    door = await live.open()
    answer = await live.post(door, asking())
    assert (answer.status_code, len(live.model.requests)) == (403, 1)
    assert "location" not in answer.headers


@pytest.mark.control("MODEL-05")
async def test_an_upstream_that_is_not_there_is_403(folder: Any, rigs: Any, asking: Any, key: bytes) -> None:
    from runtime.modelproxy.key import Key
    from runtime.modelproxy.upstream import Upstream

    async with Upstream("http://127.0.0.1:9", Key(key)) as backend, rigs(backend, folder) as rig:
        door = await rig.open()
        answer = await rig.post(door, asking())
        assert answer.status_code == 403
        assert (await rig.doors.close(door.turn)).output_tokens == 0


@pytest.mark.control("MODEL-05")
async def test_a_reflected_key_cuts_the_stream(live: Any, asking: Any, script: Any, key: bytes) -> None:
    script({"echo": True})
    door = await live.open()
    body = json.dumps(asking()).encode()
    head = "POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n"
    received = await raw(live, door, f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
    assert not received.endswith(b"0\r\n\r\n")
    assert len(live.model.requests) == 1
    assert key.decode() in json.dumps(live.model.requests[0]["headers"])
    assert key not in received
    assert b"content_block_delta" not in received


@pytest.mark.control("MODEL-05")
async def test_a_reflected_key_in_a_whole_answer_is_403(
    live: Any, asking: Any, script: Any, key: bytes
) -> None:
    script({"echo": True})
    door = await live.open()
    answer = await live.post(door, asking(stream=False))
    assert answer.status_code == 403
    assert key not in answer.content


@pytest.mark.control("MODEL-05")
async def test_a_key_in_an_answer_without_a_single_escape_is_found(
    live: Any, asking: Any, script: Any, key: bytes
) -> None:
    event = f'data: {{"type":"ping","x":"{key.decode()}"}}\n\n'
    assert "\\" not in event
    script({"raw": [event]})
    streamed = await live.post(await live.open(), asking())
    script({"text": key.decode()})
    whole = await live.post(await live.open(), asking(stream=False))
    assert (streamed.status_code, whole.status_code) == (403, 403)
    assert key not in streamed.content + whole.content


async def test_a_key_written_in_json_escapes_is_found(
    live: Any, asking: Any, script: Any, key: bytes
) -> None:
    escaped = "".join(f"\\u{byte:04x}" for byte in key)
    script({"raw": [f'data: {{"type":"ping","x":"{escaped}"}}\n\n']})
    door = await live.open()
    answer = await live.post(door, asking())
    assert answer.status_code == 403


@pytest.mark.control("MODEL-05")
async def test_an_error_inside_the_stream_never_passes(live: Any, asking: Any, script: Any) -> None:
    error = '{"type":"error","error":{"type":"overloaded_error","message":"internal words"}}'
    script({"raw": [f"event: error\ndata: {error}\n\n"]})
    door = await live.open()
    answer = await live.post(door, asking())
    assert answer.status_code == 403
    assert b"internal words" not in answer.content


async def test_an_unknown_event_is_left_out(live: Any, asking: Any, script: Any) -> None:
    script(
        {
            "raw": [
                'event: secret_event\ndata: {"type":"secret_event"}\n\n: a comment\n\n',
                'event: ping\ndata: {"type":"ping"}\n\n',
                'data: {"type":"message_start","message":{"usage":{"input_tokens":7}}}\r\n\r\n',
                'data: {"type":"message_delta","usage":{"output_tokens":9}}\n\n',
                'data: {"type":"message_stop"}\n\n',
            ]
        }
    )
    door = await live.open()
    answer = await live.post(door, asking())
    assert answer.status_code == 200
    assert "secret_event" not in answer.text
    assert "comment" not in answer.text
    assert "message_stop" in answer.text
    usage = await live.doors.close(door.turn)
    assert (usage.input_tokens, usage.output_tokens) == (7, 9)


async def test_a_settled_request_counts_what_the_upstream_reported(
    live: Any, asking: Any, script: Any
) -> None:
    usage = {"input_tokens": 100, "output_tokens": 50, "cache_read_input_tokens": 1000}
    script({"text": "x", "usage": usage})
    door = await live.open()
    await live.post(door, asking())
    spent = await live.doors.close(door.turn)
    assert (spent.requests, spent.input_tokens, spent.output_tokens) == (1, 1100, 50)


@pytest.mark.control("MODEL-04")
async def test_a_cut_stream_keeps_its_reservation_and_is_cut_for_the_turn_too(
    live: Any, asking: Any, script: Any
) -> None:
    script({"text": "half an answer", "cut": True})
    door = await live.open()
    with pytest.raises(httpx2.RemoteProtocolError):
        await live.post(door, asking())
    usage = await live.doors.close(door.turn)
    assert usage.output_tokens == 4000


@pytest.mark.control("MODEL-04")
async def test_what_is_reserved_is_the_price_of_the_turn_s_own_model_as_if_all_of_it_went_into_the_cache(
    live: Any, asking: Any, script: Any
) -> None:
    script({"text": "half an answer", "cut": True})
    opus = TABLE["claude-opus-5-5"]
    door = await live.open(terms=Terms("claude-opus-5-5", "v", 4000), prices=opus)
    with pytest.raises(httpx2.RemoteProtocolError):
        await live.post(door, asking(model="claude-opus-5-5"))
    (seen,) = live.model.requests
    await live.doors.close(door.turn)
    (today,) = (await live.books.days(utc_day(time.time()))).values()
    assert today == 2 * (seen["bytes"] // 2) * opus.input + 4000 * opus.output


async def test_a_client_that_leaves_ends_the_upstream_request_and_keeps_the_reservation(
    live: Any, asking: Any, script: Any
) -> None:
    script({"text": "half an answer", "hang": True})
    door = await live.open()
    async with (
        live.client(door) as client,
        client.stream("POST", "/v1/messages", json=asking()) as answer,
    ):
        async for chunk in answer.aiter_raw():
            if b"text_delta" in chunk:
                break
    with anyio.fail_after(5):
        while door.server.state.tasks:
            await anyio.lowlevel.checkpoint()
    assert (await live.doors.close(door.turn)).output_tokens == 4000


async def test_deleting_a_turn_aborts_its_request_in_flight_and_returns_the_usage(
    live: Any, asking: Any, script: Any
) -> None:
    script({"text": "half an answer", "hang": True})
    door = await live.open()
    async with (
        live.client(door) as client,
        client.stream("POST", "/v1/messages", json=asking()) as answer,
    ):
        chunks = answer.aiter_raw()
        await anext(chunks)
        with anyio.fail_after(5):
            usage = await live.doors.close(door.turn)
        with pytest.raises(httpx2.HTTPError):
            async for _ in chunks:
                pass
    assert (usage.requests, usage.output_tokens) == (1, 4000)
    assert not live.socket(door).exists()


@pytest.mark.control("MODEL-04")
async def test_the_requests_of_a_turn_are_finite_and_the_next_turn_is_unaffected(
    live: Any, asking: Any
) -> None:
    door = await live.open()
    codes = [(await live.post(door, asking())).status_code for _ in range(10)]
    assert codes == [200] * 8 + [402] * 2
    assert len(live.model.requests) == 8
    other = await live.open()
    assert (await live.post(other, asking())).status_code == 200
    assert (await live.doors.close(door.turn)).refused == 2


@pytest.mark.control("MODEL-04")
async def test_the_daily_budget_is_402_in_our_words(folder: Any, rigs: Any, asking: Any, key: bytes) -> None:
    from runtime.modelproxy.key import Key
    from runtime.modelproxy.upstream import Upstream

    async with Upstream("http://127.0.0.1:9", Key(key)) as backend, rigs(backend, folder, daily=10) as rig:
        answer = await rig.post(await rig.open(), asking())
    assert answer.status_code == 402
    assert answer.json()["error"] == {"type": "billing_error", "message": "The budget for this is spent."}


async def test_a_spent_turn_is_refused_without_another_look_and_then_loses_its_door(
    live: Any, asking: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    door = await live.open(limits=Limits(1, 100_000, 4000))
    assert [(await live.post(door, asking())).status_code for _ in range(2)] == [200, 402]
    monkeypatch.setattr("runtime.modelproxy.app.check", None)
    codes = [(await live.post(door, asking())).status_code for _ in range(14)]
    assert codes == [402] * 14
    with contextlib.suppress(httpx2.HTTPError):
        await live.post(door, asking())
    assert not live.socket(door).exists()


async def test_the_bytes_of_the_requests_that_were_taken_are_counted_as_received(
    live: Any, asking: Any
) -> None:
    door = await live.open(limits=Limits(2, 1_000_000, 4000))
    bodies = [json.dumps(asking("x" * 70_000)).encode(), json.dumps(asking("é " * 50), indent=3).encode()]
    for body in bodies:
        assert (await live.post(door, body)).status_code == 200
    assert (await live.post(door, asking(container="y"))).status_code == 403
    counted = asking(max_tokens=None, stream=None)
    assert (await live.post(door, counted, "/v1/messages/count_tokens")).status_code == 200
    assert (await live.post(door, asking("one more"))).status_code == 402
    usage = await live.doors.close(door.turn)
    assert (usage.requests, usage.request_bytes) == (2, sum(map(len, bodies)))


async def test_a_request_that_is_tried_twice_was_received_once(live: Any, asking: Any, script: Any) -> None:
    script({"status": 529, "body": "overloaded"})
    door = await live.open()
    body = json.dumps(asking()).encode()
    assert (await live.post(door, body)).status_code == 403
    assert len(live.model.requests) == 2
    assert (await live.doors.close(door.turn)).request_bytes == len(body)


async def test_a_large_body_is_checked_like_a_small_one(live: Any, asking: Any) -> None:
    door = await live.open(limits=Limits(8, 1_000_000, 4000))
    assert (await live.post(door, asking("x" * 100_000))).status_code == 200
    assert (await live.post(door, asking("x" * 100_000, container="y"))).status_code == 403


async def test_a_body_over_the_cap_is_403_whether_declared_or_chunked(live: Any, asking: Any) -> None:
    door = await live.open(body_bytes=2000)
    long = json.dumps(asking("x" * 3000)).encode()

    async def chunks() -> Any:
        yield long[:1000]
        yield long[1000:]

    declared = await live.post(door, long)
    async with live.client(door) as client:
        headers = {"content-type": "application/json"}
        chunked = await client.post("/v1/messages", content=chunks(), headers=headers)
    assert (declared.status_code, chunked.status_code) == (403, 403)
    assert not live.model.requests


@pytest.mark.parametrize(
    "headers",
    [{"content-type": "text/plain"}, {"content-encoding": "gzip"}, {"content-type": "multipart/form-data"}],
)
async def test_a_body_that_is_not_plain_json_is_403(live: Any, asking: Any, headers: dict[str, str]) -> None:
    door = await live.open()
    assert (await live.post(door, asking(), headers=headers)).status_code == 403
    assert not live.model.requests


async def test_a_whole_answer_is_passed_and_settled(live: Any, asking: Any, script: Any) -> None:
    script({"text": "whole"})
    door = await live.open()
    answer = await live.post(door, asking(stream=False))
    assert answer.json()["content"] == [{"type": "text", "text": "whole"}]
    assert (await live.doors.close(door.turn)).output_tokens < 4000


async def test_counting_tokens_is_forwarded_free_of_charge_and_finite(live: Any, asking: Any) -> None:
    door = await live.open()
    body = asking(max_tokens=None, stream=None)
    path = "/v1/messages/count_tokens?beta=true"
    codes = [(await live.post(door, body, path)).status_code for _ in range(33)]
    assert codes == [200] * 32 + [402]
    usage = await live.doors.close(door.turn)
    assert (usage.requests, usage.refused) == (0, 1)


@pytest.mark.control("MODEL-03")
async def test_a_count_goes_up_without_the_turn_s_metadata_and_as_a_whole(live: Any, asking: Any) -> None:
    door = await live.open()
    body = asking(metadata={"user_id": "device"}, stream=True)
    answer = await live.post(door, body, "/v1/messages/count_tokens?beta=true")
    assert answer.json()["input_tokens"] > 0
    (seen,) = live.model.requests
    assert seen["body"].keys() == {"model", "messages"}
    assert dict(seen["headers"])["accept"] == "application/json"


async def test_bearer_keys_are_sent_as_such(
    folder: Any, rigs: Any, asking: Any, key: bytes, live: Any
) -> None:
    from runtime.modelproxy.key import Key
    from runtime.modelproxy.upstream import Upstream

    (folder / "bearer").mkdir()
    backend = Upstream(live.upstream_url, Key(key), auth_header="bearer")
    async with backend, rigs(backend, folder / "bearer") as rig:
        assert (await rig.post(await rig.open(), asking())).status_code == 200
    headers = dict(live.model.requests[-1]["headers"])
    assert headers["authorization"] == f"Bearer {key.decode()}"
    assert "x-api-key" not in headers
