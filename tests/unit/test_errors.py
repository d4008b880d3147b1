"""The tree of errors: one stable code each, an exit code from the table, one way to say it."""

from __future__ import annotations

import re

import pytest

from runtime import errors
from runtime.errors import ConfigError, GatehouseError, PortInUse, Problem, SecretError

EXIT_CODES = {1, 2, 3, 4, 5, 6, 7, 8}


def family(root: type[GatehouseError] = GatehouseError) -> list[type[GatehouseError]]:
    return [root, *(item for child in root.__subclasses__() for item in family(child))]


def test_every_error_has_a_code_of_its_own_in_kebab_case() -> None:
    codes = [error.code for error in family()]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", code) for code in codes)


def test_every_exit_code_of_the_table_has_an_error_and_no_other_exists() -> None:
    assert {error.exit_code for error in family()} == EXIT_CODES


def test_the_drawn_tree_names_each_class_with_its_exit_code_and_code() -> None:
    drawn = re.findall(r"(\w+)\s+(\d)\s+([a-z-]+)", errors.__doc__ or "")
    assert sorted(drawn) == sorted((error.__name__, str(error.exit_code), error.code) for error in family())


def test_an_error_reads_as_one_sentence_with_its_mend() -> None:
    error = SecretError("the key file cannot be read", "make it readable for uid 10203")
    assert str(error) == "the key file cannot be read (make it readable for uid 10203)"
    assert str(SecretError("the key file is empty")) == "the key file is empty"


def test_a_process_that_ends_says_the_code_and_the_sentence_a_line_for_each_problem() -> None:
    assert PortInUse("Port 1 is taken.", "choose --port").report() == (
        "gatehouse: port-in-use: Port 1 is taken. (choose --port)\n"
    )
    problems = (Problem("a", 1, 1, "x", "m", "n"), Problem("b", 2, 2, "y", "m", "n"))
    assert ConfigError(problems).report().splitlines() == [
        f"gatehouse: config-invalid: {problem}" for problem in problems
    ]


@pytest.mark.parametrize(
    ("problem", "text"),
    [
        (Problem("a.yaml", 3, 7, "port", "is wrong", "mend it"), "a.yaml:3:7: port: is wrong (mend it)"),
        (Problem("a.yaml", 3, 7, "", "is wrong", "mend it"), "a.yaml:3:7: is wrong (mend it)"),
        (Problem("a.yaml", 0, 0, "", "is missing", "write it"), "a.yaml: is missing (write it)"),
    ],
)
def test_a_problem_reads_as_editors_write_places(problem: Problem, text: str) -> None:
    assert str(problem) == text


def test_a_config_error_carries_and_prints_all_its_problems() -> None:
    problems = (Problem("a", 1, 1, "x", "m", "n"), Problem("b", 2, 2, "y", "m", "n"))
    error = ConfigError(problems)
    assert error.problems == problems
    assert str(error).splitlines() == [str(problem) for problem in problems]
