from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.strict_json import StrictJsonError, parse, parse_object

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_what_json_writes_is_read_as_it_was(value: Any) -> None:
    assert parse(json.dumps(value).encode()) == value


@given(st.binary(max_size=200))
def test_bytes_are_either_json_or_refused(raw: bytes) -> None:
    try:
        value = parse(raw)
    except StrictJsonError:
        return
    assert json.loads(raw) == value


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not JSON in UTF-8"),
        (b"{", "not JSON in UTF-8"),
        (b"{} {}", "not JSON in UTF-8"),
        (b"\xff", "not JSON in UTF-8"),
        (b"\xef\xbb\xbf{}", "not JSON in UTF-8"),
        ("{}".encode("utf-16"), "not JSON in UTF-8"),
        (b"9" * 5000, "not JSON in UTF-8"),
        (b'{"a":1,"a":1}', "a key is given twice"),
        (b'{"a":1,"\\u0061":2}', "a key is given twice"),
        (b'[{"x":{"a":1,"a":2}}]', "a key is given twice"),
        (b"NaN", "number out of range"),
        (b"[-Infinity]", "number out of range"),
        (b'{"a":1e999}', "number out of range"),
        (b"[" * 5 + b"]" * 5, "nested too deeply"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
        (b"[" + b"0," * 10 + b"0]", "too many parts"),
        (b"[[0,0,0,0,0],[0,0,0,0,0]]", "too many parts"),
    ],
)
def test_what_two_parsers_could_read_in_two_ways_is_refused(raw: bytes, reason: str) -> None:
    with pytest.raises(StrictJsonError, match=f"^{reason}$"):
        parse(raw, max_depth=4, max_parts=10)


def test_depth_and_parts_are_allowed_up_to_their_limit() -> None:
    assert parse(b"[[[[]]]]", max_depth=4) == [[[[]]]]
    assert len(parse(b"[" + b"0," * 9 + b"0]", max_parts=10)) == 10


@pytest.mark.parametrize("raw", [b"[]", b"null", b'"x"', b"1"])
def test_an_object_is_an_object(raw: bytes) -> None:
    with pytest.raises(StrictJsonError, match="not a JSON object"):
        parse_object(raw)
