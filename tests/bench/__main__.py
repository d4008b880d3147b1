"""`just bench`: speed, size and memory as ratios or bounds measured in one run, on this machine, now.

Each figure is a module of this folder and says there what it covers; figures.py lists them and wanted.py says
what they should be. Nothing is asserted. Where no engine answers, or images are missing, that is said first;
then the figures that need none are measured all the same, and the exit code is 4 or 5.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from runtime.errors import GatehouseError
from tests.bench.engine import check_engine
from tests.bench.figures import FIGURES, Bench

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.figures import Figure
    from tests.bench.numbers import Row


def run(figures: Sequence[Figure], bench: Bench, *, as_json: bool) -> None:
    """Measure figures, print each as soon as it is known, or all of them as JSON at the end."""
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
    """Measure the front against the A2A SDK, and a sandboxed turn against the bare CLI."""
    figures = [figure for figure in FIGURES if not only or figure.name in only]
    failure: GatehouseError | None = None
    try:
        if any(figure.needs_engine for figure in figures):
            try:
                check_engine()
            except GatehouseError as error:
                failure = error
                figures = [figure for figure in figures if not figure.needs_engine]
                sys.stderr.write(error.report())
        with Bench(count, quick) as bench:
            run(figures, bench, as_json=as_json)
    except GatehouseError as error:
        failure = error
        sys.stderr.write(error.report())
    sys.exit(failure.exit_code if failure else 0)


if __name__ == "__main__":
    main()
