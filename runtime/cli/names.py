"""The names of the instances, for completion: without loading any of them, because a shell waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.cli.settings import Settings

if TYPE_CHECKING:
    import click


def complete_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the instances that begin with what is typed and are not on the line already."""
    settings = ctx.find_object(Settings)
    given = ctx.params.get(param.name or "") or ()
    if settings is None:
        return []
    names = sorted(path.parent.name for path in (settings.root / "instances").glob("*/agent.yaml"))
    return [
        name
        for name in names
        if name.startswith(incomplete) and name not in given and not name.startswith(("_", "."))
    ]
