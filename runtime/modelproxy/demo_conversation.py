"""Read a request of the CLI's as the demo model sees it. Pure: the body in, a Conversation out.

The question is the line marked `"now": true` of the front's prompt (docs/reference/protocols.md); what
stands before it is memory. Without such a line (the CLI run by hand) it is the last text a user wrote.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@dataclass(frozen=True, slots=True)
class Call:
    """One finished tool call: what was asked, and the text that came back ("" for an error)."""

    name: str
    input: Mapping[str, Any]
    result: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """What the demo model goes by."""

    question: str
    memory: tuple[str, ...] = ()
    calls: tuple[Call, ...] = ()
    tools: tuple[str, ...] = ()
    system: str = ""
    described: Mapping[str, str] = field(default_factory=dict)


def texts(content: Any) -> Iterator[str]:
    """Yield the texts in a message's content."""
    if isinstance(content, str):
        yield content
    for block in content if isinstance(content, list) else []:
        if isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str):
            yield block["text"]


def _line(text: str) -> dict[str, Any] | None:
    if not text.startswith("{"):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    said = isinstance(value, dict) and isinstance(value.get("text"), str)
    return value if said else None


def _spoken(text: str) -> tuple[str, tuple[str, ...]] | None:
    lines = [value for value in map(_line, text.splitlines()) if value is not None]
    for index in range(len(lines) - 1, -1, -1):
        if lines[index].get("now") is True:
            earlier = tuple(line["text"] for line in lines[:index] if line.get("from") == "visitor")
            return lines[index]["text"], earlier
    return None


def _find_question(messages: list[Any]) -> tuple[int, str, tuple[str, ...]]:
    plain: tuple[int, str] | None = None
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") != "user":
            continue
        for text in texts(messages[index].get("content")):
            spoken = _spoken(text)
            if spoken is not None:
                return index, *spoken
            if not text.lstrip().startswith("<system-reminder>"):
                plain = plain or (index, text)
    index, text = plain or (0, "")
    return index, text, ()


def _calls(messages: list[Any]) -> Iterator[Call]:
    asked: dict[str, tuple[str, dict[str, Any]]] = {}
    for entry in messages:
        content = entry.get("content")
        for block in content if isinstance(content, list) else []:
            if block.get("type") == "tool_use":
                asked[str(block.get("id"))] = (str(block.get("name")), block.get("input") or {})
            elif block.get("type") == "tool_result" and str(block.get("tool_use_id")) in asked:
                name, given = asked[str(block["tool_use_id"])]
                result = "" if block.get("is_error") else "\n".join(texts(block.get("content")))
                yield Call(name, given, result)


def read(body: Mapping[str, Any]) -> Conversation:
    """Return what a request that passed the grammar says."""
    messages = body["messages"]
    index, question, memory = _find_question(messages)
    tools = {tool["name"]: str(tool.get("description", "")) for tool in body.get("tools", [])}
    return Conversation(
        question=question,
        memory=memory,
        calls=tuple(_calls(messages[index + 1 :])),
        tools=tuple(tools),
        system="\n".join(texts(body.get("system"))),
        described=tools,
    )
