"""`gatehouse check`: all that is wrong with the instances' files, at once, before a visitor meets it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, TextIO

import click

from runtime.agents.check import as_json, check_instances
from runtime.cli.command import Command
from runtime.cli.names import complete_names
from runtime.cli.output import printable, result, styled, talk
from runtime.cli.settings import Settings, pass_settings
from runtime.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.agents.check import Checked


@click.command(
    "check",
    cls=Command,
    prints=(
        "A line for each mistake, FILE:LINE:COL: KEY: what is wrong (how to mend it), as editors take it; "
        "the same with `warning:` before it for what keeps nothing from starting; and `ok NAME` with what "
        "visitors can reach. With --json one object: ok, and instances with name, ok, summary, problems and "
        "warnings. The count is on stderr."
    ),
    exits=(0, 3),
    examples=(
        "gatehouse check",
        "gatehouse check mira",
        "gatehouse check mira --json | python3 -m json.tool",
    ),
)
@click.argument("names", metavar="[NAME]…", nargs=-1, shell_complete=complete_names)
@click.option("--json", "as_data", is_flag=True, help="Print one JSON object.")
@pass_settings
def command(settings: Settings, names: tuple[str, ...], *, as_data: bool) -> int:
    """Check the instances named, or all of them and the template.

    It reads the files as the stack would, with the overrides of the environment and of .env, and needs no
    engine. Nothing is changed.
    """
    checked = check_instances(settings.root, tuple(dict.fromkeys(names)), settings.environ)
    if as_data:
        result(as_json(checked), end="")
    else:
        print_checked(checked, sys.stdout)
        talk(counted(checked))
    return 0 if all(one.ok for one in checked) else ConfigError.exit_code


def print_checked(checked: Sequence[Checked], stream: TextIO) -> None:
    """Write the lines of each instance: its problems, its warnings, and `ok` when it can be served."""
    for one in checked:
        warning = styled("warning: ", stream, fg="yellow")
        stream.writelines(_line("", str(problem), stream) for problem in one.problems)
        stream.writelines(_line(warning, str(odd), stream) for odd in one.warnings)
        if one.ok:
            rest = printable(one.summary).removeprefix("ok")
            stream.write(f"{styled('ok', stream, fg='green')}{rest}\n")
    stream.flush()


def counted(checked: Sequence[Checked]) -> str:
    """Return the count, such as `3 problems, 1 warning in 2 instances`."""
    problems = sum(len(one.problems) for one in checked)
    warnings = sum(len(one.warnings) for one in checked)
    found = _plural(problems, "problem") if problems else "no problem"
    if warnings:
        found += f", {_plural(warnings, 'warning')}"
    return f"{found} in {_plural(len(checked), 'instance')}"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("" if number == 1 else "s")


def _line(mark: str, untrusted_text: str, stream: TextIO) -> str:
    place, colon, rest = printable(untrusted_text).replace("\n", " ").partition(": ")
    return f"{mark}{styled(place, stream, bold=True)}{colon}{rest}\n"
