"""The errors of both A2A dialects, as a client may see them: a code, a fixed sentence, typed data. Pure.

The SDK puts exception texts, pydantic dumps with the input's values and client ids into error bodies, and
answers a 1.x header on a 0.3 method with -32603 (seen, a2a-sdk 1.3.0). Every error body is rebuilt here
from its code alone, the same for JSON and SSE and for both dialects.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from a2a.utils import errors

from runtime.front.handler import FIXED_SENTENCES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from a2a.utils.errors import A2AError

# As the SDK knows them; a test compares.
V03_METHODS: Final = frozenset(
    {
        "message/send",
        "message/stream",
        "tasks/get",
        "tasks/cancel",
        "tasks/resubscribe",
        "tasks/pushNotificationConfig/set",
        "tasks/pushNotificationConfig/get",
        "tasks/pushNotificationConfig/list",
        "tasks/pushNotificationConfig/delete",
        "agent/getAuthenticatedExtendedCard",
    }
)
V10_METHODS: Final = frozenset(
    {
        "SendMessage",
        "SendStreamingMessage",
        "GetTask",
        "ListTasks",
        "CancelTask",
        "SubscribeToTask",
        "CreateTaskPushNotificationConfig",
        "GetTaskPushNotificationConfig",
        "ListTaskPushNotificationConfigs",
        "DeleteTaskPushNotificationConfig",
        "GetExtendedAgentCard",
    }
)
METHODS: Final = V03_METHODS | V10_METHODS
LIST_METHOD: Final = "ListTasks"


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of error: the SDK's class, its code, the sentence and the typed data that a client reads.

    `reason` is that of the ErrorInfo, "" for the codes of JSON-RPC itself, which have none.
    """

    raised: type[A2AError]
    code: int
    sentence: str
    reason: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
TASK_NOT_CANCELABLE: Final = -32002
PUSH_NOT_SUPPORTED: Final = -32003
UNSUPPORTED_OPERATION: Final = -32004
CONTENT_TYPE_NOT_SUPPORTED: Final = -32005
EXTENSION_REQUIRED: Final = -32008
VERSION_NOT_SUPPORTED: Final = -32009

TABLE: Final = (
    Row(errors.JSONParseError, PARSE_ERROR, "Invalid JSON payload"),
    Row(errors.InvalidRequestError, INVALID_REQUEST, "Invalid request"),
    Row(errors.MethodNotFoundError, METHOD_NOT_FOUND, "Method not found"),
    Row(errors.InvalidParamsError, INVALID_PARAMS, "Invalid params"),
    Row(errors.InternalError, INTERNAL, "Internal error"),
    Row(errors.TaskNotFoundError, -32001, "Task not found", "TASK_NOT_FOUND"),
    Row(errors.TaskNotCancelableError, TASK_NOT_CANCELABLE, "Task cannot be canceled", "TASK_NOT_CANCELABLE"),
    Row(
        errors.PushNotificationNotSupportedError,
        PUSH_NOT_SUPPORTED,
        "Push Notification is not supported",
        "PUSH_NOTIFICATION_NOT_SUPPORTED",
    ),
    Row(
        errors.UnsupportedOperationError,
        UNSUPPORTED_OPERATION,
        "This operation is not supported",
        "UNSUPPORTED_OPERATION",
    ),
    Row(
        errors.ContentTypeNotSupportedError,
        CONTENT_TYPE_NOT_SUPPORTED,
        "Incompatible content types",
        "CONTENT_TYPE_NOT_SUPPORTED",
        {"acceptedTypes": "text/plain"},
    ),
    Row(errors.InvalidAgentResponseError, -32006, "Invalid agent response", "INVALID_AGENT_RESPONSE"),
    Row(
        errors.ExtendedAgentCardNotConfiguredError,
        -32007,
        "Authenticated Extended Card is not configured",
        "EXTENDED_AGENT_CARD_NOT_CONFIGURED",
    ),
    Row(
        errors.ExtensionSupportRequiredError,
        EXTENSION_REQUIRED,
        "Extension support required",
        "EXTENSION_SUPPORT_REQUIRED",
    ),
    Row(
        errors.VersionNotSupportedError,
        VERSION_NOT_SUPPORTED,
        "Version not supported",
        "VERSION_NOT_SUPPORTED",
    ),
)
ERRORS: Final[Mapping[int, Row]] = {row.code: row for row in TABLE}

