"""Which JSON-RPC requests the SDK gets to see, and how much of each. Pure.

What is wrong with a request's shape, size or version is said here, in our own sentences, because the SDK's
texts quote the request and its exceptions (dialects.py). The SDK also turns all of a request into objects
of its own before it asks anybody whether it may (seen: 240 KB of metadata hold the event loop for 8 s and
3 MB for as long as the task is kept). So a request is written anew from the few fields that a turn uses
(the `_FIELDS` below); what else it holds, metadata and extensions among it, ends here. What needs a task or
a card to be judged is left to the SDK.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from runtime.front.dialects import (
    CONTENT_TYPE_NOT_SUPPORTED,
    INVALID_PARAMS,
    INVALID_REQUEST,
    LIST_METHOD,
    METHOD_NOT_FOUND,
    METHODS,
    PARSE_ERROR,
    PUSH_NOT_SUPPORTED,
    UNSUPPORTED_OPERATION,
    V03_METHODS,
    error,
    response,
    version_error,
)
from runtime.front.settings import FrontSettings

ID_MAX_CHARS: Final = 256
STAND_IN_ID: Final = 0
TEXT_ONLY: Final = "Only text parts are supported"
NO_PUSH: Final = "This agent sends no push notifications; leave the configuration out"
PUSH_METHOD_PART: Final = "ushNotificationConfig"
_INTEGER_MAX: Final = 2**63
_HISTORY_MAX: Final = 2**31  # the SDK has it as an int32 in both dialects, and falls over past it
_HISTORY_FIELDS: Final = frozenset({"historyLength", "history_length"})
_SETTINGS: Final = FrontSettings()

# A string that never closes runs to the end: so no quote is looked at twice.
_TOKENS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{},]', re.DOTALL)
_TOKENS_OF_A_NODE = 5  # its key, its text, its bracket, the other bracket, the comma
_SURROGATES = re.compile("[\ud800-\udfff]")

_SEND_METHODS = frozenset({"message/send", "message/stream", "SendMessage", "SendStreamingMessage"})
_SEND_FIELDS = frozenset({"message", "configuration"})
_MESSAGE_FIELDS = frozenset(
    {"kind", "role", "parts"}
    | {"messageId", "message_id", "contextId", "context_id", "taskId", "task_id"}  # both spellings are known
)
_PART_FIELDS = frozenset({"kind", "text"})
_CONFIGURATION_FIELDS = frozenset(
    {"blocking", "returnImmediately", "return_immediately", "historyLength", "history_length"}
)
_PUSH_FIELDS = frozenset(
    {"pushNotificationConfig", "push_notification_config"}
    | {"taskPushNotificationConfig", "task_push_notification_config"}
)
_TASK_FIELDS = frozenset({"id", "historyLength", "history_length"})


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a request may hold: brackets within brackets, values, and parts of its message."""

    depth: int = _SETTINGS.max_depth
    values: int = _SETTINGS.max_values
    parts: int = _SETTINGS.max_parts


_DEFAULT: Final = Bounds()


@dataclass(frozen=True, slots=True)
class Examined:
    """What `examine` found: method ("" when there is none) and id, and either the refusal or the new body."""

    method: str
    refusal: dict[str, Any] | None = None
    body: bytes = b""
    request_id: str | int | None = None


class _RefusedError(Exception):
    """Carries the error object of a request out of the depth in which it was found."""

    def __init__(self, refusal: dict[str, Any]) -> None:
        super().__init__()
        self.refusal = refusal


