from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.modelproxy.grammar import IMAGE_TOKENS, Terms, check
from runtime.modelproxy.prices import exact
from runtime.modelproxy.upstream import BETAS, known_betas

pytestmark = pytest.mark.control("MODEL-03")

TERMS = Terms("claude-sonnet-5-5", "visitor-hmac", 4000)
BASE: dict[str, Any] = {
    "model": "claude-sonnet-5-5",
    "messages": [{"role": "user", "content": "hi"}],
    "max_tokens": 4000,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)
KEYS = st.sampled_from(
    [
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "metadata",
        "max_tokens",
        "thinking",
        "stream",
        "x",
    ]
)


def verdict(terms: Terms = TERMS, **changes: Any) -> str:
    body = {key: value for key, value in {**BASE, **changes}.items() if value is not None}
    return check(json.dumps(body).encode(), terms).decision.reason


def test_every_recorded_request_of_the_pinned_cli_passes(recordings: dict[str, Any]) -> None:
    names = {"claude-sonnet-5-5": "sonnet", "claude-haiku-5-5": "haiku", "claude-opus-5-5": "opus"}
    assert names.keys() <= recordings.keys()
    for stem, request in recordings.items():
        model = request["body"]["model"]
        counting = stem.endswith("-count-tokens")
        terms = Terms(exact(names.get(model, model)), "visitor-hmac", 4000)
        checked = check(json.dumps(request["body"]).encode(), terms, counting=counting)
        assert checked.decision.allow, (stem, checked.decision)


def test_every_recorded_beta_is_known_and_no_other(recordings: dict[str, Any]) -> None:
    recorded: set[str] = set()
    for request in recordings.values():
        headers = [(name.encode(), value.encode()) for name, value in request["headers"]]
        sent = dict(request["headers"]).get("anthropic-beta", "")
        assert ",".join(known_betas(headers)) == sent
        recorded.update(filter(None, sent.split(",")))
    assert recorded == BETAS


def test_an_allowed_body_is_sent_with_the_visitor_in_place_of_the_device() -> None:
    body = {**BASE, "metadata": {"user_id": "device", "more": 1}, "system": "\u00fc"}
    checked = check(json.dumps(body, ensure_ascii=False).encode(), TERMS)
    assert json.loads(checked.body) == {**body, "metadata": {"user_id": "visitor-hmac"}}
    assert (checked.max_tokens, checked.stream, checked.model) == (4000, False, "claude-sonnet-5-5")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b'"x"',
        b"{",
        b"\xff\xfe",
        "{}".encode("utf-16"),
        b'\xef\xbb\xbf{"model":"claude-sonnet-5-5"}',
        b'{"model":"claude-sonnet-5-5","messages":[],"max_tokens":1,"model":"claude-opus-5-5"}',
        b'{"model":"claude-sonnet-5-5","messages":[{"role":"user","role":"user"}],"max_tokens":1}',
        b'{"model":"claude-sonnet-5-5","messages":[],"max_tokens":1,"temperature":NaN}',
        b'{"model":"claude-sonnet-5-5","messages":[],"max_tokens":1,"temperature":1e999}',
        b'{"model":"claude-sonnet-5-5","messages":[],"max_tokens":' + b"9" * 5000 + b"}",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b'{"model":"claude-sonnet-5-5","max_tokens":1,"messages":[{"role":"user","content":'
        + b"[" * 200
        + b"]" * 200
        + b"}]}",
    ],
)
def test_what_is_no_plain_json_object_is_refused(raw: bytes) -> None:
    assert not check(raw, TERMS).decision.allow


@pytest.mark.parametrize(
    "changes",
    [
        {"mcp_servers": [{"type": "url", "url": "https://attacker.example"}]},
        {"container": "container_x"},
        {"service_tier": "priority"},
        {"Model": "claude-opus-5-5"},
        {"model": None},
        {"messages": None},
        {"max_tokens": None},
        {"max_tokens": 4001},
        {"max_tokens": 0},
        {"max_tokens": True},
        {"max_tokens": "1"},
        {"max_tokens": 1.0},
        {"stream": 1},
        {"thinking": {"type": "enabled", "budget_tokens": 100_000}},
        {"thinking": {"type": "enabled", "budget_tokens": "many"}},
        {"model": "claude-opus-5-5"},
        {"model": "claude-sonnet-5-5-20261001"},
        {"model": "claude-sonnet-4-5"},
        {"model": "claude-sonnet-5-5[1m]"},
        {"model": "claude-sonnet-5-5\n"},
        {"model": "claude-sonnet-5-5/../x"},
        {"model": "Claude-Sonnet-5-5"},
        {"model": "sonnet"},
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"tools": [{"type": "code_execution_20250825", "name": "code_execution"}]},
        {"tools": [{"type": ["custom"], "name": "x"}]},
        {"tools": [{"type": "custom"}]},
        {"tools": ["web_search"]},
        {"tool_choice": {"type": "server"}},
        {"tool_choice": {}},
        {"messages": ["hi"]},
        {"messages": [{"role": "tool", "content": "x"}]},
        {"messages": [{"role": "user"}]},
        {"messages": [{"role": "user", "content": "x", "container": "y"}]},
        {"system": [{"type": "image", "source": {"type": "url", "url": "https://attacker.example"}}]},
    ],
)
def test_what_the_tables_do_not_hold_is_refused(changes: dict[str, Any]) -> None:
    assert verdict(**changes) != "allowed"


