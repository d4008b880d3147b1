"""`gatehouse status`: what this checkout's stack serves and how it is, on one screen."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import click

from runtime.cli.command import Command
from runtime.cli.failures import INTERRUPTION, told
from runtime.cli.log_lines import turn_words
from runtime.cli.output import Progress, printable, result, result_json, styled
from runtime.cli.said import OUTDATED, line_of
from runtime.cli.settings import Settings, pass_settings
from runtime.cli.status_facts import Facts, gather
from runtime.errors import GatehouseError, ServiceUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.cli.status_facts import Service

SHORT: Final = 12
UNKNOWN: Final = "not known"
LEFT_OUT_SHOWN: Final = 3


@click.command(
    "status",
    cls=Command,
    prints=(
        "One screen: agent, address, model, turns, what is loaded and whether the files have changed since, "
        "money of today, the newest turn, services. With --json one object."
    ),
    exits=(0, 4, 8),
    notes={0: "ready: a visitor gets an answer", 8: "not ready; stderr says why"},
    examples=("gatehouse status", "gatehouse status --json"),
)
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object.")
@pass_settings
def command(settings: Settings, *, as_json: bool) -> int:
    """Say what the stack serves and how it is."""
    try:
        settings.refuse_port()
        with Progress() as progress:
            progress.show("asking the services …")
            facts = gather(settings)
        if facts is None:
            raise ServiceUnreachable(f"no stack named {settings.project} is there", "./gatehouse up")
    except GatehouseError as error:
        if as_json:
            result_json(Facts(settings.project, ()).as_json(told(error)))
        raise
    except KeyboardInterrupt:
        if as_json:
            result_json(Facts(settings.project, ()).as_json(INTERRUPTION))
        raise
    failure = None
    if (cause := facts.cause) is not None:
        failure = ServiceUnreachable(f"{cause.name} is not ready: {cause.reason}", mend(cause))
    if as_json:
        result_json(facts.as_json(None if failure is None else told(failure)))
    else:
        result("\n".join(screen(facts)))
    if failure is not None:
        raise failure
    return 0


def mend(cause: Service) -> str:
    """Say what helps against a service that is not ready."""
    start = cause.reason == OUTDATED or cause.state.startswith(("absent", "exited", "created"))
    return "./gatehouse up" if start else f"./gatehouse logs {cause.name}"


def screen(facts: Facts) -> Iterator[str]:
    """Yield the screen's lines."""
    ready = facts.cause is None
    word = styled("ready", sys.stdout, fg="green") if ready else styled("not ready", sys.stdout, fg="red")
    who = f"{facts.name} ({facts.agent})" if facts.name and facts.name != facts.agent else facts.agent
    yield f"{printable(who) or facts.project}: {word}"
    for label, value in rows(facts):
        yield f"  {label:<11}{value}"


def rows(facts: Facts) -> Iterator[tuple[str, str]]:
    """Yield what is told, as label and value."""
    yield "address", f"http://127.0.0.1:{facts.port}/" if facts.port else UNKNOWN
    yield "public", facts.public_url or UNKNOWN
    yield "model", {True: "demo (quotes documents, no key)", False: "live", None: UNKNOWN}[facts.demo]
    yield "turns", UNKNOWN if facts.running is None else f"{facts.running} running"
    yield "loaded", _loaded(facts)
    yield "files", _files(facts)
    if facts.needs_up:
        yield "waiting", f"{', '.join(facts.needs_up)}: run ./gatehouse up"
    if facts.left_out:
        shown = ", ".join(line_of(one, 60) for one in facts.left_out[:LEFT_OUT_SHOWN])
        more = (
            f" and {len(facts.left_out) - LEFT_OUT_SHOWN} more"
            if len(facts.left_out) > LEFT_OUT_SHOWN
            else ""
        )
        yield "left out", f"{shown}{more}"
    yield "money", _money(facts)
    yield "newest", _newest(facts.newest_turn)
    yield "services", ", ".join(f"{one.name} {one.state}" + _restarts(one.restarts) for one in facts.services)


def _loaded(facts: Facts) -> str:
    if facts.pack is None or facts.digest is None:
        return UNKNOWN
    at = "" if facts.loaded_at is None else f", {_moment(facts.loaded_at)}"
    told = f"pack {facts.pack[:SHORT]}, definition {facts.digest[:SHORT]}{at}"
    if facts.front_digest not in {None, facts.digest}:
        told += f"; the front has {str(facts.front_digest)[:SHORT]} still: ./gatehouse reload"
    return told


def _files(facts: Facts) -> str:
    if facts.problems:
        count = "a mistake" if len(facts.problems) == 1 else f"{len(facts.problems)} mistakes"
        return f"changed since, with {count}: ./gatehouse check {printable(facts.agent)}"
    if facts.stale is None:
        return f"{UNKNOWN}: {facts.stale_detail}" if facts.stale_detail else UNKNOWN
    return "changed since: run ./gatehouse reload" if facts.stale else "as loaded"


def _money(facts: Facts) -> str:
    if facts.spent_today_usd is None:
        return UNKNOWN
    limit = "" if facts.daily_limit_usd is None else f" of {facts.daily_limit_usd:.2f}"
    return f"{facts.spent_today_usd:.4f}{limit} US dollars spent on {facts.day or 'this day'} (UTC)"


def _newest(turn: Any) -> str:
    if turn is None:
        return "none in the log"
    words = printable(turn_words(turn)).removeprefix("turn ")
    return f"{_stamp(str(turn.get('timestamp', '')))} {line_of(words)}".strip()


def _stamp(text: str) -> str:
    try:
        return _moment(datetime.fromisoformat(text).timestamp())
    except (ValueError, OverflowError):
        return ""


def _moment(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (ValueError, OverflowError, OSError):
        return UNKNOWN


def _restarts(count: int) -> str:
    return f" ({count} restarts)" if count > 1 else " (1 restart)" if count else ""
