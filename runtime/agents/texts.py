"""Looks into one file that visitors can get to read: is it text, filled in, and without a secret.

A file is read from where the walk opened it, in pieces and up to a bound, because a pack may hold half a
gigabyte and `check` is run after every change.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from runtime.agents.disclosures import MEND as SECRET_MEND
from runtime.agents.disclosures import NAME_MEND, is_secret_name, secrets
from runtime.agents.placeholders import MEND as FILL_IN
from runtime.agents.placeholders import unfilled
from runtime.agents.places import undecodable
from runtime.agents.quoting import shown
from runtime.agents.sizes import GREP_LINE_BYTES, Document
from runtime.errors import Problem

TEXTS = (".md", ".txt")
LOOKED_AT_BYTES = 1_000_000  # of one file
TOTAL_LOOKED_AT_BYTES = 32_000_000  # of one instance: three seconds


@dataclass(slots=True)
class Look:
    """What was seen in files so far; `unseen` counts files of which a part was too much to look at."""

    template: bool = False
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    documents: list[Document] = field(default_factory=list)
    looked_at: int = 0
    unseen: list[str] = field(default_factory=list)

    def file(self, descriptor: int, size: int, name: str, where: str) -> str:
        """Look at one open file whose base name is `name`; returns its text, or what of it was looked at."""
        if is_secret_name(name):
            self.problems.append(
                Problem(where, 0, 0, "", "has the name of a key or password store", NAME_MEND)
            )
        limit = max(0, min(LOOKED_AT_BYTES, TOTAL_LOOKED_AT_BYTES - self.looked_at))
        raw = os.pread(descriptor, limit, 0)
        self.looked_at += len(raw)
        whole = len(raw) >= size
        if not whole:
            self.unseen.append(where)
        is_text = name.endswith(TEXTS)
        text = self._decoded(raw, where, whole=whole, is_text=is_text)
        problems, warnings = secret_findings(text, where)
        self.problems += problems
        self.warnings += warnings
        if is_text and not self.template:
            self.problems += (
                Problem(
                    where,
                    found.line,
                    found.col,
                    "",
                    f"still holds the template's {_cut(found.text)}",
                    FILL_IN,
                )
                for found in unfilled(text)
            )
        self.documents.append(Document(where, size, _long_line(raw) if is_text else 0))
        return text

    def _decoded(self, raw: bytes, where: str, *, whole: bool, is_text: bool) -> str:
        try:
            return raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            cut = not whole and len(raw) - error.start < 4
            if is_text and not cut:
                message = "is not UTF-8 text, so a model may not be able to read it"
                place = undecodable(raw, error)
                self.warnings.append(Problem(where, *place, "", message, "save the file as UTF-8"))
        return raw.decode("latin-1")


def secret_findings(text: str, where: str) -> tuple[list[Problem], list[Problem]]:
    """Return problems for certain secrets and warnings for possible ones; both name the kind alone."""
    problems: list[Problem] = []
    warnings: list[Problem] = []
    for found in secrets(text):
        if found.certain:
            message = f"holds {found.kind}, and visitors can get to read it"
            problems.append(Problem(where, found.line, found.col, "", message, SECRET_MEND))
        else:
            message = f"may hold {found.kind}, and visitors can get to read it"
            warnings.append(Problem(where, found.line, found.col, "", message, "take it out if it is one"))
    return problems, warnings


def _long_line(raw: bytes) -> int:
    for number, line in enumerate(raw.splitlines(), 1):
        if len(line) > GREP_LINE_BYTES:
            return number
    return 0


def _cut(text: str) -> str:
    """Return a placeholder of the template, the longer ones cut as its owner recognises them."""
    return text if len(text) <= 60 else f"{shown(text)[:57]}...>"
