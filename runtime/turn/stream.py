"""Turn path 11/13: untrusted CLI lines -> typed, capped TurnEvents. Pure.

A turn's container can write anything, so nothing in a line is believed beyond its own text: no line makes
this raise, ends a turn, or costs more than its length. What ends a turn is the spawner's word (`conclude`).

What counts as the answer, in order: the first `result` that is no error; else what the model said after its
last tool call; else what arrived as deltas. Text that the CLI marks as an API error is never an answer
(measured: it comes as an assistant message and as a `result` of subtype `success`).
"""

from __future__ import annotations

import json
import posixpath
import re
from typing import Any

from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step, ToolFailed, Usage

ANSWER_MAX_BYTES = 64 * 1024
LINE_MAX_BYTES = 1024 * 1024
NODES_MAX = 50_000  # objects and lists in a line: a nested one costs its parser two hundred times its bytes
SNAPSHOT_MIN_CHARS = 48
SNAPSHOT_GROWTH = 24  # and at least a 24th more: a long answer makes some 150 snapshots, not thousands
STEPS_MAX = 200
NAME_MAX_CHARS = 80
DETAIL_MAX_CHARS = 200  # of what a failed tool said; its end, where a traceback names the error
CALL_ID_MAX_CHARS = 128
OTHER_TOOL = "Other"

GRANT_PREFIX = "mcp__grants__"

_GRANT = re.compile(GRANT_PREFIX + "([A-Za-z0-9_-]{1,64})")
_API_ERROR_MARKS = ("is_api_error_message", "isApiErrorMessage")

# Why the spawner's `end` without a `result` fails a turn. `exited` is judged by what was said.
_END_CAUSES = {
    "deadline": Cause.TIMEOUT,
    "output-cap": Cause.OUTPUT,
    "engine": Cause.ENGINE,
    "shutdown": Cause.SPAWNER,
    "cancelled": Cause.CANCELLED,
}