BLOCKS = [
    {"type": "image", "source": {"type": "url", "url": "https://attacker.example/x.png"}},
    {"type": "image", "source": {"type": "file", "file_id": "file_x"}},
    {"type": "document", "source": {"type": "url", "url": "https://attacker.example/x.pdf"}},
    {"type": "document", "source": {"type": "base64", "data": "", "url": "https://attacker.example"}},
    {"type": "document", "source": {"type": "content", "content": []}},
    {"type": "document", "source": "https://attacker.example"},
    {"type": "document"},
    {"type": "container_upload", "file_id": "file_x"},
    {"type": "server_tool_use", "id": "x", "name": "web_search", "input": {}},
    {"type": "mcp_tool_use", "id": "x", "name": "y", "input": {}},
    {"type": "web_search_tool_result", "content": []},
    {"type": ["text"]},
    {},
    "text",
]


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_block_that_makes_the_api_fetch_is_refused_wherever_it_stands(block: Any, depth: int) -> None:
    for _ in range(depth):
        block = {"type": "tool_result", "tool_use_id": "t", "content": [block]}
    assert verdict(messages=[{"role": "user", "content": [block]}]) != "allowed"


def test_a_tool_call_s_own_input_is_data() -> None:
    use = {"type": "tool_use", "id": "t", "name": "Grep", "input": {"type": "url", "source": {"type": "url"}}}
    assert verdict(messages=[{"role": "assistant", "content": [use]}]) == "allowed"


def test_inline_pictures_and_client_tools_pass() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    tools = [{"name": "Read", "input_schema": {"type": "object"}}, {"name": "x", "type": "custom"}]
    assert verdict(messages=[{"role": "user", "content": [picture]}], tools=tools) == "allowed"


def test_an_id_that_is_no_alias_stands_for_itself_alone() -> None:
    exact = Terms("claude-sonnet-4-5", "v", 4000)
    assert verdict(exact, model="claude-sonnet-4-5") == "allowed"
    assert verdict(exact, model="claude-sonnet-4-5-20250929") == "another model"


def test_a_count_carries_neither_the_device_nor_what_only_an_answer_needs() -> None:
    body = {**BASE, "metadata": {"user_id": "device"}, "stream": True, "max_tokens": 10**9}
    checked = check(json.dumps(body).encode(), TERMS, counting=True)
    assert checked.decision.allow
    assert json.loads(checked.body) == {"model": BASE["model"], "messages": BASE["messages"]}
    assert (checked.stream, checked.max_tokens) == (False, 0)


def test_the_worst_case_is_half_a_token_a_byte_and_a_fixed_weight_for_each_picture() -> None:
    picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
    paper = {**picture, "type": "document"}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [picture]}
    for content, media in (("hi", 0), ([picture], 1), ([picture, paper, result], 3)):
        raw = json.dumps({**BASE, "messages": [{"role": "user", "content": content}]}).encode()
        checked = check(raw, TERMS)
        assert checked.worst_input_tokens == len(checked.body) // 2 + media * IMAGE_TOKENS


@given(st.binary(max_size=200))
def test_bytes_never_raise_and_the_verdict_is_the_same_twice(raw: bytes) -> None:
    assert check(raw, TERMS) == check(raw, TERMS)


@given(st.dictionaries(KEYS, JSON), st.booleans())
def test_json_never_raises_and_what_passes_is_bounded(changes: dict[str, Any], counting: bool) -> None:
    raw = json.dumps({**BASE, **changes}).encode()
    checked = check(raw, TERMS, counting=counting)
    assert checked == check(raw, TERMS, counting=counting)
    if checked.decision.allow:
        sent = json.loads(checked.body)
        assert sent["model"] == "claude-sonnet-5-5"
        assert counting or 1 <= sent["max_tokens"] <= 4000
        assert counting or sent["metadata"] == {"user_id": "visitor-hmac"}
        assert not counting or not {"metadata", "stream", "max_tokens"} & sent.keys()


@given(st.integers(min_value=1, max_value=3000))
def test_deep_nesting_is_refused_without_a_crash(depth: int) -> None:
    content = "[" * depth + "]" * depth
    raw = b'{"model":"claude-sonnet-5-5","max_tokens":1,"messages":[],"system":' + content.encode() + b"}"
    assert check(raw, TERMS).decision.allow is (depth == 1)
