"""Exit codes are the same in the shell, in Python and in the documentation."""

from __future__ import annotations

import re
from pathlib import Path

from runtime import errors

REPO = Path(__file__).resolve().parents[3]
FAIL = re.compile(r"\b(?:fail|apt_may) ([0-9]+) ([a-z-]+) ")
ROW = re.compile(r"^\| ([0-9]+) \| (.*?) \|")
WITHOUT_CLASS = {0, 130}


def classes() -> dict[str, int]:
    """Return every named failure's code and exit code."""
    found = [errors.GatehouseError]
    for one in found:
        found.extend(one.__subclasses__())
    return {one.code: one.exit_code for one in found}


def scripts() -> list[tuple[int, str]]:
    files = [REPO / "gatehouse", *sorted((REPO / "compose" / "host").glob("*.sh"))]
    return [(int(code), name) for file in files for code, name in FAIL.findall(file.read_text())]


def test_every_failure_of_the_scripts_is_one_of_the_tree() -> None:
    known = classes()
    found = scripts()
    assert len(found) > 30
    assert [pair for pair in found if known.get(pair[1]) != pair[0]] == []


def test_the_page_lists_every_exit_code_and_every_name() -> None:
    page = (REPO / "docs/reference/exit-codes.md").read_text()
    rows = {int(row[1]): row[2] for row in map(ROW.match, page.splitlines()) if row}
    known = classes()
    assert set(rows) == set(known.values()) | WITHOUT_CLASS
    for code, exit_code in known.items():
        assert f"`{code}`" in rows[exit_code], code
    named = {name: exit_code for exit_code, text in rows.items() for name in re.findall(r"`([a-z-]+)`", text)}
    assert named == known
