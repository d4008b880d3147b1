"""The shape of a command's `--help`: what it does, what it prints, how it ends and an example.

Why a class: a help page that leaves one of these out cannot be made, and docs/reference/cli.md is written
from them.

    @click.command("check", cls=Command, prints="…", exits=(0, 3), examples=("gatehouse check ada",))
    @pass_settings
    def command(settings: Settings) -> int: …
"""

from __future__ import annotations

from typing import Any, Final

import click

# The meaning of an exit code is the same for every command: the first words of docs/reference/exit-codes.md.
EXIT_CODES: Final = {
    0: "fine",
    1: "something that has no name",
    2: "the command line or a setting is not understood",
    3: "an instance's files are wrong",
    4: "the machine lacks something",
    5: "an image is missing, did not build or is not the one that was checked",
    6: "a security control did not hold",
    7: "a secret file is missing, unreadable, malformed or exposed",
    8: "a service of the stack does not answer, or two of them hold different definitions",
    130: "interrupted",
}
# Any command can end so: the machine may lack what the commands' own environment is made of.
ANY: Final = (1, 2, 4, 130)


class Command(click.Command):
    """One command. `prints` says what goes to stdout, `exits` which exit codes it has besides those of ANY.

    `notes` gives a code a narrower meaning than the shared one.
    """

    def __init__(
        self,
        *args: Any,
        prints: str,
        exits: tuple[int, ...],
        examples: tuple[str, ...],
        notes: dict[int, str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.prints = prints
        self.exits = tuple(sorted({*exits, *ANY}))
        self.examples = examples
        self.notes = notes or {}

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the sections that click has none for."""
        del ctx
        with formatter.section("Prints"):
            formatter.write_text(self.prints)
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(code), self.notes.get(code, EXIT_CODES[code])) for code in self.exits])
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
