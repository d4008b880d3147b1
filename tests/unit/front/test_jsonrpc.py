"""Examining requests: what of them goes on, how little of it, and what each look at them may cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.front import jsonrpc
from runtime.front.dialects import ERRORS, METHODS
from runtime.front.jsonrpc import ID_MAX_CHARS, Bounds, examine, measure

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

DEPTH_MAX, NODES_MAX, PARTS_MAX = Bounds().depth, Bounds().values, Bounds().parts
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)
BIG = {f"k{number}": [0] * 15 for number in range(100)}  # 1,600 values: within what may be parsed at all
VERSIONS = {"message/send": "", "SendMessage": "1.0"}


def values(item: Any) -> int:
    """Count the values of a JSON text."""
    if isinstance(item, list):
        return 1 + sum(map(values, item))
    if isinstance(item, dict):
        return 1 + sum(map(values, item.values()))
    return 1


def request(method: str, params: Any, **extra: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params} | extra).encode()


def message(method: str, **extra: Any) -> dict[str, Any]:
    if method == "message/send":
        part: dict[str, Any] = {"kind": "text", "text": "hi"}
        return {"kind": "message", "role": "user", "messageId": "m", "parts": [part]} | extra
    return {"role": "ROLE_USER", "messageId": "m", "parts": [{"text": "hi"}]} | extra


def passed(method: str, params: Any) -> Any:
    found = examine(request(method, params), VERSIONS[method])
    assert found.refusal is None, found.refusal
    return json.loads(found.body)


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
def test_examining_any_body_never_raises(body: bytes) -> None:
    found = examine(body, "1.0")
    assert isinstance(found.method, str)
    assert found.refusal is not None
    assert found.refusal["error"]["code"] in ERRORS


@given(st.sampled_from(sorted(METHODS)), JSON, JSON, JSON)
def test_whatever_the_parameters_are_what_goes_on_is_small_json_or_nothing(
    method: str, params: Any, said: Any, part: Any
) -> None:
    for given_params in (params, {"message": said}, {"message": {"parts": [part]}, "id": said}):
        found = examine(request(method, given_params), "1.0" if method[0].isupper() else "")
        if found.refusal is None:
            assert values(json.loads(found.body)) <= 40
        else:
            assert found.body == b""


@pytest.mark.control("WIRE-03")
@pytest.mark.parametrize("method", list(VERSIONS))
@pytest.mark.parametrize(
    "params",
    [
        {"metadata": BIG},
        {"message": {"metadata": BIG}},
        {"message": {"extensions": ["x"] * 1500}},
        {"message": {"referenceTaskIds": ["x"] * 1500}},
        {"message": {"parts": [{"text": "hi", "kind": "text", "metadata": BIG}]}},
        {"message": {"artifacts": BIG, "messageId": {}, "role": [[0]], "contextId": {"a": 1}}},
        {"configuration": {"acceptedOutputModes": ["text"] * 200, "pushNotificationConfig": None}},
        {"configuration": BIG},
        {"tenant": BIG, "unheard": BIG["k0"]},
    ],
)
def test_what_a_turn_does_not_use_ends_at_the_gate(method: str, params: dict[str, Any]) -> None:
    said = message(method, **params.get("message", {}))
    body = passed(method, params | {"message": said})
    assert values(body) < 25
    assert body["params"]["message"]["parts"][0]["text"] == "hi"
    assert "metadata" not in json.dumps(body)


@pytest.mark.control("WIRE-03")
def test_other_methods_get_their_id_and_nothing_large() -> None:
    params = {"id": "t", "historyLength": 3, "metadata": BIG}
    for method, version in (
        ("tasks/get", ""),
        ("GetTask", "1.0"),
        ("tasks/cancel", ""),
        ("CancelTask", "1.0"),
    ):
        found = examine(request(method, params), version)
        assert json.loads(found.body)["params"] == {"id": "t", "historyLength": 3}


def test_both_spellings_of_a_field_go_on() -> None:
    said = message("SendMessage", context_id="c", task_id="t", contextId="C")
    body = passed("SendMessage", {"message": said, "configuration": {"return_immediately": True}})
    assert body["params"]["message"] == said
    assert body["params"]["configuration"] == {"return_immediately": True}


@pytest.mark.control("WIRE-03")
@pytest.mark.parametrize("method", list(VERSIONS))
def test_a_message_has_a_bounded_number_of_parts(method: str) -> None:
    part = message(method)["parts"][0]
    assert len(
        passed(method, {"message": message(method, parts=[part] * PARTS_MAX)})["params"]["message"]["parts"]
    )
    refused = examine(
        request(method, {"message": message(method, parts=[part] * (PARTS_MAX + 1))}), VERSIONS[method]
    )
    assert refused.refusal is not None
    assert refused.refusal["error"]["code"] == -32602


@pytest.mark.control("WIRE-03")
@pytest.mark.parametrize(
    "name", ["messageId", "message_id", "contextId", "context_id", "taskId", "task_id", "role", "kind"]
)
def test_every_field_that_is_no_text_is_short(name: str) -> None:
    for method, version in VERSIONS.items():
        at_most = message(method, **{name: "x" * ID_MAX_CHARS})
        assert examine(request(method, {"message": at_most}), version).refusal is None
        too_long = message(method, **{name: "x" * (ID_MAX_CHARS + 1)})
        refusal = examine(request(method, {"message": too_long}), version).refusal
        assert refusal is not None
        assert refusal["error"]["code"] == -32602


@pytest.mark.control("WIRE-03")
@pytest.mark.parametrize("request_id", ["x" * (ID_MAX_CHARS + 1), 10**400, True, 1.5, [], {"a": 1}, "\ud800"])
def test_a_request_id_that_is_no_short_id_is_refused_and_not_said_back(request_id: Any) -> None:
    refusal = examine(request("tasks/get", {"id": "t"}, id=request_id), "").refusal
    assert refusal is not None
    assert refusal["error"]["code"] == -32600
    assert refusal["id"] is None


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1" * 5000])
def test_numbers_that_are_none_are_a_parse_error(number: str) -> None:
    body = request("tasks/get", {"id": "t", "historyLength": 5}).replace(b"5}", number.encode() + b"}")
    refusal = examine(body, "").refusal
    assert refusal is not None
    assert refusal["error"]["code"] == -32700


@pytest.mark.parametrize("number", ["1e999", "9" * 30, "-1e300"])
def test_numbers_beyond_64_bits_go_nowhere(number: str) -> None:
    body = request("tasks/get", {"id": "t", "historyLength": 5}).replace(b"5}", number.encode() + b"}")
    refusal = examine(body, "").refusal
    assert refusal is not None
    assert refusal["error"]["code"] == -32602


@given(JSON)
def test_depth_and_values_are_counted_outside_strings(value: Any) -> None:
    def nested(item: Any) -> int:
        if isinstance(item, list):
            return 1 + max(map(nested, item), default=0)
        if isinstance(item, dict):
            return 1 + max(map(nested, item.values()), default=0)
        return 0

    depth, nodes = measure(json.dumps(value).encode())
    assert depth == nested(value)
    assert values(value) - 1 <= nodes <= 2 * values(value)


@pytest.mark.control("WIRE-03")
@pytest.mark.parametrize(
    "body",
    [
        b'{"a":[' + b"0," * 120_000 + b"0]}",
        b"[" + b"{}," * 80_000 + b"{}]",
        b'"' * 250_000,
        b"]" * 250_000,
        b"," * 250_000,
        b'{"":' * 60_000,
    ],
)
def test_a_body_of_many_values_is_refused_before_it_is_parsed(
    body: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parse(*_arguments: Any, **_options: Any) -> Any:
        raise AssertionError("parsed")

    monkeypatch.setattr(json, "loads", parse)
    refusal = examine(body, "").refusal
    assert refusal is not None
    assert refusal["error"]["code"] == -32600


def test_hostile_quotes_and_brackets_are_counted_in_one_pass() -> None:
    assert measure(b'"\\' * 120_000) == (0, 0)
    assert measure(b'"' * 250_000)[1] > NODES_MAX


class Counting:
    """Counts the tokens that are looked at."""

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self.pattern = pattern
        self.count = 0

    def finditer(self, body: bytes) -> Iterator[re.Match[bytes]]:
        for match in self.pattern.finditer(body):
            self.count += 1
            yield match


@pytest.mark.control("WIRE-03")
@pytest.mark.parametrize(
    ("body", "most"),
    [
        (b"[" * 250_000, DEPTH_MAX + 1),
        (b"0," * 120_000, NODES_MAX + 1),
        (b'"' * 250_000, 5 * NODES_MAX + 2),
        (b"]" * 250_000, 5 * NODES_MAX + 2),
    ],
)
def test_looking_at_a_body_stops_where_it_is_too_much(
    body: bytes, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    counting = Counting(jsonrpc._TOKENS)
    monkeypatch.setattr(jsonrpc, "_TOKENS", counting)
    depth, nodes = measure(body)
    assert depth > DEPTH_MAX or nodes > NODES_MAX
    assert counting.count == most
