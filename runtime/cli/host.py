"""The commands that the shell entry does itself, so that `--help` and completion know them.

`./gatehouse` runs them before any Python is set up; started from here they become that same program.
"""

from __future__ import annotations

import os
from typing import Final

import click

from runtime.cli.command import Command
from runtime.cli.settings import Settings, pass_settings

_PASSED_ON: Final = {"ignore_unknown_options": True}


def _become(settings: Settings, *words: str) -> None:
    entry = str(settings.root / "gatehouse")
    os.execve(entry, [entry, *words], dict(settings.environ))  # noqa: S606 -- our own program, no shell


@click.command(
    "up",
    cls=Command,
    prints="The address, an example to paste, and how to read the logs, once the stack is healthy.",
    exits=(0, 1, 3, 4, 5, 6, 7, 8),
    examples=("gatehouse up", "GATEHOUSE_AGENT=mira gatehouse up", "MODEL_API_KEY_FILE=~/key gatehouse up"),
)
@pass_settings
def up(settings: Settings) -> None:
    """Set up what is missing, start the stack and wait until it is healthy.

    As root on Debian or Ubuntu it installs an engine where none is. The settings come from the environment
    or from .env: docs/how-to/operate.md lists them. Without a model key the demo model answers.
    """
    _become(settings, "up")


@click.command(
    "down",
    cls=Command,
    prints="Nothing; it says on stderr what it removed.",
    exits=(0, 1, 4),
    examples=("gatehouse down", "gatehouse down --all"),
)
@click.option("--all", "everything", is_flag=True, help="State, secrets' copies and images too.")
@pass_settings
def down(settings: Settings, *, everything: bool) -> None:
    """Remove what `up` made; state and images only with --all. The engine stays."""
    _become(settings, "down", *(("--all",) if everything else ()))


@click.command(
    "test",
    cls=Command,
    prints="What the checks print.",
    exits=(0, 1, 4, 5),
    examples=("gatehouse test",),
)
@pass_settings
def test(settings: Settings) -> None:
    """Set up what is missing, build the images and run every check.

    Whole turns in real containers are among them. `gatehouse just RECIPE` runs a part.
    """
    _become(settings, "test")


@click.command(
    "just",
    cls=Command,
    context_settings=_PASSED_ON,
    prints="What the recipe prints.",
    exits=(0, 1, 4),
    examples=("gatehouse just --list", "gatehouse just unit"),
)
@click.argument("words", metavar="RECIPE…", nargs=-1, type=click.UNPROCESSED)
@pass_settings
def just(settings: Settings, words: tuple[str, ...]) -> None:
    """Run a recipe of the Justfile in the set-up environment of the checks."""
    _become(settings, "just", *words)


COMMANDS: Final = {"up": up, "down": down, "test": test, "just": just}
