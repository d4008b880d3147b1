"""Bytes of a turn's first request to the model ÷ those of the same turn narrowed by --allowedTools alone."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from tests.bench.numbers import Row
from tests.bench.turn_times import TEXT
from tests.harness.turnbox import Boxes, turn_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.agents.definition import AgentDefinition
    from tests.harness.stack import Stack

NARROWING = ("--tools", "--disallowedTools", "--setting-sources")  # each with a value
SWITCHES = ("--restricted", "--strict-mcp-config", "--disable-slash-commands")


def allowed_tools_only(body: dict[str, Any]) -> None:
    """Take from a turn's CLI call all that narrows it but --allowedTools."""
    command: list[str] = body["Cmd"]
    for flag in NARROWING:
        at = command.index(flag)
        del command[at : at + 2]
    for flag in SWITCHES:
        command.remove(flag)


def size(body: dict[str, Any]) -> int:
    """Return the size of a request's body in bytes."""
    return len(json.dumps(body, ensure_ascii=False).encode())


def one_line_persona(body: dict[str, Any]) -> None:
    """Replace the persona by one line: its size is the owner's, and hides what the call itself costs."""
    at = body["Cmd"].index("--append-system-prompt-file")
    body["Cmd"][at : at + 2] = ["--append-system-prompt", "You answer for Ada Lovelace."]


def measure(stack: Stack) -> list[Row]:
    """Compare for a persona of one line and for Ada's, with a granted tool and without."""
    boxes = Boxes(stack)
    bare = dataclasses.replace(boxes.agent, tools=dataclasses.replace(boxes.agent.tools, granted=()))

    def sent(agent: AgentDefinition, *changes: Callable[[dict[str, Any]], None]) -> dict[str, Any]:
        def change(body: dict[str, Any]) -> None:
            for one in changes:
                one(body)

        marker = stack.script({"text": TEXT})
        boxes.real_turn(agent, change).run(turn_line(f"Who was she? {marker}"))
        return dict(stack.requests(marker)[0]["body"])

    rows = []
    try:
        for persona, changes in (("of one line", [one_line_persona]), ("Ada's", [])):
            for grants, agent in ((1, boxes.agent), (0, bare)):
                narrow = sent(agent, *changes)
                ours, theirs = size(narrow), size(sent(agent, allowed_tools_only, *changes))
                kind = f"{narrow['model']}, grants: {grants}, persona {persona}"
                rows.append(
                    Row(
                        f"request bytes ÷ only --allowedTools, {kind}",
                        ours / theirs,
                        digits=3,
                        said=f"{ours} ÷ {theirs}",
                        parts={"bytes": ours, "allowed_tools_only_bytes": theirs},
                    )
                )
    finally:
        boxes.close()
    return rows
