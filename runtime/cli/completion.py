"""`gatehouse completion`: what makes a shell complete the commands, their flags and the instances' names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from runtime.cli.command import Command
from runtime.cli.output import result

if TYPE_CHECKING:
    from click.shell_completion import ShellComplete

SHELLS = ("bash", "zsh", "fish")


@click.command(
    "completion",
    cls=Command,
    prints="The shell's script.",
    exits=(0,),
    examples=(
        "gatehouse completion bash > ~/.local/share/bash-completion/completions/gatehouse",
        'eval "$(./gatehouse completion zsh)"',
        "gatehouse completion fish > ~/.config/fish/completions/gatehouse.fish",
    ),
)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the script that completes commands, flags and instance names.

    It calls the `gatehouse` that is being completed, so a link to this checkout's `gatehouse` must be on the
    PATH; bash completes `./gatehouse` as well. Bash must be 4.4 or later.
    """
    found: type[ShellComplete] | None = get_completion_class(shell)
    if found is None:
        raise click.BadParameter(f"no completion for {shell}")
    script = found(ctx.find_root().command, {}, "gatehouse", "_GATEHOUSE_COMPLETE").source()
    result(script.strip())
