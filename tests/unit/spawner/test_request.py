from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.spawner.request import MAX_BODY_BYTES, MAX_PROMPT_BYTES, BadRequestError, parse_turn_request

GOOD: dict[str, Any] = {
    "agent": "ada",
    "definition": "0123456789abcdef" * 4,
    "context": "c-1",
    "visitor": "v.1",
    "prompt": "When?",
    "timeout_seconds": 90,
}


def parsed_with(**changes: Any) -> Any:
    return parse_turn_request(json.dumps(GOOD | changes).encode())


def test_a_request_of_six_fields_is_taken() -> None:
    request = parsed_with()
    assert request.model_dump() == GOOD


@given(st.binary(max_size=200))
def test_bytes_are_either_a_request_or_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        parse_turn_request(body)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from([*GOOD, "image", "binds"]), json_values))
def test_whatever_the_fields_hold_the_answer_is_a_checked_request_or_a_refusal(
    changes: dict[str, Any],
) -> None:
    try:
        request = parse_turn_request(json.dumps(GOOD | changes).encode())
    except BadRequestError:
        return
    assert set(request.model_dump()) == set(GOOD)
    assert 1 <= request.timeout_seconds <= 3600
    assert 1 <= len(request.prompt.encode()) <= MAX_PROMPT_BYTES


@pytest.mark.control("SPAWN-01")
@pytest.mark.parametrize("name", ["image", "binds", "privileged", "runtime", "env", "network", "v"])
def test_a_field_more_is_refused_without_repeating_its_name(name: str) -> None:
    with pytest.raises(BadRequestError, match=r"^unknown field$"):
        parsed_with(**{name: "x"})


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_missing_field_is_named(name: str) -> None:
    body = {key: value for key, value in GOOD.items() if key != name}
    with pytest.raises(BadRequestError, match=f"^{name}: "):
        parse_turn_request(json.dumps(body).encode())


@pytest.mark.parametrize("name", sorted(GOOD))
def test_a_field_given_twice_is_refused_even_with_the_same_value(name: str) -> None:
    body = json.dumps(GOOD)[:-1] + f', "{name}": {json.dumps(GOOD[name])}}}'
    with pytest.raises(BadRequestError, match="twice"):
        parse_turn_request(body.encode())


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "true", '"90"', "0", "0.5", "-1", "null"]
)
def test_a_timeout_that_is_no_number_from_one_up_is_refused(number: str) -> None:
    body = json.dumps(GOOD).replace(": 90", f": {number}")
    with pytest.raises(BadRequestError):
        parse_turn_request(body.encode())


@pytest.mark.parametrize("value", ["", "x" * 65, "a b", "a\n", "../x", "ä", None, 7, ["a"]])
@pytest.mark.parametrize("name", ["context", "visitor"])
def test_an_id_outside_its_pattern_is_refused(name: str, value: object) -> None:
    with pytest.raises(BadRequestError, match=f"^{name}: "):
        parsed_with(**{name: value})


@pytest.mark.parametrize(
    "value", ["", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "0" * 64 + "\n", "٣" * 64, None, 7, ["0" * 64]]
)
def test_a_definition_that_is_no_digest_is_refused(value: object) -> None:
    with pytest.raises(BadRequestError, match=r"^definition: "):
        parsed_with(definition=value)


def test_the_prompts_limit_is_in_bytes_not_characters() -> None:
    assert len(parsed_with(prompt="x" * MAX_PROMPT_BYTES).prompt) == MAX_PROMPT_BYTES
    for prompt in ("x" * (MAX_PROMPT_BYTES + 1), "€" * (MAX_PROMPT_BYTES // 3 + 1), ""):
        body = json.dumps(GOOD | {"prompt": prompt}, ensure_ascii=False).encode()
        with pytest.raises(BadRequestError, match=r"^prompt: "):
            parse_turn_request(body)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"[" * 100_000,
        b'{"a":' * 50_000,
        b"\xff\xfe",
        b" " * (MAX_BODY_BYTES + 1),
        b"9" * 10_000,
        json.dumps(GOOD).encode("utf-16"),
        json.dumps(GOOD).replace("When?", "\\ud800").encode(),
    ],
)
def test_what_is_not_one_json_object_of_text_is_refused(body: bytes) -> None:
    with pytest.raises(BadRequestError):
        parse_turn_request(body)


def test_a_refusal_repeats_nothing_of_the_request() -> None:
    with pytest.raises(BadRequestError) as caught:
        parsed_with(prompt=["SECRET"], context="SECRET SECRET", SECRET="SECRET")
    assert "SECRET" not in str(caught.value)