def examine(untrusted_body: bytes, version: str, bounds: Bounds = _DEFAULT) -> Examined:
    """Return what of a request goes on to the SDK, or the JSON-RPC body that refuses it.

    `version` is the A2A version that the request names, "" when it names none. The new body holds at most
    `bounds.parts` texts and a dozen short values beside them, whatever the request held. A request with no id
    or a null one goes on with STAND_IN_ID, because the SDK takes no such id in 0.3 (seen); its answer gets
    the id null (wire.py). To JSON-RPC it would be a notification, but nothing here is of use unanswered.
    """
    refusal = _size_error(untrusted_body, bounds)
    if refusal is not None:
        return Examined("", response(None, refusal))
    try:
        request = json.loads(untrusted_body.decode(), parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return Examined("", response(None, error(PARSE_ERROR)))
    if not isinstance(request, dict):
        return Examined("", response(None, error(INVALID_REQUEST, "Batch requests are not supported")))
    request_id, method = request.get("id"), request.get("method")
    name = method if isinstance(method, str) and len(method) <= ID_MAX_CHARS else ""
    if not name or request.get("jsonrpc") != "2.0" or not _is_request_id(request_id):
        shown = request_id if _is_request_id(request_id) else None
        return Examined(name, response(shown, error(INVALID_REQUEST)))
    try:
        params = _params(name, request.get("params", {}), version, bounds.parts)
    except _RefusedError as refused:
        return Examined(name, response(request_id, refused.refusal))
    passed_id = STAND_IN_ID if request_id is None else request_id
    known = {"jsonrpc": "2.0", "id": passed_id, "method": name, "params": params}
    try:
        return Examined(name, body=json.dumps(known, ensure_ascii=False).encode(), request_id=request_id)
    except UnicodeEncodeError:
        sentence = "The request holds half a surrogate pair"
        return Examined(name, response(request_id, error(INVALID_PARAMS, sentence)))


def measure(untrusted_body: bytes, bounds: Bounds = _DEFAULT) -> tuple[int, int]:
    """Return how deep the brackets of a JSON text nest and about how many values it has, without parsing it.

    It stops at the first of both that is too much, so that no body costs more than `bounds` allow.
    """
    now = deepest = nodes = 0
    for tokens, match in enumerate(_TOKENS.finditer(untrusted_body)):
        token = match.group()
        if token in b"[{":
            now += 1
            nodes += 1
            deepest = max(deepest, now)
        elif token in b"]}":
            now -= 1
        elif token == b",":
            nodes += 1
        if tokens > bounds.values * _TOKENS_OF_A_NODE:
            nodes = bounds.values + 1
        if deepest > bounds.depth or nodes > bounds.values:
            break
    return deepest, nodes


def _size_error(untrusted_body: bytes, bounds: Bounds) -> dict[str, Any] | None:
    depth, nodes = measure(untrusted_body, bounds)
    if depth > bounds.depth:
        return error(INVALID_REQUEST, f"The request is nested more than {bounds.depth} deep")
    if nodes > bounds.values:
        return error(INVALID_REQUEST, f"The request has more than {bounds.values} values")
    return None


def _no_constant(_name: str) -> float:
    raise ValueError("NaN and Infinity are not JSON")


def _is_request_id(value: object) -> bool:
    if isinstance(value, str):
        return len(value) <= ID_MAX_CHARS and not _SURROGATES.search(value)
    return value is None or (
        isinstance(value, int) and not isinstance(value, bool) and abs(value) < _INTEGER_MAX
    )


def _params(method: str, untrusted_params: object, version: str, parts_max: int) -> dict[str, Any]:
    mismatch = version_error(method, version)
    if mismatch is not None:
        raise _RefusedError(mismatch)
    if method not in METHODS:
        raise _RefusedError(error(METHOD_NOT_FOUND))
    if method == LIST_METHOD:
        raise _RefusedError(error(UNSUPPORTED_OPERATION))
    if PUSH_METHOD_PART in method:
        raise _RefusedError(error(PUSH_NOT_SUPPORTED))
    if not isinstance(untrusted_params, dict):
        raise _RefusedError(error(INVALID_PARAMS))
    if method not in _SEND_METHODS:
        return _scalars(untrusted_params, _TASK_FIELDS)
    params = _scalars(untrusted_params, _SEND_FIELDS)
    message, configuration = untrusted_params.get("message"), untrusted_params.get("configuration")
    if isinstance(message, dict):
        params["message"] = _message(message, parts_max, old=method in V03_METHODS)
    if isinstance(configuration, dict):
        if any(configuration.get(name) is not None for name in _PUSH_FIELDS):
            raise _RefusedError(error(PUSH_NOT_SUPPORTED, NO_PUSH))
        params["configuration"] = _scalars(configuration, _CONFIGURATION_FIELDS)
    return params


def _message(untrusted_message: dict[str, Any], parts_max: int, *, old: bool) -> dict[str, Any]:
    message = _scalars(untrusted_message, _MESSAGE_FIELDS)
    parts = untrusted_message.get("parts")
    if isinstance(parts, list):
        if len(parts) > parts_max:
            raise _RefusedError(error(INVALID_PARAMS, f"A message takes {parts_max} parts at most"))
        message["parts"] = [_part(part, old=old) for part in parts]
    return message


def _part(untrusted_part: object, *, old: bool) -> object:
    if not isinstance(untrusted_part, dict):
        return None
    if (
        untrusted_part.get("kind") in ("file", "data")
        if old
        else not untrusted_part.keys().isdisjoint({"raw", "url", "data"})
    ):
        raise _RefusedError(error(CONTENT_TYPE_NOT_SUPPORTED, TEXT_ONLY))
    text = untrusted_part.get("text")
    part = _scalars(untrusted_part, _PART_FIELDS - {"text"})
    if "text" in untrusted_part:
        part["text"] = text if isinstance(text, str) else []
    return part


def _scalars(untrusted: dict[str, Any], fields: frozenset[str]) -> dict[str, Any]:
    """Return the known fields of an object, each a short value; what should be none stays wrong and small."""
    known = {name: _scalar(untrusted[name]) for name in fields & untrusted.keys()}
    if not all(_is_history_length(known[name]) for name in _HISTORY_FIELDS & known.keys()):
        raise _RefusedError(error(INVALID_PARAMS))
    return known


def _is_history_length(untrusted: object) -> bool:
    if isinstance(untrusted, int | float):
        return untrusted == int(untrusted) and -_HISTORY_MAX <= untrusted < _HISTORY_MAX
    return True  # what is no number the SDK refuses itself


def _scalar(untrusted: object) -> object:
    if isinstance(untrusted, dict | list):
        return type(untrusted)()
    if isinstance(untrusted, str) and len(untrusted) > ID_MAX_CHARS:
        raise _RefusedError(error(INVALID_PARAMS, f"A field is longer than {ID_MAX_CHARS} characters"))
    if isinstance(untrusted, int | float) and abs(untrusted) >= _INTEGER_MAX:
        raise _RefusedError(error(INVALID_PARAMS))
    return untrusted