# The SDK's 0.3 side knows no code below -32007 and makes internal errors of these two; their text is left.
_LOST_IN_03: Final = {
    row.sentence: row.code for row in TABLE if row.code in {EXTENSION_REQUIRED, VERSION_NOT_SUPPORTED}
}
_VERSION = re.compile(r"([0-9]{1,3})(?:\.[0-9]{1,5}){0,2}")
_FIELD = re.compile(r"[A-Za-z0-9_.\[\]]{1,100}")


def error(code: int, sentence: str = "", data: list[Any] | None = None) -> dict[str, Any]:
    """Return a JSON-RPC error object; `sentence` replaces the code's own."""
    row = ERRORS[code]
    result: dict[str, Any] = {"code": code, "message": sentence or row.sentence}
    if row.reason:
        result["data"] = [
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": row.reason,
                "domain": "a2a-protocol.org",
                "metadata": dict(row.metadata),
            }
        ]
    elif data:
        result["data"] = data
    return result


def response(request_id: object, value: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON-RPC body of an error; an id that is no string or integer becomes null."""
    known = isinstance(request_id, str | int) and not isinstance(request_id, bool)
    return {"jsonrpc": "2.0", "id": request_id if known else None, "error": value}


def version_error(method: str, untrusted_version: str) -> dict[str, Any] | None:
    """Return the error of a method asked for under the other dialect's version, None when they agree.

    A missing version means 0.3 (A2A 1.0 §3.6). Only the major number decides, as in the SDK.
    """
    expected = "0.3" if method in V03_METHODS else "1.0" if method in V10_METHODS else ""
    given = untrusted_version.strip() or "0.3"
    match = _VERSION.fullmatch(given)
    if not expected or (match and match.group(1).lstrip("0") == expected.partition(".")[0].lstrip("0")):
        return None
    shown = given if match else "unknown"
    return error(
        VERSION_NOT_SUPPORTED,
        f"A2A version '{shown}' is not supported by this handler. Expected version '{expected}'.",
    )


def clean_error(value: object, method: str, no_running: str) -> dict[str, Any]:
    """Return the error that a client may see in place of the SDK's.

    `method` is the request's; `no_running` the configured sentence for a cancel that finds nothing to
    cancel. A sentence of our own passes; every other text is replaced by its code's.
    """
    given = value if isinstance(value, dict) else {}
    code = given.get("code")
    if not isinstance(code, int) or code not in ERRORS:
        code = INTERNAL
    if code == INVALID_REQUEST and method in METHODS:
        code = INVALID_PARAMS  # jsonrpc.py has refused invalid requests; the SDK calls wrong params so
    message = given.get("message")
    sentence = message if isinstance(message, str) and message in FIXED_SENTENCES else ""
    if code == INTERNAL and method in V03_METHODS and isinstance(message, str):
        code = _LOST_IN_03.get(message, INTERNAL)
    if code == TASK_NOT_CANCELABLE:
        sentence = no_running
    return error(code, sentence, _fields(given.get("data")) if code == INVALID_PARAMS else None)


def _fields(data: object) -> list[Any]:
    """Return the names of the wrong fields, as the SDK's BadRequest has them, without their values."""
    names: list[str] = []
    for item in data if isinstance(data, list) else ():
        violations = item.get("fieldViolations") if isinstance(item, dict) else None
        for violation in violations if isinstance(violations, list) else ():
            name = violation.get("field") if isinstance(violation, dict) else None
            if isinstance(name, str) and _FIELD.fullmatch(name):
                names.append(name)
    if not names:
        return []
    violations = [{"field": name, "description": "missing or invalid"} for name in names[:20]]
    return [{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}]
