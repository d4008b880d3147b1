"""Reads the persona's file and looks at its text: is it filled in, without secrets, with true tools."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.agents.placeholders import MEND as FILL_IN
from runtime.agents.placeholders import unfilled, unknown_variables, variable_mend
from runtime.agents.places import Lines, undecodable
from runtime.agents.prompt_tools import misnamed_tools
from runtime.agents.quoting import shown
from runtime.agents.regular import read_regular
from runtime.agents.texts import secret_findings
from runtime.agents.yaml_source import MAX_PROBLEMS, Report
from runtime.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from runtime.agents.tool_grants import Granted

MAX_PROMPT_BYTES = 256 * 1024


@dataclass(slots=True)
class Prompt:
    """The persona as written, None when there is none, with what is wrong with its file."""

    text: str | None
    report: Report
    warnings: list[Problem] = field(default_factory=list)


def read_prompt(path: Path, where: str, *, template: bool) -> Prompt:
    """Read the prompt file `path`, shown as `where`. With `template`, placeholders may be there."""
    own = Report(where)
    raw = read_regular(path, MAX_PROMPT_BYTES)
    if isinstance(raw, str):
        own.add(0, 0, "", raw, "write the persona there; `./gatehouse new NAME` makes one to start from")
        return Prompt(None, own)
    if len(raw) > MAX_PROMPT_BYTES:
        own.add(
            0, 0, "", f"is larger than {MAX_PROMPT_BYTES} bytes", "move facts into the grounding directory"
        )
        return Prompt(None, own)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        own.add(*undecodable(raw, error), "", "is not UTF-8", "save the file as UTF-8")
        return Prompt(None, own)
    if not text.strip():
        own.add(0, 0, "", "is empty", "write the persona there")
    elif "\x00" in text:
        own.add(*Lines(text).place(text.index("\x00")), "", "holds a NUL character", "remove it")
    for found in () if template else unfilled(text):
        own.add(found.line, found.col, "", f"still holds the placeholder {found.text}", FILL_IN)
    for found in unknown_variables(text):
        message = f"{shown(found.text)} is filled in by nothing"
        own.add(found.line, found.col, "", message, variable_mend(found.text))
    problems, warnings = secret_findings(text, where)
    for problem in problems:
        own.add(problem.line, problem.col, "", problem.message, problem.mend)
    return Prompt(text, own, warnings)


def check_tools(prompt: Prompt, granted: Granted, scripts: Collection[str]) -> None:
    """Report the tools that the prompt names wrongly, `scripts` being in the tools folder."""
    odd = 0
    for found in misnamed_tools(prompt.text or "", granted, scripts):
        if found.certain:
            prompt.report.add(found.line, found.col, "", found.message, found.mend)
        elif odd < MAX_PROBLEMS:
            odd += 1
            where = prompt.report.file
            prompt.warnings.append(Problem(where, found.line, found.col, "", found.message, found.mend))
