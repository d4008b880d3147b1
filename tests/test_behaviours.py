"""What is said of the wire, its tests and the page of differences hold together."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

from tests import behaviours, controls
from tests.behaviours import BEHAVIOURS

REPO = Path(__file__).resolve().parents[1]
NUMBERS = [*range(51, 132), *range(276, 283)]
ITEMS = range(1, 12)
MISTAKES = range(16, 32)
PENDING = 0  # lowered whenever a test closes one, never raised without a reason


@cache
def names(file: str) -> frozenset[str]:
    """Return the names of a file's tests, async or not, in a class or not."""
    path = REPO / file
    if not path.is_file():
        return frozenset()
    return frozenset(
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    )


def lines_of_differences() -> list[str]:
    """Return how the lines of the differences page begin, without the marks of emphasis."""
    text = behaviours.DIFFERENCES.read_text()
    return [line[2:].replace("**", "") for line in text.splitlines() if line.startswith("- ")]


def test_every_line_has_its_number_once_and_its_proof() -> None:
    numbered = [b for b in BEHAVIOURS if b.id.startswith("B")]
    assert sorted(int(b.id[1:]) for b in numbered) == NUMBERS
    assert [b.id for b in numbered if not b.tests and not b.difference and not b.pending] == []


def test_every_item_and_every_known_mistake_has_its_tests() -> None:
    ids = [b.id for b in BEHAVIOURS]
    assert len(ids) == len(set(ids))
    assert {id_.partition(".")[0] for id_ in ids if id_.startswith("I")} == {f"I{n}" for n in ITEMS}
    assert {f"F{n}" for n in MISTAKES} <= set(ids)
    assert [b.id for b in BEHAVIOURS if b.id[0] in "IF" and not b.tests and not b.pending] == []


def test_every_sentence_is_one_and_says_what_is_so() -> None:
    for behaviour in BEHAVIOURS:
        assert re.fullmatch(r"[A-Z`].*[^.]\.", behaviour.sentence), behaviour.id


def test_what_is_pending_is_counted() -> None:
    pending = [b.id for b in BEHAVIOURS if b.pending]
    assert len(pending) == PENDING, pending


def test_every_test_that_is_named_exists() -> None:
    named = {test for behaviour in BEHAVIOURS for test in behaviour.tests}
    missing = [
        test for test in sorted(named) if test.partition("::")[2] not in names(test.partition("::")[0])
    ]
    assert missing == []


def test_no_behaviour_names_a_test_twice() -> None:
    assert [b.id for b in BEHAVIOURS if len(b.tests) != len(set(b.tests))] == []


def test_every_difference_is_a_line_of_the_page() -> None:
    begun = lines_of_differences()
    wanted = {b.difference for b in BEHAVIOURS if b.difference}
    assert [one for one in sorted(wanted) if sum(line.startswith(one) for line in begun) != 1] == []


def test_the_page_of_controls_has_every_behaviour() -> None:
    page = controls.page()
    assert [b.id for b in BEHAVIOURS if f"- **{b.id}** {b.sentence}\n" not in page] == []


def test_ci_runs_the_one_command_that_everybody_has() -> None:
    commands = [
        line
        for line in (REPO / ".ci" / "run").read_text().splitlines()
        if line.strip() and not line.startswith(("#", "set ", "cd "))
    ]
    assert commands == ["exec ./gatehouse test"]
    recipes = dict(re.findall(r"^([a-z-]+):(.*)$", (REPO / "Justfile").read_text(), re.MULTILINE))
    assert recipes["ci"].split() == ["lint", "types", "tests"]
