"""Writes docs/reference/cli.md from the commands' own help, so that page and `--help` cannot differ.

python -m runtime.cli.reference > docs/reference/cli.md
"""

from __future__ import annotations

import sys
from typing import Final

import click

from runtime.cli.main import COMMANDS, program

WIDTH: Final = 100

_INTRODUCTION: Final = """# Commands

Written by `python -m runtime.cli.reference` from the commands' `--help`; a test compares them.

`./gatehouse COMMAND` works in any folder, and so does a link to it on the PATH. The first command of an
author makes an environment of its own below `.gatehouse/`, once. Settings come from the environment or from
`.env` beside `compose.yaml`; the environment wins.

Results are on stdout and all other words on stderr. `--json` gives one line of JSON, or one a line while
something goes on, and [its page](json.md) has every key. Colour and progress are for a terminal only, and
`NO_COLOR=1` turns colour off there.
A failure is one sentence, `gatehouse: CODE: SENTENCE (MEND)`: [exit codes](exit-codes.md).
"""


def cli_page() -> str:
    """Return the whole page as Markdown."""
    root = click.Context(
        program, info_name="gatehouse", terminal_width=WIDTH, help_option_names=["-h", "--help"]
    )
    parts = [_INTRODUCTION, _block("gatehouse", program.get_help(root))]
    for name in COMMANDS:
        command = program.get_command(root, name)
        if command is not None:
            context = click.Context(command, info_name=name, parent=root)
            parts.append(_block(f"gatehouse {name}", command.get_help(context)))
    return "\n".join(parts)


def _block(title: str, text: str) -> str:
    return f"## {title}\n\n```text\n{text.strip()}\n```\n"


if __name__ == "__main__":
    sys.stdout.write(cli_page())