class TurnStream:
    """Reads the lines of one turn: `feed` each line, then `conclude` once with how the turn ended."""

    def __init__(self) -> None:
        self._deltas: list[str] = []
        self._delta_chars = 0
        self._shown_chars = 0
        self._said: list[str] = []
        self._said_bytes = 0
        self._api_error = ""
        self._result: str | None = None
        self._result_failed = ""
        self._steps = 0
        self._called: dict[str, str] = {}  # tool by the call's id, until its result comes; at most STEPS_MAX

    @property
    def finished(self) -> bool:
        """Whether the CLI has given its `result`; what it writes afterwards is ignored."""
        return self._result is not None

    def feed(self, untrusted_line: str | bytes) -> list[Step | ToolFailed | Snapshot]:
        """Return what one line of the CLI's output says: [] when it says nothing known. None raises."""
        if self.finished or len(untrusted_line) > LINE_MAX_BYTES or _nodes(untrusted_line) > NODES_MAX:
            return []
        try:
            event = json.loads(untrusted_line)
        except (ValueError, RecursionError):
            return []
        if not isinstance(event, dict) or event.get("parent_tool_use_id"):
            return []
        match event.get("type"):
            case "stream_event":
                return self._stream_event(_mapping(event.get("event")))
            case "assistant":
                return self._assistant(event)
            case "user":
                return self._tool_results(event)
            case "result":
                self._take_result(event)
        return []

    def conclude(
        self,
        reason: str,
        *,
        exit_code: int | None = None,
        oom: bool = False,
        detail: str = "",
        usage: Usage = Usage(),  # noqa: B008  immutable
    ) -> Answer | Failed:
        """Return the turn's one terminal event.

        `reason` is the spawner's: `exited`, `deadline`, `output-cap`, `engine`, `cancelled` or `shutdown`.
        A `result` that arrived before the end counts whatever the reason; without one, only a turn that
        exited can still have an answer.
        """
        if self._result_failed:
            return Failed(Cause.MODEL, self._result_failed, usage)
        if self._result is not None:
            text = self._result.strip() or self._spoken()
            if text:
                return Answer(text, usage)
            cause = Cause.MODEL if self._api_error else Cause.EMPTY
            return Failed(cause, "the CLI gave an empty result", usage)
        if reason != "exited":
            return Failed(
                _END_CAUSES.get(reason, Cause.INTERNAL), detail or f"the turn ended: {reason}", usage
            )
        if self._api_error:
            return Failed(Cause.MODEL, "the CLI reported an API error and no result", usage)
        broken = oom or exit_code != 0
        text = "\n\n".join(self._said).strip() if broken else self._spoken()
        if text:
            return Answer(_capped(text), usage)
        if broken:
            why = "out of memory" if oom else f"exit code {exit_code}"
            return Failed(Cause.CRASH, f"the CLI ended without a result ({why}) {detail}".strip(), usage)
        return Failed(Cause.EMPTY, "the CLI ended without a result", usage)

    def _spoken(self) -> str:
        """Return what the model said since its last tool call: whole messages, else what came as deltas."""
        text = "\n\n".join(self._said).strip() or "".join(self._deltas).strip()
        return "" if self._api_error and text == self._api_error else _capped(text)

    def _stream_event(self, event: dict[str, Any]) -> list[Step | ToolFailed | Snapshot]:
        match event.get("type"):
            case "message_start":
                self._deltas.clear()
                self._delta_chars = self._shown_chars = 0
                self._api_error = ""
            case "content_block_delta":
                delta = _mapping(event.get("delta"))
                text = delta.get("text")
                if delta.get("type") == "text_delta" and isinstance(text, str):
                    return self._delta(text)
            case "content_block_stop":
                return self._snapshot(least=1)
        return []

    def _delta(self, text: str) -> list[Step | ToolFailed | Snapshot]:
        room = ANSWER_MAX_BYTES - self._delta_chars
        if room <= 0:
            return []
        self._deltas.append(text[:room])
        self._delta_chars += len(text[:room])
        return self._snapshot(least=max(SNAPSHOT_MIN_CHARS, self._shown_chars // SNAPSHOT_GROWTH))

    def _snapshot(self, *, least: int) -> list[Step | ToolFailed | Snapshot]:
        if self._delta_chars - self._shown_chars < least:
            return []
        self._shown_chars = self._delta_chars
        text = _capped("".join(self._deltas))
        return [Snapshot(text)] if text.strip() else []

    def _assistant(self, event: dict[str, Any]) -> list[Step | ToolFailed | Snapshot]:
        message = _mapping(event.get("message"))
        content = message.get("content")
        blocks = content if isinstance(content, list) else []
        texts = [block["text"] for block in blocks if _is_block(block, "text", "text")]
        if any(source.get(mark) for source in (event, message) for mark in _API_ERROR_MARKS):
            self._api_error = "".join(texts).strip() or "API error"
            self._deltas.clear()
            self._delta_chars = self._shown_chars = 0
            return []
        steps: list[Step | ToolFailed | Snapshot] = []
        for block in blocks:
            if _is_block(block, "text", "text"):
                self._say(block["text"])
            elif _is_block(block, "tool_use", "name"):
                self._said.clear()
                self._said_bytes = 0
                if self._steps < STEPS_MAX:
                    self._steps += 1
                    step = step_of(block["name"], block.get("input"))
                    steps.append(step)
                    if _is_block(block, "tool_use", "id") and len(block["id"]) <= CALL_ID_MAX_CHARS:
                        self._called[block["id"]] = step.tool
        return steps

    def _tool_results(self, event: dict[str, Any]) -> list[Step | ToolFailed | Snapshot]:
        """Return the failures of tools whose step was told; each call has one result."""
        content = _mapping(event.get("message")).get("content")
        failures: list[Step | ToolFailed | Snapshot] = []
        for block in content if isinstance(content, list) else []:
            if not _is_block(block, "tool_result", "tool_use_id"):
                continue
            tool = self._called.pop(block["tool_use_id"], None)
            if tool is not None and block.get("is_error") is True:
                failures.append(ToolFailed(tool, _detail(block.get("content"))))
        return failures

    def _say(self, text: str) -> None:
        text = _capped(text)
        if text.strip() and self._said_bytes < ANSWER_MAX_BYTES:
            self._api_error = ""
            self._said.append(text)
            self._said_bytes += len(text)

    def _take_result(self, event: dict[str, Any]) -> None:
        text = event.get("result")
        if not isinstance(text, str):
            text = event.get("text")
        self._result = _capped(text) if isinstance(text, str) else ""
        subtype = event.get("subtype")
        if event.get("is_error"):
            self._result_failed = "the CLI marked its result as an error"
        elif isinstance(subtype, str) and subtype.startswith("error"):
            self._result_failed = "the CLI ended without an answer (turns, budget or execution)"
        elif self._api_error and self._result.strip() in {"", self._api_error}:
            self._result_failed = "the CLI's result is an API error"


def _nodes(untrusted_line: str | bytes) -> int:
    """Return at least the number of objects and lists that parsing a line would make."""
    if isinstance(untrusted_line, str):
        return untrusted_line.count("{") + untrusted_line.count("[")
    return untrusted_line.count(b"{") + untrusted_line.count(b"[")


def step_of(untrusted_tool: str, untrusted_input: object) -> Step:
    """Return the step that a tool call shows: fixed words, a file's base name, a granted tool's name."""
    grant = _GRANT.fullmatch(untrusted_tool)
    if grant:
        name = grant.group(1)
        if "intake" in name or "book" in name:
            return Step(GRANT_PREFIX + name, "Recording your request")
        return Step(GRANT_PREFIX + name, f"Using {name}")
    match untrusted_tool:
        case "Read":
            path = _mapping(untrusted_input).get("file_path")
            name = _capped(posixpath.basename(path)) if isinstance(path, str) else ""
            name = "".join(character for character in name if character.isprintable())[:NAME_MAX_CHARS]
            return Step("Read", f"Reading {name}" if name else "Reading")
        case "Glob":
            return Step("Glob", "Looking for files")
        case "Grep":
            return Step("Grep", "Searching")
    return Step(OTHER_TOOL, "Working")


def _detail(untrusted_content: object) -> str:
    """Return the end of what a failed tool said, on one line: a text, or the texts of a list of blocks."""
    blocks = untrusted_content if isinstance(untrusted_content, list) else []
    texts = [untrusted_content] if isinstance(untrusted_content, str) else []
    texts += [block["text"] for block in blocks if _is_block(block, "text", "text")]
    words = " ".join(text[-ANSWER_MAX_BYTES:] for text in texts)[-ANSWER_MAX_BYTES:].split()
    line = "".join(character for character in " ".join(words) if character.isprintable())
    return line if len(line) <= DETAIL_MAX_CHARS else "…" + line[1 - DETAIL_MAX_CHARS :]


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_block(block: object, kind: str, key: str) -> bool:
    return isinstance(block, dict) and block.get("type") == kind and isinstance(block.get(key), str)


def _capped(text: str) -> str:
    """Return at most 64 KiB of `text` as UTF-8 carries it: surrogate pairs joined, lone ones replaced."""
    text = text[:ANSWER_MAX_BYTES].replace("\x00", "")
    text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    raw = text.encode()
    return text if len(raw) <= ANSWER_MAX_BYTES else raw[:ANSWER_MAX_BYTES].decode("utf-8", "ignore")
