"""What is wrong, or only odd, with the files that an instance names: looked at where they lie.

A pack refuses the same things when the spawner builds it (`documents.py` is the walk of both). Here they are
found before anything starts, together with what no pack can know: a name in `inline_grounding` that no file
has, a document that still holds the template's words or a secret, a size that makes answers slow.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.agents.definition import Grounding
from runtime.agents.documents import MAX_PROBLEMS, Full, Walk, from_root
from runtime.agents.inline import inline_files, matches
from runtime.agents.quoting import shown
from runtime.agents.sizes import slow_documents, slow_folder
from runtime.agents.texts import Look
from runtime.errors import Problem

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.agents.documents import Entry

_GLOB = frozenset("*?[")
GROUNDING = "grounding_dir"


@dataclass(frozen=True, slots=True)
class AtSetting:
    """Something about a setting, whose place in the file the caller knows. `certain` keeps from starting."""

    setting: str
    message: str
    mend: str
    certain: bool = True


@dataclass(slots=True)
class Findings:
    """What a look at the files found: `problems` keep an instance from starting, `warnings` do not.

    `inlined_bytes` are told up front; `words` are those of the asked ones that some document has. `whole`
    says that every document was looked at to its end, so that a word that is not in `words` is in none.
    """

    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    settings: list[AtSetting] = field(default_factory=list)
    inlined_bytes: int = 0
    words: set[str] = field(default_factory=set)
    whole: bool = False


def examine(
    folders: list[tuple[str, Path]],
    inline: tuple[str, ...],
    root: Path,
    tools_dir: Path | None,
    *,
    template: bool = False,
    words: frozenset[str] = frozenset(),
) -> Findings:
    """Look at every file of the directories that settings name, and at the tools when a script is granted.

    `folders` are (setting, directory); those that cannot be used are left out by the caller. With `template`,
    placeholders are allowed to be there. Nothing is followed and nothing is waited for.
    """
    findings = Findings()
    walk = Walk(root=root)
    look = Look(template=template)
    names: dict[str, list[str]] = {}
    with contextlib.suppress(Full):
        for setting, folder in folders:
            names[setting] = []
            _documents(walk, folder, setting, names[setting], look, findings, words)
        if tools_dir is not None:
            for entry in walk.below(tools_dir, "tools", ".py"):
                walk.take(entry.path, _size(entry))
                _look(look, entry, walk)
        findings.whole = True
    findings.problems += walk.problems + look.problems
    findings.warnings += look.warnings
    _odd(folders, walk, look, names, findings)
    if findings.whole and GROUNDING in names:
        _inline(dict(folders)[GROUNDING], inline, root, names[GROUNDING], walk, findings)
    findings.whole = findings.whole and not look.unseen
    _cut(findings.problems)
    _cut(findings.warnings)
    return findings


def _cut(problems: list[Problem]) -> None:
    """Leave the first fifty and one that says how many there are besides."""
    more = len(problems) - MAX_PROBLEMS
    if more > 0:
        where = problems[0].file.rpartition("/")[0]
        del problems[MAX_PROBLEMS:]
        message = f"{more} more findings than are shown"
        problems.append(Problem(where, 0, 0, "", message, "mend these and check again"))


def _documents(
    walk: Walk,
    folder: Path,
    setting: str,
    names: list[str],
    look: Look,
    findings: Findings,
    words: frozenset[str],
) -> None:
    """Look at the files below one directory, and add their paths below it to `names`."""
    refused = len(walk.problems)
    for entry in walk.below(folder, from_root(folder, walk.root)):
        if entry.descriptor is None:
            continue
        names.append(entry.inside)
        walk.take(entry.path, _size(entry))
        text = _look(look, entry, walk)
        missing = words - findings.words
        if missing:
            lowered = f"{entry.inside}\n{text}".lower()
            findings.words |= {word for word in missing if word in lowered}
    if not names and len(walk.problems) == refused:
        message = f"{from_root(folder, walk.root)!r} holds no document"
        needed = setting == GROUNDING
        mend = "put the public documents there" if needed else "put documents there, or take it out"
        findings.settings.append(AtSetting(setting, message, mend, certain=needed))


def _look(look: Look, entry: Entry, walk: Walk) -> str:
    if entry.descriptor is None:
        return ""
    return look.file(entry.descriptor, _size(entry), entry.path.name, from_root(entry.path, walk.root))


def _odd(
    folders: list[tuple[str, Path]], walk: Walk, look: Look, names: dict[str, list[str]], findings: Findings
) -> None:
    """Add the warnings that are about many files together."""
    for setting, folder in folders[:1]:
        where = from_root(folder, walk.root)
        if walk.hidden:
            count = len(walk.hidden)
            some = ", ".join(walk.hidden[:5]) + (", …" if count > 5 else "")
            message = f"{count} with a dot in front left out of what the persona may know: {some}"
            findings.warnings.append(
                Problem(where, 0, 0, "", message, "rename what visitors should get to read")
            )
        if look.unseen:
            message = f"{len(look.unseen)} files not looked through for secrets to their end"
            mend = f"make them smaller, first of all {look.unseen[0]}"
            findings.warnings.append(Problem(where, 0, 0, setting, message, mend))
    slow = list(slow_documents(look.documents))
    for setting, folder in folders:
        slow += slow_folder(from_root(folder, walk.root), len(names.get(setting, ())))
    findings.warnings += (
        Problem(one.where, one.line, 1 if one.line else 0, "", f"answers slowly: {one.message}", one.mend)
        for one in slow
    )


def _inline(
    directory: Path, patterns: tuple[str, ...], root: Path, names: list[str], walk: Walk, findings: Findings
) -> None:
    folder = from_root(directory, root)
    refused = {problem.file for problem in walk.problems}
    for number, pattern in enumerate(patterns):
        if any(matches(name, pattern) for name in names) or f"{folder}/{pattern}" in refused:
            continue
        setting, message = f"inline_grounding[{number}]", f"{shown(pattern)!r} is no file in {folder}"
        if _GLOB & set(pattern):
            message = f"no file in {folder} matches {shown(pattern)!r}"
            mend = "mend the pattern, or take it out"
            findings.settings.append(AtSetting(setting, message, mend, certain=False))
        else:
            mend = "give the path of a document below grounding_dir"
            findings.settings.append(AtSetting(setting, message, mend))
    result = inline_files(Grounding(directory, (), patterns))
    findings.inlined_bytes = sum(len(file.text.encode()) for file in result.files)
    for skipped in result.skipped:
        if skipped.path in names:
            number = next(n for n, pattern in enumerate(patterns) if matches(skipped.path, pattern))
            message = f"{folder}/{skipped.path} is not told up front: {skipped.reason}"
            mend = "mend the file, or take it out of the pattern"
            findings.settings.append(AtSetting(f"inline_grounding[{number}]", message, mend, certain=False))


def _size(entry: Entry) -> int:
    return 0 if entry.descriptor is None else os.fstat(entry.descriptor).st_size
