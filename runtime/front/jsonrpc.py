"""Which JSON-RPC requests the SDK gets to see. Pure.

What is wrong with a request's shape, size or version is said here, in our own sentences, because the SDK's
texts quote the request and its exceptions (dialects.py). What needs a task or a card to be judged is left
to the SDK.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from runtime.front.dialects import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    LIST_METHOD,
    METHODS,
    PARSE_ERROR,
    PUSH_NOT_SUPPORTED,
    UNSUPPORTED_OPERATION,
    error,
    response,
    version_error,
)

DEPTH_MAX: Final = 32
ID_MAX_CHARS: Final = 256
PUSH_METHOD_PART: Final = "ushNotificationConfig"

# A string that never closes runs to the end: so no quote is looked at twice.
_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_ID_FIELDS = ("id", "taskId", "task_id", "contextId", "context_id", "messageId", "message_id")


def examine(untrusted_body: bytes, version: str) -> tuple[str, dict[str, Any] | None]:
    """Return a request's method and, when it is refused, the JSON-RPC body that says so.

    `version` is the A2A version that the request names, "" when it names none. The method is "" when there
    is none.
    """
    if depth(untrusted_body) > DEPTH_MAX:
        return "", response(None, error(INVALID_REQUEST, f"The request is nested more than {DEPTH_MAX} deep"))
    try:
        request = json.loads(untrusted_body.decode())
    except (ValueError, RecursionError):
        return "", response(None, error(PARSE_ERROR))
    if not isinstance(request, dict):
        return "", response(None, error(INVALID_REQUEST, "Batch requests are not supported"))
    request_id, method = request.get("id"), request.get("method")
    known_id = request_id is None or (isinstance(request_id, str | int) and not isinstance(request_id, bool))
    if not isinstance(method, str) or not method or request.get("jsonrpc") != "2.0" or not known_id:
        refused: dict[str, Any] | None = error(INVALID_REQUEST)
    elif not _encodes(request):
        request_id, refused = None, error(INVALID_PARAMS, "The request holds half a surrogate pair")
    else:
        refused = _refusal(method, request.get("params", {}), version)
    name = method if isinstance(method, str) else ""
    return name, response(request_id, refused) if refused else None


def _refusal(method: str, untrusted_params: object, version: str) -> dict[str, Any] | None:
    mismatch = version_error(method, version)
    if mismatch is not None or method not in METHODS:
        return mismatch
    if method == LIST_METHOD:
        return error(UNSUPPORTED_OPERATION)
    if PUSH_METHOD_PART in method:
        return error(PUSH_NOT_SUPPORTED)
    if not isinstance(untrusted_params, dict):
        return error(INVALID_PARAMS)
    for holder in (untrusted_params, untrusted_params.get("message")):
        values = [holder.get(name) for name in _ID_FIELDS] if isinstance(holder, dict) else []
        if any(isinstance(value, str) and len(value) > ID_MAX_CHARS for value in values):
            return error(INVALID_PARAMS, f"An id is longer than {ID_MAX_CHARS} characters")
    return None


def depth(untrusted_body: bytes) -> int:
    """Return how deep the brackets of a JSON text nest, strings left out, without parsing it."""
    now = deepest = 0
    for match in _BRACKETS.finditer(untrusted_body):
        token = match.group()
        if token in b"[{":
            now += 1
            deepest = max(deepest, now)
        elif token in b"]}":
            now -= 1
    return deepest


def _encodes(value: object) -> bool:
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True
