"""`just bench`: speed, size and memory as ratios or bounds measured in one run, on this machine, now.

Each figure is a module of this folder and says there what it covers; figures.py lists them and wanted.py says
what they should be. A figure that is not what it should be is named at the end, and the exit code is 1. Where
no engine answers, or images are missing, that is said first; then the figures that need none are measured all
the same, and the exit code is 4 or 5.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Final

import click

from runtime.errors import GatehouseError
from tests.bench.engine import check_engine
from tests.bench.figures import FIGURES, Bench

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.figures import Figure
    from tests.bench.numbers import Row


NOT_MET: Final = 1


def run(figures: Sequence[Figure], bench: Bench, *, as_json: bool) -> list[Row]:
    """Measure figures, print each as soon as it is known, or all of them as JSON at the end.

    Returns the rows that are not what is wanted of them.
    """
    known: dict[str, list[Row]] = {}
    try:
        for figure in figures:
            known[figure.name] = figure.measure(bench)
            for row in () if as_json else known[figure.name]:
                click.echo(row.line())
    finally:
        if as_json:
            shown = {name: [row.as_json() for row in rows] for name, rows in known.items()}
            click.echo(json.dumps(shown, indent=1, ensure_ascii=False))
    return [row for rows in known.values() for row in rows if row.missed]


@click.command()
@click.option("--count", default=30, show_default=True, help="Turns of each kind, for turn-times.")
@click.option(
    "--only",
    multiple=True,
    metavar="NAME",
    type=click.Choice([figure.name for figure in FIGURES]),
    help=f"Measure this figure alone; may be given several times: {', '.join(one.name for one in FIGURES)}.",
)
@click.option("--quick", is_flag=True, help="A tenth of the work, to see that a figure can be measured.")
@click.option("--json", "as_json", is_flag=True, help="Print the figures as JSON.")
def main(*, count: int, only: tuple[str, ...], quick: bool, as_json: bool) -> None:
    """Measure the front against the A2A SDK, and a sandboxed turn against the bare CLI.

    Exit code 1: a figure is not what is wanted of it.
    """
    figures = [figure for figure in FIGURES if not only or figure.name in only]
    failure: GatehouseError | None = None
    missed: list[Row] = []
    try:
        if any(figure.needs_engine for figure in figures):
            try:
                check_engine()
            except GatehouseError as error:
                failure = error
                figures = [figure for figure in figures if not figure.needs_engine]
                sys.stderr.write(error.report())
        with Bench(count, quick) as bench:
            missed = run(figures, bench, as_json=as_json)
    except GatehouseError as error:
        failure = error
        sys.stderr.write(error.report())
    if missed:
        sys.stderr.write(f"Not as wanted: {', '.join(row.name for row in missed)}.\n")
    sys.exit(failure.exit_code if failure else NOT_MET if missed else 0)


if __name__ == "__main__":
    main()
