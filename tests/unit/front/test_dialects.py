"""Error bodies: rebuilt from the code alone."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from a2a.utils.errors import A2A_ERROR_REASONS, JSON_RPC_ERROR_CODE_MAP
from hypothesis import given
from hypothesis import strategies as st

from runtime.front.dialects import (
    ERRORS,
    TABLE,
    V03_METHODS,
    V10_METHODS,
    clean_error,
    error,
    response,
    version_error,
)
from runtime.front.handler import TASK_CLOSED


def test_the_table_has_the_code_of_each_class_of_the_sdk_s() -> None:
    assert {row.raised: row.code for row in TABLE} == JSON_RPC_ERROR_CODE_MAP
    reasons = {row.raised: row.reason for row in TABLE if row.reason}
    assert reasons == {kind: A2A_ERROR_REASONS[kind] for kind in reasons}
    assert {row.code for row in TABLE if row.reason} == set(range(-32009, -32000))


@pytest.mark.parametrize("code", [-32008, -32009])
def test_a_code_that_the_sdk_loses_in_0_3_is_found_by_its_own_sentence_alone(code: int) -> None:
    sentence = ERRORS[code].sentence
    lost = {"code": -32603, "message": sentence}
    assert clean_error(lost, "message/send", "")["code"] == code
    assert clean_error(lost, "SendMessage", "")["code"] == -32603
    assert clean_error({**lost, "message": f"{sentence}."}, "message/send", "")["code"] == -32603


def test_the_method_names_are_those_that_the_sdk_knows() -> None:
    from a2a.server.routes import jsonrpc_dispatcher as sdk

    assert frozenset(sdk.JsonRpcDispatcher.METHOD_TO_MODEL) == V10_METHODS
    adapter = sys.modules["a2a.compat.v0_3.jsonrpc_adapter"].JSONRPC03Adapter
    assert frozenset(adapter.METHOD_TO_MODEL) == V03_METHODS


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize("method", ["SendMessage", "message/send", "nope"])
@pytest.mark.parametrize("code", list(ERRORS))
def test_no_text_of_the_given_error_is_left(code: int, method: str) -> None:
    given_error = {"code": code, "message": "SECRET", "data": {"input": "SECRET"}}
    cleaned = clean_error(given_error, method, "Nothing runs.")
    assert "SECRET" not in json.dumps(cleaned)
    assert cleaned["code"] in ERRORS


def test_an_unknown_code_is_an_internal_error() -> None:
    values: tuple[object, ...] = ({"code": 1}, {"code": "x"}, {}, None, "text", [])
    for value in values:
        assert clean_error(value, "SendMessage", "")["code"] == -32603


def test_our_own_sentences_pass_and_cancel_has_the_configured_one() -> None:
    assert clean_error({"code": -32004, "message": TASK_CLOSED}, "SendMessage", "")["message"] == TASK_CLOSED
    assert (
        clean_error({"code": -32002, "message": "x"}, "CancelTask", "Nothing runs.")["message"]
        == "Nothing runs."
    )


@given(JSON)
def test_any_error_value_is_cleaned_without_raising(value: Any) -> None:
    cleaned = clean_error(value, "SendMessage", "x")
    assert set(cleaned) <= {"code", "message", "data"}


@pytest.mark.parametrize(
    ("method", "version", "agree"),
    [
        ("SendMessage", "1.0", True),
        ("SendMessage", "1.7", True),
        ("SendMessage", "1", True),
        ("SendMessage", "", False),
        ("SendMessage", "2.0", False),
        ("SendMessage", "10.0", False),
        ("message/send", "", True),
        ("message/send", "0.3", True),
        ("message/send", "0.9", True),
        ("message/send", "1.0", False),
        ("message/send", "latest", False),
        ("nope", "9.9", True),
    ],
)
def test_the_major_version_decides(method: str, version: str, agree: bool) -> None:
    assert (version_error(method, version) is None) is agree


@given(st.text(max_size=40) | st.from_regex(r"\d{1,3}(\.\d{1,5}){0,2}", fullmatch=True))
def test_a_version_header_never_comes_back_unless_it_is_a_version(version: str) -> None:
    found = version_error("SendMessage", version)
    if found is not None:
        shown = found["message"].split("'")[1]
        assert shown == "unknown" or set(shown) <= set("0123456789.")


@pytest.mark.parametrize(
    ("value", "shown"), [(1, 1), ("a", "a"), (None, None), (True, None), ({}, None), (1.5, None)]
)
def test_an_id_is_echoed_only_as_string_or_integer(value: object, shown: object) -> None:
    assert response(value, error(-32600))["id"] == shown
