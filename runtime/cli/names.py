"""The names of the instances: which a folder may have, and which there are, for completion.

Completion loads none of the instances, because a shell waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from runtime.cli.output import printable
from runtime.cli.settings import Settings
from runtime.errors import UsageError

if TYPE_CHECKING:
    import click

NAME_RULE: Final = "lower-case letters, digits, - and _, not beginning with -, at most 63 characters"


def refuse_name(name: str) -> None:
    """Raise UsageError for what no instance can be named; the loader's own rule is the one."""
    from runtime.agents.folders import NAME  # noqa: PLC0415 -- completion must not wait for the loader

    if not NAME.fullmatch(name):
        raise UsageError(f"{printable(name[:80])!r} is no name of an instance", f"use {NAME_RULE}")


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the instances that begin with what is typed and are not on the line already."""
    settings = ctx.find_object(Settings)
    given = ctx.params.get(param.name or "") or ()
    if settings is None:
        return []
    from runtime.agents.folders import NAME  # noqa: PLC0415 -- only a line with a name needs the loader's rule

    names = sorted(path.parent.name for path in (settings.root / "instances").glob("*/agent.yaml"))
    return [
        name
        for name in names
        if name.startswith(incomplete)
        and name not in given
        and not name.startswith("_")
        and NAME.fullmatch(name)
    ]
