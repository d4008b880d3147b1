"""The group of all commands, and the one place where a command's end becomes an exit code.

A command's module is imported when the command is asked for, so that `gatehouse check` does not pay for the
A2A client. A failure with a name ends as its sentence and its exit code; a traceback is for what nobody
foresaw.
"""

from __future__ import annotations

import importlib
import os
import re
import sys
import traceback
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from runtime.cli.settings import Settings, read_settings
from runtime.errors import INTERRUPTED, GatehouseError, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_VERSION: Final = re.compile(r'(?m)^version = "(.*)"$')  # as ./gatehouse reads it
_EXTRA: Final = re.compile(r"^Got unexpected extra argument(s?) \((.*)\)$")

# Every command and its line in the list, in the order of a persona's life. The modules are imported late.
COMMANDS: Final = {
    "new": "make a persona's folder from the template",
    "check": "every mistake in the instances' files, with its place and mend",
    "up": "set up what is missing, start the stack, print its address and an example",
    "ask": "ask an agent over A2A and stream the answer",
    "turn": "run one turn here and show its steps, times, tokens and sizes",
    "status": "what the stack serves and how it is",
    "logs": "the services' logs",
    "reload": "serve the instance's files as they are now, without a restart",
    "forget": "forget a conversation, or all of them, without a restart",
    "down": "remove what `up` made",
    "test": "set up what is missing, build the images, run every check",
    "just": "run a recipe of the Justfile in the set-up environment",
    "completion": "print the script that completes commands and names in your shell",
}
HOST: Final = frozenset({"up", "down", "test", "just"})


class Program(click.Group):
    """`gatehouse`: its commands are imported when they are run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of COMMANDS."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        del ctx
        if cmd_name in HOST:
            return importlib.import_module("runtime.cli.host").COMMANDS[cmd_name]  # type: ignore[no-any-return]
        if cmd_name not in COMMANDS:
            return None
        return importlib.import_module(f"runtime.cli.{cmd_name}").command  # type: ignore[no-any-return]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the first word, or name the nearest."""
        if args[0] not in COMMANDS and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.exceptions.NoSuchCommand(
                args[0], f"unknown command: {args[0]}", possibilities=COMMANDS, ctx=ctx
            )
        return super().resolve_command(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name without importing any."""
        found = [CompletionItem(name, help=words) for name, words in COMMANDS.items()]
        found += [CompletionItem(name) for name in ("--help", "--version") if incomplete.startswith("-")]
        del ctx
        return [item for item in found if str(item.value).startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def _version(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    del parameter
    if value and not ctx.resilient_parsing:
        project = (ctx.ensure_object(Settings).root / "pyproject.toml").read_text("utf-8")
        click.echo(f"gatehouse {_VERSION.findall(project)[0]}")
        ctx.exit()


@click.group(
    cls=Program,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="`gatehouse COMMAND --help` says what a command prints, its exit codes and an example.",
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def program() -> None:
    """One persona, put before the world: make it, check it, start it, ask it."""


def main(argv: Sequence[str] | None = None, environ: Mapping[str, str] | None = None) -> int:
    """Run one command and return its exit code.

    A command returns None for 0, or an exit code; it raises a GatehouseError for a failure with a name.
    """
    try:
        settings = read_settings(os.environ if environ is None else environ)
        code = program.main(
            args=None if argv is None else list(argv),
            prog_name="gatehouse",
            obj=settings,
            standalone_mode=False,
        )
    except click.exceptions.Abort:
        return INTERRUPTED
    except KeyboardInterrupt:
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as error:
        sys.stderr.write(f"{error.format_message()}\n")
        return error.exit_code
    except click.ClickException as error:
        return _end(_usage(error))
    except GatehouseError as error:
        return _end(error)
    except BrokenPipeError:
        # Whoever read our results has stopped; the interpreter must not try to write the rest at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GatehouseError.exit_code
    except Exception as error:  # noqa: BLE001 -- the outermost handler of this process
        traceback.print_exc()
        return _end(GatehouseError(f"{type(error).__name__}: {error}", "report it with the lines above"))
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException) -> UsageError:
    """Return click's own complaint as ours: one sentence, and the nearest word or where to read on."""
    if isinstance(error, click.NoSuchOption | click.exceptions.NoSuchCommand) and error.possibilities:
        return UsageError(_sentence(error.message), f"did you mean {error.possibilities[0]}?")
    context = error.ctx if isinstance(error, click.UsageError) else None
    path = context.command_path if context else "gatehouse"
    return UsageError(_sentence(error.format_message()), f"see {path} --help")


def _sentence(words: str) -> str:
    """Return click's complaint without its capital and full stop; what it puts in brackets is no mend."""
    line = " ".join(words.rstrip(".").split())
    line = _EXTRA.sub(r"unexpected argument\1: \2", line)
    return line[:1].lower() + line[1:]


def _end(error: GatehouseError) -> int:
    sys.stderr.write(error.report())
    return error.exit_code
