"""What is wrong, or only odd, with the files that an instance names: looked at where they lie.

A pack refuses the same things when the spawner builds it (`documents.py` is the walk of both). Here they are
found before anything starts, together with what no pack can know: a name in `inline_grounding` that no file
has, a document that still holds the template's words, a text that is none.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.agents.documents import MAX_PROBLEMS, Full, Walk, shown
from runtime.agents.inline import MAX_FILE_BYTES, inline_files, matches
from runtime.agents.placeholders import MEND, unfilled
from runtime.errors import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.agents.definition import Grounding
    from runtime.agents.documents import Entry

TEXTS = (".md", ".txt")
_GLOB = frozenset("*?[")


@dataclass(slots=True)
class Findings:
    """What a look at the files found. `unset` are (setting, message, mend): their place is in agent.yaml.

    `problems` keep an instance from starting; `warnings` do not.
    """

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    unset: list[tuple[str, str, str]] = field(default_factory=list)


def examine(grounding: Grounding, root: Path, tools_dir: Path | None, *, template: bool = False) -> Findings:
    """Look at every file that `grounding` makes readable, and at the tools folder when a script is granted.

    With `template`, placeholders are allowed to be there. Nothing is followed and nothing is waited for.
    """
    findings = Findings()
    walk = Walk(root=root)
    names: list[str] = []
    whole = False
    with contextlib.suppress(Full):
        names = _documents(walk, grounding.directory, "grounding_dir", findings, template)
        for number, extra in enumerate(grounding.extra):
            _documents(walk, extra, f"extra_read_dirs[{number}]", findings, template)
        if tools_dir is not None:
            for entry in walk.below(tools_dir, "tools", ".py"):
                walk.take(entry.path, _size(entry))
        whole = True
    findings.problems[:0] = walk.problems
    if walk.hidden:
        count = len(walk.hidden)
        some = ", ".join(walk.hidden[:5]) + (", …" if count > 5 else "")
        message = f"{count} with a dot in front left out of what the persona may know: {some}"
        findings.warnings.append(
            Problem(
                shown(grounding.directory, root), 0, 0, "", message, "rename what visitors should get to read"
            )
        )
    if whole:
        _inline(grounding, root, names, walk, findings)
    return findings


def _documents(walk: Walk, folder: Path, setting: str, findings: Findings, template: bool) -> list[str]:
    """Look at the files below one directory, and return their paths below it."""
    names: list[str] = []
    refused = len(walk.problems)
    for entry in walk.below(folder, shown(folder, walk.root)):
        if entry.descriptor is None:
            continue
        names.append(entry.inside)
        walk.take(entry.path, _size(entry))
        if entry.inside.endswith(TEXTS):
            _text(entry, shown(entry.path, walk.root), findings, template)
    if not names and len(walk.problems) == refused:
        message = f"{shown(folder, walk.root)!r} holds no document"
        if setting == "grounding_dir":
            findings.unset.append((setting, message, "put the public documents there"))
        else:
            findings.warnings.append(
                Problem(
                    shown(folder, walk.root), 0, 0, setting, message, "put documents there, or take it out"
                )
            )
    return names


def _text(entry: Entry, where: str, findings: Findings, template: bool) -> None:
    """Look into one text. The descriptor stays where the walk left it: `pread` moves no position."""
    raw = os.pread(entry.descriptor or 0, MAX_FILE_BYTES + 1, 0)
    try:
        text = raw[:MAX_FILE_BYTES].decode("utf-8-sig", "strict" if len(raw) <= MAX_FILE_BYTES else "ignore")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, col = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        message = "is not UTF-8 text, so a model may not be able to read it"
        if len(findings.warnings) < MAX_PROBLEMS:
            findings.warnings.append(Problem(where, line, col, "", message, "save the file as UTF-8"))
        return
    for found in () if template else unfilled(text):
        if len(findings.problems) < MAX_PROBLEMS:
            message = f"still holds the template's {_short(found.text)}"
            findings.problems.append(Problem(where, found.line, found.col, "", message, MEND))


def _inline(grounding: Grounding, root: Path, names: list[str], walk: Walk, findings: Findings) -> None:
    folder = shown(grounding.directory, root)
    refused = {problem.file for problem in walk.problems}
    for number, pattern in enumerate(grounding.inline):
        if any(matches(name, pattern) for name in names) or f"{folder}/{pattern}" in refused:
            continue
        setting, message = f"inline_grounding[{number}]", f"{pattern!r} is no file in {folder}"
        if _GLOB & set(pattern):
            message = f"no file in {folder} matches {pattern!r}"
            findings.warnings.append(
                Problem(folder, 0, 0, setting, message, "mend the pattern, or take it out")
            )
        else:
            findings.unset.append((setting, message, "give the path of a document below grounding_dir"))
    for skipped in inline_files(grounding).skipped:
        if skipped.path in names:
            message = f"is not told up front: {skipped.reason}"
            findings.warnings.append(
                Problem(
                    f"{folder}/{skipped.path}",
                    0,
                    0,
                    "",
                    message,
                    "mend it, or take it out of inline_grounding",
                )
            )


def _size(entry: Entry) -> int:
    return 0 if entry.descriptor is None else os.fstat(entry.descriptor).st_size


def _short(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:57]}...>"
