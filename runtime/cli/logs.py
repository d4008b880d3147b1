"""`gatehouse logs`: what the services said, all of them in one order of time."""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import re
import sys
from typing import TYPE_CHECKING, Final

import click

from runtime.cli.command import Command
from runtime.cli.containers import SERVICES
from runtime.cli.engine import Engine
from runtime.cli.failures import told
from runtime.cli.log_lines import as_json, plain
from runtime.cli.log_source import follow, history
from runtime.cli.output import result, result_json, styled
from runtime.cli.settings import Settings, pass_settings
from runtime.errors import INTERRUPTED, GatehouseError, ServiceUnreachable, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runtime.cli.containers import Container
    from runtime.cli.log_lines import Line

TAIL_LINES: Final = 200
SINCE: Final = re.compile(r"(?:\d{1,6}[smh])+|\d{4}-\d\d-\d\d(?:T[0-9:.]{2,20}(?:Z|[+-]\d\d:\d\d)?)?")


def _complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    return [name for name in SERVICES if name.startswith(incomplete)]


@click.command(
    "logs",
    cls=Command,
    prints=(
        "The services' logs in one order of time, a short line each: time, service, event and its fields. "
        "With --json the services' own JSON lines; one that is none as text, service and timestamp, and a "
        "failure of this command as event failed with error."
    ),
    exits=(0, 4, 8),
    notes={8: "no stack of this name, or no such service in it", 130: "interrupted, which ends --follow"},
    examples=(
        "gatehouse logs",
        "gatehouse logs front --since 10m",
        "gatehouse logs --follow --tail 0",
        "gatehouse logs front --json --tail all",
    ),
)
@click.argument("services", metavar="[SERVICE]…", nargs=-1, shell_complete=_complete)
@click.option("--follow", "-f", "following", is_flag=True, help="Go on with what is logged from now on.")
@click.option("--since", metavar="TIME", help="Only what is younger: 90s, 10m, 2h or 2026-05-01T12:00:00Z.")
@click.option(
    "--tail", metavar="N", default=str(TAIL_LINES), show_default=True, help="The last N lines, or all."
)
@click.option("--json", "as_objects", is_flag=True, help="Print the services' own JSON lines.")
@pass_settings
def command(
    settings: Settings,
    *,
    services: tuple[str, ...],
    following: bool,
    since: str | None,
    tail: str,
    as_objects: bool,
) -> int:
    """Show what the services of this stack logged.

    SERVICE is ingress, front, spawner, modelproxy or tunnel; none means all of them.
    """
    try:
        return _show(settings, services, since, tail, following=following, as_objects=as_objects)
    except GatehouseError as error:
        if as_objects:
            result_json({"event": "failed", "service": None, "timestamp": None, "error": told(error)})
        raise


def _show(
    settings: Settings,
    services: tuple[str, ...],
    since: str | None,
    tail: str,
    *,
    following: bool,
    as_objects: bool,
) -> int:
    if since is not None and not SINCE.fullmatch(since):
        raise UsageError(f"--since is no time: {since[:80]!r}", "90s, 10m, 2h or 2026-05-01T12:00:00Z")
    if tail != "all" and not re.fullmatch(r"[0-9]{1,7}", tail):
        raise UsageError(f"--tail is no number of lines: {tail[:80]!r}", "give a number, or all")
    engine = Engine.of(settings)
    containers = chosen(engine, services)
    width = max(len(one.service) for one in containers)

    def show(line: Line) -> None:
        result(as_json(line) if as_objects else readable(line, width))

    bounds = [f"--since={since}"] if since is not None else []
    try:
        asyncio.run(_logs(engine, containers, show, bounds, tail, following=following))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


def chosen(engine: Engine, services: Sequence[str]) -> tuple[Container, ...]:
    """Return the containers of the named services, or of all.

    Raises ServiceUnreachable when there are none, UsageError for a name that is no service's.
    """
    containers = engine.containers()
    known = sorted({container.service for container in containers})
    for service in services:
        if service not in {*SERVICES, *known}:
            near = difflib.get_close_matches(service[:80], sorted({*SERVICES, *known}), n=1)
            mend = f"did you mean {near[0]}?" if near else ", ".join(SERVICES)
            raise UsageError(f"no service is named {service[:80]!r}", mend)
    if not containers:
        raise ServiceUnreachable(f"there is no stack named {engine.project}", "./gatehouse up")
    for service in services:
        if service not in known:
            raise ServiceUnreachable(
                f"the stack {engine.project} has no {service}", f"it has {', '.join(known)}"
            )
    return tuple(one for one in containers if not services or one.service in services)


def readable(line: Line, width: int) -> str:
    """Return a line for a reader; `width` is the longest service's name."""
    shown = plain(line)
    level = styled(f"{shown.level}: ", sys.stdout, fg="red") if shown.level else ""
    when = styled(shown.time, sys.stdout, dim=True)
    return f"{when} {styled(shown.service.ljust(width), sys.stdout, fg='cyan')}  {level}{shown.words}"


async def _logs(
    engine: Engine,
    containers: Sequence[Container],
    show: Callable[[Line], None],
    bounds: Sequence[str],
    tail: str,
    *,
    following: bool,
) -> None:
    # One line at least, even of --tail 0: following starts behind the newest.
    most = "all" if tail == "all" else str(max(1, int(tail)))
    lines = await history(engine, containers, *bounds, f"--tail={most}")
    newest = {line.service: line.nanoseconds for line in lines}
    for line in lines if tail == "all" else lines[max(0, len(lines) - int(tail)) :]:
        show(line)
    if following:
        async with contextlib.aclosing(
            follow(engine, list(dict.fromkeys(c.service for c in containers)), newest)
        ) as more:
            async for batch in more:
                for line in batch:
                    show(line)
