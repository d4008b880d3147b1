"""The command blocks of a page, so that a test can run them or must say why it does not.

A block is fenced and marked as a shell's (`sh`, `bash`, `shell`, `console`) or as nothing, or it is indented
by four spaces. Fences of another language (`yaml`, `json`, `python`, `mermaid`) are no commands.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PATTERNS = ("README.md", "docs/tutorial/*.md", "docs/how-to/*.md")
LONGEST = 60
SHELLS = frozenset({"", "sh", "bash", "shell", "console"})
_FENCE = re.compile(r"^(`{3,}|~{3,})\s*([A-Za-z0-9_-]*)")


@dataclass(frozen=True, slots=True)
class Block:
    """One block: its page, its language ("" for none and an indented one) and its lines without indent."""

    page: str
    language: str
    text: str
    number: int  # from 1 among the page's blocks with the same first line

    @property
    def first(self) -> str:
        """The name in the table of decisions: the first line, with a number where a page has it twice."""
        line = named(self.text)
        return line if self.number == 1 else f"{line} ({self.number})"

    @property
    def key(self) -> tuple[str, str]:
        """The page and the first line."""
        return self.page, self.first


def named(text: str) -> str:
    """Return the first line of a block without its `#` remark, cut short."""
    return cut(re.sub(r"\s{2,}#.*$", "", text.strip().splitlines()[0]))


def cut(line: str) -> str:
    """Return the beginning of a line, by which it is named."""
    return line[:LONGEST].strip()


def blocks_of(page: str, text: str) -> list[Block]:
    """Return the command blocks of one page in their order."""
    found: list[tuple[str, str]] = []
    lines = text.splitlines()
    at = 0
    while at < len(lines):
        if fence := _FENCE.match(lines[at]):
            end = next((n for n in range(at + 1, len(lines)) if lines[n].rstrip() == fence[1]), len(lines))
            found.append((fence[2], "\n".join(lines[at + 1 : end])))
            at = end + 1
        elif lines[at].startswith("    ") and lines[at].strip() and (at == 0 or not lines[at - 1].strip()):
            end = at
            while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
                end += 1
            found.append(("", "\n".join(line[4:] for line in lines[at:end]).rstrip()))
            at = end
        else:
            at += 1
    seen: dict[str, int] = {}
    result = []
    for language, block in found:
        if language in SHELLS and block.strip():
            first = named(block)
            seen[first] = seen.get(first, 0) + 1
            result.append(Block(page, language, block.strip("\n"), seen[first]))
    return result


def all_blocks() -> list[Block]:
    """Return the command blocks of README, tutorial and how-to pages."""
    paths = [path for pattern in PATTERNS for path in sorted(REPO.glob(pattern))]
    return [
        block for path in paths for block in blocks_of(path.relative_to(REPO).as_posix(), path.read_text())
    ]
