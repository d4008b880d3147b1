"""Every command's help needs no other page, and the reference page is made of it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest

from runtime.cli.command import EXIT_CODES, Command
from runtime.cli.main import COMMANDS, program
from runtime.cli.reference import cli_page

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Checkout

REPO = Path(__file__).resolve().parents[3]
READING = ("check", "ask", "turn", "logs", "status", "reload")


def command_of(name: str) -> Command:
    found = program.get_command(click.Context(program), name)
    assert isinstance(found, Command)
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_says_what_it_does_what_it_prints_how_it_ends_and_an_example(
    checkout: Checkout, name: str
) -> None:
    done = checkout.run(name, "--help")
    assert (done.code, done.err) == (0, "")
    what = done.out.split("\n\n")[1].strip()
    assert what[0].isupper()
    assert what.endswith((".", ":"))
    for section in ("Prints:", "Exit codes:", "Examples:", "Options:"):
        assert f"\n{section}\n  " in done.out, section
    assert re.search(rf"^  .*gatehouse {name}\b", done.out.split("Examples:")[1], re.MULTILINE)
    assert max(map(len, done.out.splitlines())) <= 100


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_documents_codes_of_the_page_and_always_those_of_usage_and_interruption(name: str) -> None:
    exits = command_of(name).exits
    assert {0, 1, 2, 4, 130} <= set(exits)
    assert set(exits) <= set(EXIT_CODES)
    assert set(command_of(name).notes) <= set(exits)


def test_the_shared_meanings_are_the_first_words_of_those_on_the_exit_code_page() -> None:
    page = (REPO / "docs/reference/exit-codes.md").read_text()
    meanings = {
        int(code): re.split("[;:]", meaning)[0].strip()
        for code, meaning in re.findall(r"^\| ([0-9]+) \|[^|]*\| ([^|]+) \|", page, re.MULTILINE)
    }
    assert meanings == EXIT_CODES


@pytest.mark.parametrize("name", COMMANDS)
def test_a_help_page_sends_its_reader_to_no_page_for_what_is_printed(name: str) -> None:
    assert ".md" not in command_of(name).prints


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_its_words(name: str) -> None:
    options = [one for one in command_of(name).params if isinstance(one, click.Option)]
    assert [one.opts for one in options if not (one.help or "").endswith(".")] == []


@pytest.mark.parametrize("name", READING)
def test_a_command_that_reads_has_json(name: str) -> None:
    assert any("--json" in one.opts for one in command_of(name).params)


def test_the_reference_page_is_the_one_that_the_commands_make() -> None:
    page = (REPO / "docs/reference/cli.md").read_text()
    assert page == cli_page(), "run `python -m runtime.cli.reference > docs/reference/cli.md`"


@pytest.mark.parametrize("columns", ["40", "200"])
def test_the_reference_page_does_not_depend_on_the_terminal(
    monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    before = cli_page()
    monkeypatch.setenv("COLUMNS", columns)
    assert cli_page() == before
