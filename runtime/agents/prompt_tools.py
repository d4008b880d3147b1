"""Finds the tools that a prompt names wrongly: by a path that no turn has, or that nothing grants.

A turn's tools are the granted ones of Read, Glob and Grep, and each granted script as `mcp__grants__NAME`; a
script stands at `${tools_dir}/NAME.py` and nowhere else. A prompt that names another makes the model promise,
try, fail and spend its few requests on it.

Certain are paths: a script that exists under a wrong path, `${tools_dir}/NAME.py` that is not there or not
granted, `mcp__grants__NAME` of a script that is there and not granted. That keeps an instance from starting.
Everything else is found by words, in whatever language the persona speaks, and is a warning. Pure.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime.agents.clauses import clause_at, is_denied
from runtime.agents.places import Lines
from runtime.agents.quoting import shown
from runtime.agents.tool_grants import BUILTIN

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from runtime.agents.tool_grants import Granted

_OWN_NAMES = (
    *("Glob", "Grep", "WebFetch", "WebSearch", "MultiEdit", "NotebookEdit", "NotebookRead", "TodoWrite"),
    *("BashOutput", "KillShell", "ExitPlanMode", "SlashCommand", "AskUserQuestion"),
)
_WORDS = "Read|Write|Edit|Bash|Task|Skill"  # words of ordinary prose too
_ANY = "|".join((*_OWN_NAMES, _WORDS))
_OWN_NAME = re.compile(rf"\b(?:{'|'.join(_OWN_NAMES)})\b")
_VERB = (
    r"(?:us(?:e|es|ing)|call(?:s|ing)?|run(?:s|ning)?|invoke|try|with|via|through|benutze|nutze|verwende|mit"
    r"|utilise[rz]?|appelle[rz]?|avec|us[aeo]r?|llama|utiliza|con|com|gebruik|met|użyj|używaj|используй|استخدم)"
)
_WORD_AS_TOOL = re.compile(
    rf"(?i:\b{_VERB}\s+(?:(?:the|your|le|la|el|o|das|den|die|de|het)\s+)?)"
    rf"(?:`(?P<quoted>{_WORDS})`|(?P<bare>{_WORDS})(?=\s+tool\b))"
    rf"|\b[Tt]ools?:?\s+`(?P<said>{_WORDS})`"
)
_LIST = re.compile(rf"\b(?:{_ANY})\b(?:(?:, (?:and |or )?| and | or |,|/)(?:{_ANY})\b){{1,20}}")
_OF_TOOLS = re.compile(rf"(?i)(?:\b{_VERB}|\btools?\b[^.\n]{{0,12}})\W*$")
_PATH = re.compile(r"(?<![\w./~${}:-])((?:[\w.~${}-]*/)*)([\w-]+)\.py\b(?![/\w])")
_NEARLY = re.compile(r"(?:.*/)?[${]{0,2}tools_dir\}?/")
_MCP = re.compile(r"\bmcp__([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*)__([A-Za-z0-9_-]+)")
_TRUE_FOLDERS = frozenset({"${tools_dir}/", "${instance_dir}/tools/"})
_RUNS = re.compile(rf"(?i)\b{_VERB}\b")
MAX_WORDS = 200  # of tools, that are looked at: only warnings come of them
MAX_NAMES = 1000  # of paths, and of names on a server: each costs a look at the words round it


@dataclass(frozen=True, slots=True)
class Misnamed:
    """One place of a prompt that names a tool wrongly; line and column from 1.

    `certain` says that it is wrong whatever the words round it mean.
    """

    line: int
    col: int
    message: str
    mend: str
    certain: bool


_Found = tuple[int, str, str, bool]


def is_named(name: str, prompt: str) -> bool:
    """Say whether a prompt names a script as a tool: by its path, its name for the model, or as a name.

    A name that is a plain word (`menu`) needs a sign that the script is meant: quotes, a colon, the word
    `tool` or `script` behind it, or a verb such as `use` right before it.
    """
    word = re.escape(name)
    forms = [rf"(?<!\w)mcp__grants__{word}(?!\w)", rf"(?<!\w){word}\.py\b"]
    if re.fullmatch(r"[a-z]+", name):
        forms += [
            rf"[`'\"\u201c\u201e\u00ab\u2018]\s?{word}\s?[`'\"\u201c\u201d\u00bb\u2019]",
            rf"(?<!\w){word}\*{{0,2}}[ \u00a0]?:",
            rf"(?<!\w){word}\s+(?:tool|script)\b",
            rf"(?i:\b(?:use|call|run|ask)\s+){word}(?!\w)",
        ]
    else:
        forms.append(rf"(?<!\w){word}(?!\w)")
    return any(re.search(form, prompt) for form in forms)


def is_mentioned(name: str, prompt: str) -> bool:
    """Say whether the word that a script is named by stands in a prompt at all, whatever it means there."""
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", prompt) is not None


def misnamed_tools(prompt: str, granted: Granted, scripts: Collection[str]) -> Iterator[Misnamed]:
    """Yield each wrong name. `scripts` are the names of the files in the tools folder, without `.py`.

    What a clause denies ("Do not use WebFetch") is no wrong name; a script's wrong path always is.
    """
    lines = Lines(prompt)
    for offset, message, mend, certain in itertools.chain(
        _paths(prompt, granted, scripts), _served(prompt, granted, scripts), _builtin(prompt, granted)
    ):
        yield Misnamed(*lines.place(offset), message, mend, certain)


def _paths(prompt: str, granted: Granted, scripts: Collection[str]) -> Iterator[_Found]:
    for match in itertools.islice(_PATH.finditer(prompt), MAX_NAMES):
        folder, name = match.groups()
        known = name in scripts or name in granted.tools.granted
        if folder in _TRUE_FOLDERS:
            if not known:
                yield match.start(), *_absent(name), True
            elif granted.lacks(name) and not is_denied(prompt, match.start()):
                yield match.start(), *_ungranted(name), True
            continue
        mend = f"write `${{tools_dir}}/{shown(name)}.py`, or the tool's name without a path"
        message = f"names a tool by a path that no turn has: {shown(match[0])}"
        if known or _NEARLY.fullmatch(folder):
            yield match.start(), message, mend, True
        elif folder.endswith("tools/") and _is_told_to_run(prompt, match.start()):
            mend = "put the script into the tools folder and grant it, or take the path out"
            yield match.start(), message, mend, False


def _is_told_to_run(prompt: str, offset: int) -> bool:
    return bool(_RUNS.search(clause_at(prompt, offset).own)) and not is_denied(prompt, offset)


def _served(prompt: str, granted: Granted, scripts: Collection[str]) -> Iterator[_Found]:
    for match in itertools.islice(_MCP.finditer(prompt), MAX_NAMES):
        server, name = match.groups()
        if (server == "grants" and not granted.lacks(name)) or is_denied(prompt, match.start()):
            continue
        if server != "grants":
            message = f"names {shown(match[0])}, and a turn has no MCP server but `grants`"
            yield match.start(), message, "take it out, or grant a script of the tools folder", False
        elif name in scripts:
            yield match.start(), *_ungranted(name), True
        else:
            yield match.start(), *_absent(name), False


def _ungranted(name: str) -> tuple[str, str]:
    mend = f"add Bash(python3 ${{tools_dir}}/{name}.py:*) to allowed_tools, or take the name out"
    return f"names the script {name}, which is not granted", mend


def _absent(name: str) -> tuple[str, str]:
    message = f"names the script {shown(name)}, which is not in the tools folder"
    return message, "mend the name, or take it out"


def _builtin(prompt: str, granted: Granted) -> Iterator[_Found]:
    found: dict[int, str] = {match.start(): match[0] for match in _OWN_NAME.finditer(prompt)}
    for match in _WORD_AS_TOOL.finditer(prompt):
        group = match.lastgroup or "quoted"
        found[match.start(group)] = match[group]
    for listed in _LIST.finditer(prompt):
        before = prompt[max(0, listed.start() - 40) : listed.start()]
        if "Bash" in listed[0] or _OWN_NAME.search(listed[0]) or _OF_TOOLS.search(before):
            parts = re.finditer(rf"\b(?:{_ANY})\b", listed[0])
            found |= {listed.start() + part.start(): part[0] for part in parts}
    for offset, name in sorted(found.items())[:MAX_WORDS]:
        if not granted.lacks(name, builtin=True) or is_denied(prompt, offset):
            continue
        mend = "take it out: a turn has Read, Glob, Grep and granted scripts, as far as they are granted"
        if name in BUILTIN:
            mend = f"add {name} to allowed_tools, or take the name out"
        yield offset, f"names the tool {name}, which is not granted", mend, False
