"""An error keeps its own code: no text of the SDK's makes one kind of error another."""

from __future__ import annotations

import pytest

from runtime.front.dialects import ERRORS, clean_error

TEXTS = (
    "Task not found",
    "Task cannot be canceled",
    "Push Notification is not supported",
    "This operation is not supported",
    "Incompatible content types",
    "A2A version '1.0' is not supported by this handler. Expected version '0.3'.",
    "x A2A version '1.0' is not supported",
)


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("method", ["SendMessage", "message/send", "tasks/get"])
def test_an_internal_error_stays_one_whatever_its_text_says(text: str, method: str) -> None:
    cleaned = clean_error({"code": -32603, "message": text, "data": None}, method, "Nothing runs.")
    assert cleaned["code"] == -32603
    assert cleaned["message"] not in TEXTS


@pytest.mark.parametrize("code", range(-32009, -32000))
@pytest.mark.parametrize("method", ["SendMessage", "message/send"])
def test_a_code_of_the_protocol_s_keeps_its_code_and_gets_typed_data(code: int, method: str) -> None:
    cleaned = clean_error({"code": code, "message": "SECRET", "data": None}, method, "Nothing runs.")
    assert cleaned["code"] == code
    (data,) = cleaned["data"]
    assert data["@type"] == "type.googleapis.com/google.rpc.ErrorInfo"
    assert data["domain"] == "a2a-protocol.org"
    assert data["reason"].isupper()


@pytest.mark.parametrize("code", [-32008, -32009])
def test_the_two_that_the_sdk_loses_are_known_by_their_whole_sentence_alone(code: int) -> None:
    sentence = ERRORS[code].sentence
    assert clean_error({"code": -32603, "message": sentence}, "message/send", "")["code"] == code
    for other in (sentence + " x", "x " + sentence, sentence[:-1], sentence.upper()):
        assert clean_error({"code": -32603, "message": other}, "message/send", "")["code"] == -32603
