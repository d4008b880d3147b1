"""Appends grounding files to the persona, so that a turn can answer from them without opening a file.

The files are chosen by patterns below the grounding directory (seed S1 §2). Nothing outside it can be
chosen: the tree is walked without following links, and a pattern is only ever compared with names that the
walk found. So `..`, absolute patterns and links, by which a first implementation let files in, have nothing
to match.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.agents.definition import Grounding

MAX_FILE_BYTES = 600_000
MAX_TOTAL_BYTES = 1_200_000
MAX_WALKED = 20_000  # names looked at; a larger tree is read with the file tools

HEADING = (
    "# Grounding documents\n\n"
    "The documents below are complete copies of files in your working directory.\n"
    "Answer from them directly; they need not be opened again. Other files there can still be read.\n"
)


@dataclass(frozen=True, slots=True)
class InlineFile:
    """One file told up front: its path below the grounding directory, with slashes, and its text."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """One file, or pattern, that was left out, and why, in a few words for the operator's log."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class InlineResult:
    """What goes into the persona, in order, and what was left out."""

    files: tuple[InlineFile, ...] = ()
    skipped: tuple[Skipped, ...] = ()


def inline_files(grounding: Grounding) -> InlineResult:
    """Return the files that `grounding.inline` chooses: by pattern, sorted within one, each file once.

    A file above 600,000 bytes, one that would bring the total above 1,200,000, one that is not UTF-8 text,
    unreadable, or reached through a link is skipped and reported; the others stay. `*` and `?` do not match
    a leading dot.
    """
    if not grounding.inline:
        return InlineResult()
    names, complete = _walk(grounding.directory)
    files: list[InlineFile] = []
    skipped: list[Skipped] = []
    seen: set[str] = set()
    total = 0
    if not complete:
        skipped.append(Skipped(".", f"only the first {MAX_WALKED} names were looked at"))
    for pattern in grounding.inline:
        chosen = [name for name in names if matches(name, pattern)]
        if not chosen:
            skipped.append(Skipped(pattern, "no file matches"))
        for name in chosen:
            if name in seen:
                continue
            seen.add(name)
            raw = _read(grounding.directory / name)
            if isinstance(raw, str):
                skipped.append(Skipped(name, raw))
            elif total + len(raw) > MAX_TOTAL_BYTES:
                skipped.append(Skipped(name, f"the total would be above {MAX_TOTAL_BYTES} bytes"))
            elif (text := _decode(raw)) is None or not name.isprintable():
                skipped.append(Skipped(name, "is not UTF-8 text"))
            else:
                total += len(raw)
                files.append(InlineFile(name, text))
    return InlineResult(tuple(files), tuple(skipped))


def append_inline(persona: str, grounding: Grounding) -> str:
    """Return the persona with the chosen files appended; byte for byte the same when there are none."""
    return join_inline(persona, inline_files(grounding))


def join_inline(persona: str, result: InlineResult) -> str:
    """Return persona, one heading, and each file under its name; for callers that log what was skipped."""
    if not result.files:
        return persona
    sections = [f"\n## {file.path}\n\n{file.text.rstrip()}\n" for file in result.files]
    return persona.rstrip("\n") + "\n\n---\n\n" + HEADING + "".join(sections)


def matches(name: str, pattern: str) -> bool:
    """Say whether a path below the directory fits a pattern; `**` stands for any number of folders."""
    return _match(tuple(name.split("/")), tuple(pattern.split("/")), {})


def _match(names: tuple[str, ...], patterns: tuple[str, ...], known: dict[tuple[int, int], bool]) -> bool:
    """Match two tails; `known` holds what earlier calls found, so that many `**` cost no more than few."""
    at = len(names), len(patterns)
    if at not in known:
        known[at] = _compare(names, patterns, known)
    return known[at]


def _compare(names: tuple[str, ...], patterns: tuple[str, ...], known: dict[tuple[int, int], bool]) -> bool:
    if not patterns:
        return not names
    if patterns[0] == "**":
        rest = patterns[1:]
        while rest[:1] == ("**",):
            rest = rest[1:]
        for start in range(len(names) + 1):
            if _match(names[start:], rest, known):
                return not any(name.startswith(".") for name in names[:start]) and (
                    bool(names[start:]) or not rest
                )
        return False
    if not names or (names[0].startswith(".") and not patterns[0].startswith(".")):
        return False
    return fnmatchcase(names[0], patterns[0]) and _match(names[1:], patterns[1:], known)


def _walk(directory: Path) -> tuple[list[str], bool]:
    """Return the paths of all files below `directory`, sorted, and whether the walk saw everything."""
    names: list[str] = []
    base = os.fspath(directory)
    for folder, folders, files in os.walk(base, followlinks=False):
        folders.sort()
        inner = os.path.relpath(folder, base)
        names += [name if inner == "." else f"{inner}/{name}" for name in files]
        if len(names) > MAX_WALKED:
            return sorted(names)[:MAX_WALKED], False
    return sorted(names), True


def _read(path: Path) -> bytes | str:
    """Return a regular file's bytes, or why it is skipped. Never blocks on a pipe or follows a final link."""
    try:
        if stat.S_ISLNK(path.lstat().st_mode):
            return "is a link"
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                return "is not a regular file"
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    return raw if len(raw) <= MAX_FILE_BYTES else f"is above {MAX_FILE_BYTES} bytes"


def _decode(raw: bytes) -> str | None:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\x00" in text else text
