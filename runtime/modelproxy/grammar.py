"""Decide what a turn may ask of the model. Pure: bytes and terms in, a Checked value out.

An allowed model API is a capability, not just a destination (architecture §2): with server tools, URLs or
file sources the API itself would fetch and send for the visitor. So the grammar is closed: what is not in
the tables below is refused. They hold what the pinned CLI was recorded to send
(tests/unit/modelproxy/recorded/); the reference is docs/reference/model-grammar.md.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runtime.modelproxy.decision import ALLOWED, Decision
from runtime.strict_json import StrictJsonError, parse_object

if TYPE_CHECKING:
    from collections.abc import Mapping

IMAGE_TOKENS: Final = 5_000  # what a picture costs whatever its bytes: more than the largest a model looks at

TOP: Final[Mapping[str, tuple[type, ...]]] = {
    "model": (str,),
    "messages": (list,),
    "system": (str, list),
    "tools": (list,),
    "tool_choice": (dict,),
    "metadata": (dict,),
    "max_tokens": (int,),
    "thinking": (dict,),
    "context_management": (dict,),
    "output_config": (dict,),
    "stream": (bool,),
    "temperature": (int, float),
    "top_p": (int, float),
    "top_k": (int,),
    "stop_sequences": (list,),
}
"""Every key a request may have, and its JSON types. Absent on purpose: mcp_servers, container,
service_tier."""

NOT_COUNTED: Final = ("metadata", "stream", "max_tokens")
"""What count_tokens has no use for. It is not forwarded: the turn's `metadata` would be the device's, not the
visitor's, and a streamed count or an unchecked `max_tokens` is no request that was ever recorded."""

MESSAGE_KEYS: Final = frozenset({"role", "content", "output_config"})
ROLES: Final = frozenset({"user", "assistant", "system"})
BLOCKS: Final = frozenset(
    {"text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking"}
)
MEDIA: Final = frozenset({"image", "document"})
SOURCES: Final = frozenset({"base64", "text"})
TOOL_TYPES: Final = frozenset({None, "custom"})
TOOL_CHOICES: Final = frozenset({"auto", "any", "tool", "none"})


@dataclass(frozen=True, slots=True)
class Terms:
    """What a door allows: the model's exact id, the visitor's HMAC, and the cap on `max_tokens`."""

    model: str
    visitor: str
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Checked:
    """The verdict and, when it allows, the request to send: re-serialised, with the visitor put in.

    `worst_input_tokens` is what the model may read at most: half a token a byte, and IMAGE_TOKENS for each
    picture and document, whose bytes say nothing of their size.
    """

    decision: Decision
    body: bytes = b""
    model: str = ""
    max_tokens: int = 0
    stream: bool = False
    worst_input_tokens: int = 0


class _Refused(Exception):
    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.decision = Decision(allow=False, reason=reason, control="MODEL-03")


def check(raw: bytes, terms: Terms, *, counting: bool = False) -> Checked:
    """Return the verdict on one body. Never raises; the work is bounded by the body's size.

    `counting` is for count_tokens: what is only of use with an answer is left out of what is sent.
    """
    try:
        body = parse_object(raw)
        _top(body, counting=counting)
        _model(body, terms)
        max_tokens = 0 if counting else _max_tokens(body, terms)
        _tools(body)
        media = _content(body.get("system", "")) + _messages(body["messages"])
    except StrictJsonError as error:
        return Checked(_Refused(str(error)).decision)
    except _Refused as refused:
        return Checked(refused.decision)
    if counting:
        for key in NOT_COUNTED:
            body.pop(key, None)
    else:
        body["metadata"] = {"user_id": terms.visitor}
    sent = json.dumps(body, separators=(",", ":"), ensure_ascii=True).encode("ascii")
    worst = len(sent) // 2 + media * IMAGE_TOKENS
    return Checked(ALLOWED, sent, body["model"], max_tokens, body.get("stream", False), worst)


def _is(value: Any, kinds: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in kinds
    return isinstance(value, kinds)


def _top(body: dict[str, Any], *, counting: bool) -> None:
    for key, value in body.items():
        kinds = TOP.get(key)
        if kinds is None:
            raise _Refused("unknown key")
        if not _is(value, kinds):
            raise _Refused("key of the wrong type")
    needed = {"model", "messages"} if counting else {"model", "messages", "max_tokens"}
    if not needed <= body.keys():
        raise _Refused("key missing")


def _model(body: dict[str, Any], terms: Terms) -> None:
    if body["model"] != terms.model:
        raise _Refused("another model")


def _max_tokens(body: dict[str, Any], terms: Terms) -> int:
    value: int = body["max_tokens"]
    if not 1 <= value <= terms.output_tokens:
        raise _Refused("max_tokens out of range")
    budget = body.get("thinking", {}).get("budget_tokens", 1)
    if not _is(budget, (int,)) or not 0 <= budget <= terms.output_tokens:
        raise _Refused("thinking budget out of range")
    return value


def _tools(body: dict[str, Any]) -> None:
    for tool in body.get("tools", []):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
            raise _Refused("malformed tool")
        kind = tool.get("type")
        if not isinstance(kind, str | None) or kind not in TOOL_TYPES:
            raise _Refused("server tool")
    choice = body.get("tool_choice", {"type": "auto"}).get("type")
    if not isinstance(choice, str) or choice not in TOOL_CHOICES:
        raise _Refused("unknown tool choice")


def _messages(messages: list[Any]) -> int:
    """Check messages; return how many pictures and documents they hold."""
    media = 0
    for entry in messages:
        if not isinstance(entry, dict) or not entry.keys() <= MESSAGE_KEYS:
            raise _Refused("malformed message")
        role = entry.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise _Refused("unknown role")
        media += _content(entry.get("content"))
    return media


def _content(content: Any) -> int:
    """Check content and what tool results hold; return how many pictures and documents there are.

    A tool call's `input` is data and is not looked at.
    """
    media = 0
    waiting = [content]
    while waiting:
        part = waiting.pop()
        if isinstance(part, str):
            continue
        if not isinstance(part, list):
            raise _Refused("malformed content")
        for block in part:
            waiting.extend(_block(block))
            media += block["type"] in MEDIA
    return media


def _block(block: Any) -> list[Any]:
    if not isinstance(block, dict):
        raise _Refused("malformed content")
    kind = block.get("type")
    if not isinstance(kind, str) or kind not in BLOCKS:
        raise _Refused("content block not allowed")
    if kind in MEDIA:
        source = block.get("source")
        if not isinstance(source, dict):
            raise _Refused("source not allowed")
        source_kind = source.get("type")
        if not isinstance(source_kind, str) or source_kind not in SOURCES:
            raise _Refused("source not allowed")
        if "file_id" in source or "url" in source:
            raise _Refused("source not allowed")
    return [block["content"]] if kind == "tool_result" and "content" in block else []
