"""Finds the tools that a prompt names wrongly: by a path that no turn has, or that nothing grants.

Why it keeps an instance from starting: the model would promise, try, fail and spend its few requests on it.
A turn's tools are the granted ones of Read, Glob and Grep, and each granted script as `mcp__grants__NAME`; a
script stands at `${tools_dir}/NAME.py` and nowhere else. Pure.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.agents.clauses import is_denied
from runtime.agents.places import Lines
from runtime.agents.quoting import shown
from runtime.agents.tool_grants import BUILTIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from runtime.agents.definition import Tools

_OWN_NAMES = (
    *("Glob", "Grep", "WebFetch", "WebSearch", "MultiEdit", "NotebookEdit", "NotebookRead", "TodoWrite"),
    *("BashOutput", "KillShell", "ExitPlanMode", "SlashCommand", "AskUserQuestion"),
)
_WORDS = ("Read", "Write", "Edit", "Bash", "Task", "Skill")  # words of English too
_ANY = "|".join((*_OWN_NAMES, *_WORDS))
_OWN_NAME = re.compile(rf"\b(?:{'|'.join(_OWN_NAMES)})\b")
_WORD_AS_TOOL = re.compile(rf"(?<=`)(?:{_ANY})(?=`)|\b(?:{_ANY})(?= tool\b)")
_LIST = re.compile(rf"\b(?:{_ANY})\b(?:(?:, (?:and |or )?| and | or |,|/)(?:{_ANY})\b){{1,20}}")
_PATH = re.compile(r"(?<![\w./~${}:-])((?:[\w.~${}-]*/)*)([A-Za-z0-9_-]+)\.py\b(?![/\w])")
_MCP = re.compile(r"\bmcp__([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)__([A-Za-z0-9_-]+)")
_TRUE_FOLDERS = frozenset({"${tools_dir}/", "${instance_dir}/tools/"})
MAX_NAMES = 1000  # of each kind that are looked at: each costs a look at the words round it


@dataclass(frozen=True, slots=True)
class Misnamed:
    """One place of a prompt that names a tool wrongly; line and column from 1."""

    line: int
    col: int
    message: str
    mend: str


def is_named(name: str, prompt: str) -> bool:
    """Say whether a prompt names a script at all: as a word, by its path or by its name for the model."""
    return re.search(rf"(?:(?<!\w)|mcp__grants__){re.escape(name)}(?!\w)", prompt) is not None


def misnamed_tools(prompt: str, tools: Tools, scripts: Collection[str]) -> Iterator[Misnamed]:
    """Yield each wrong name. `scripts` are the names of the files in the tools folder, without `.py`.

    What a clause denies ("Do not use WebFetch") is no wrong name; a path that no turn has always is.
    """
    lines = Lines(prompt)
    for offset, message, mend in itertools.chain(
        _paths(prompt, tools, scripts), _served(prompt, tools, scripts), _builtin(prompt, tools)
    ):
        yield Misnamed(*lines.place(offset), message, mend)


def _paths(prompt: str, tools: Tools, scripts: Collection[str]) -> Iterator[tuple[int, str, str]]:
    for match in itertools.islice(_PATH.finditer(prompt), MAX_NAMES):
        folder, name = match.groups()
        known = name in scripts or name in tools.granted
        if folder in _TRUE_FOLDERS:
            if name not in tools.granted and not is_denied(prompt, match.start()):
                yield match.start(), *_ungranted(name, scripts)
        elif known or folder.endswith(("tools/", "tools_dir}/")):
            mend = f"write `${{tools_dir}}/{shown(name)}.py`, or the tool's name without a path"
            yield match.start(), f"names a tool by a path that no turn has: {shown(match[0])}", mend


def _served(prompt: str, tools: Tools, scripts: Collection[str]) -> Iterator[tuple[int, str, str]]:
    for match in itertools.islice(_MCP.finditer(prompt), MAX_NAMES):
        server, name = match.groups()
        if (server == "grants" and name in tools.granted) or is_denied(prompt, match.start()):
            continue
        if server == "grants":
            yield match.start(), *_ungranted(name, scripts)
        else:
            message = f"names {shown(match[0])}, and a turn has no MCP server but `grants`"
            yield match.start(), message, "take it out, or grant a script of the tools folder"


def _ungranted(name: str, scripts: Collection[str]) -> tuple[str, str]:
    if name in scripts:
        grant = f"add Bash(python3 ${{tools_dir}}/{name}.py:*) to allowed_tools, or take the name out"
        return f"names the script {name}, which is not granted", grant
    return (
        f"names the script {shown(name)}, which is not in the tools folder",
        "mend the name, or take it out",
    )


def _builtin(prompt: str, tools: Tools) -> Iterator[tuple[int, str, str]]:
    found: dict[int, str] = {match.start(): match[0] for match in _OWN_NAME.finditer(prompt)}
    found |= {match.start(): match[0] for match in _WORD_AS_TOOL.finditer(prompt)}
    for listed in _LIST.finditer(prompt):
        parts = [(listed.start() + part.start(), part[0]) for part in re.finditer(r"\w+", listed[0])]
        names = [(offset, name) for offset, name in parts if name not in {"and", "or"}]
        if len(names) > 2 or _OWN_NAME.search(listed[0]):
            found |= dict(names)
    for offset, name in sorted(found.items())[:MAX_NAMES]:
        if name in tools.builtin or is_denied(prompt, offset):
            continue
        mend = "take it out: a turn has Read, Glob, Grep and granted scripts, as far as they are granted"
        if name in BUILTIN:
            mend = f"add {name} to allowed_tools, or take the name out"
        yield offset, f"names the tool {name}, which is not granted", mend
