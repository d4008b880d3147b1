"""`gatehouse reload`: serve an instance's files as they are now, without a restart and without losing a turn.

The files are checked on this host first, so that every mistake is told with its place while the old ones
are served on. Then the spawner takes them, which runs the turns, and then the front, which describes them.
Running turns end on what they began with.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import click

from runtime import layout
from runtime.agents.check import check_instances
from runtime.agents.fields import OVERRIDES
from runtime.agents.instance import load_instance
from runtime.agents.sources import mounts
from runtime.cli.command import Command
from runtime.cli.engine import RELOAD_SECONDS, Engine
from runtime.cli.failures import INTERRUPTION, Told, told
from runtime.cli.output import Progress, printable, result, result_json, talk
from runtime.cli.said import OUTDATED, line_of
from runtime.cli.settings import Settings, pass_settings
from runtime.cli.waiting import (
    FIXED,
    NEVER,
    instances_root,
    overrides_waiting,
    port_waiting,
    published,
)
from runtime.errors import (
    ConfigError,
    DefinitionMismatch,
    GatehouseError,
    HostError,
    ImageError,
    Problem,
    ServiceUnreachable,
)

if TYPE_CHECKING:
    from runtime.cli.containers import Container
    from runtime.cli.said import Said

SHORT: Final = 12
AGAIN: Final = "./gatehouse reload once more; if it stays so, ./gatehouse up"


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the services have of one agent: its definition and its pack, each a digest or "" when unknown."""

    digest: str = ""
    pack: str = ""


@dataclass(slots=True)
class Report:
    """What has happened so far; the whole of it with --json."""

    agent: str = ""
    step: str = "check"
    before: Loaded = Loaded()
    after: Loaded = Loaded()
    changed: bool = False
    restart: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def as_json(self, error: Told | None = None) -> dict[str, Any]:
        """Return it as one object, whose keys are always the same (docs/reference/json.md)."""
        return {
            "ok": error is None,
            "agent": self.agent or None,
            "step": None if error is None else self.step,
            "changed": self.changed,
            "pack": {"before": self.before.pack or None, "now": self.after.pack or None},
            "definition": {"before": self.before.digest or None, "now": self.after.digest or None},
            "needs_up": list(self.restart),
            "problems": [problem.as_json() for problem in self.problems],
            "error": error,
        }


@click.command(
    "reload",
    cls=Command,
    prints="What changed, or that nothing did. With --json one object.",
    exits=(0, 3, 4, 5, 8),
    notes={
        0: "served as on disk",
        3: "the files have mistakes; what was loaded before is served on",
        5: "the running stack is older than this checkout",
        8: "a service does not answer, or front and spawner differ now; stderr says which and the mend",
    },
    examples=("gatehouse reload", "gatehouse reload --json"),
)
@click.option("--json", "as_json", is_flag=True, help="Print it as one JSON object.")
@pass_settings
def command(settings: Settings, *, as_json: bool) -> int:
    """Serve the instance's files as they are now, without a restart.

    Turns that run end on what they began with, and conversations go on. What needs a start of the stack
    instead (folders that are not mounted, settings of the environment) is said.
    """
    report = Report()
    try:
        with Progress() as progress:
            _reload(settings, report, progress)
    except GatehouseError as error:
        if as_json:
            report.problems = error.problems if isinstance(error, ConfigError) else ()
            result_json(report.as_json(told(error)))
        raise
    except KeyboardInterrupt:
        if as_json:
            result_json(report.as_json(INTERRUPTION))
        raise
    if as_json:
        result_json(report.as_json())
    else:
        result(words(report))
    if report.restart:
        talk(f"not taken over before ./gatehouse up: {', '.join(map(printable, report.restart))}")
    return 0


def words(report: Report) -> str:
    """Say what changed."""
    changes = [
        f"{what} {old[:SHORT] or 'unknown'} -> {new[:SHORT]}"
        for what, old, new in (
            ("pack", report.before.pack, report.after.pack),
            ("definition", report.before.digest, report.after.digest),
        )
        if old != new
    ]
    if not changes and not report.changed:
        return f"{printable(report.agent)}: nothing changed (pack {report.after.pack[:SHORT]})"
    told = ", ".join(changes) or f"the front took the definition {report.after.digest[:SHORT]} of the spawner"
    return f"{printable(report.agent)}: {told}"


def _reload(settings: Settings, report: Report, progress: Progress) -> None:
    engine = Engine.of(settings)
    front, spawner = engine.service("front"), engine.service("spawner")
    if settings.environ.get(NEVER, "").strip():
        talk(f"{NEVER} does nothing in the stack: it is for runs without a sandbox")
    report.agent = front.environ.get("GATEHOUSE_AGENT", settings.agent)
    report.before = report.after = _loaded(engine, spawner, report.agent)
    progress.show("checking the files …")
    _check(settings, spawner, report, published(engine.containers()))
    progress.show("the spawner loads …")
    report.step = "spawner"
    answer = _of_spawner(engine.health(spawner, "reload", RELOAD_SECONDS))
    served = answer.get("agents", {}).get(report.agent, {})
    report.after = Loaded(str(served.get("digest", "")), str(served.get("pack", "")))
    report.changed = served.get("changed") is True
    progress.show("the front loads …")
    report.step = "front"
    answer = _of_front(engine, front, report)
    report.changed = report.changed or answer.get("changed") is True
    report.restart = tuple(dict.fromkeys((*report.restart, *map(str, answer.get("restart", ())))))


def _loaded(engine: Engine, spawner: Container, agent: str) -> Loaded:
    """Return what the spawner has now, as far as it says. Raises ImageError when it is an older one."""
    said = engine.health(spawner, "status", RELOAD_SECONDS)
    _refuse_old(said)
    agents = said.json().get("agents")
    told = agents.get(agent, {}) if isinstance(agents, dict) else {}
    return Loaded(str(told.get("digest", "")), str(told.get("pack", "")))


def _check(settings: Settings, spawner: Container, report: Report, port: int | None) -> None:
    """Check the files that the services read, as they read them.

    Raises ConfigError with every mistake, HostError for folders that are not mounted.
    """
    root = instances_root(settings, spawner)
    folder = root / layout.INSTANCES.name
    if not (folder / report.agent).is_dir():
        talk(f"{folder / report.agent} is not on this host: the services check their files themselves")
        return
    if folder != settings.root / layout.INSTANCES.name:
        talk(f"the stack {settings.project} reads its instances from {folder}")
    fixed = {name: spawner.environ[name] for name in FIXED if name in spawner.environ}
    environ = {name: value for name, value in settings.environ.items() if name not in OVERRIDES} | fixed
    report.restart = (
        *overrides_waiting(settings.environ, fixed),
        *port_waiting(settings, root, report.agent, fixed, port),
    )
    problems = [
        problem for checked in check_instances(root, (report.agent,), environ) for problem in checked.problems
    ]
    if problems:
        raise ConfigError(tuple(problems))
    grounding = load_instance(root, report.agent, environ, check_sources=False).grounding
    missing = [str(host) for host, inside in mounts(grounding, root) if str(inside) not in spawner.mounts]
    if missing:
        raise HostError(
            f"the running stack cannot see {', '.join(dict.fromkeys(missing))}",
            "folders are mounted at a start: run ./gatehouse up",
        )


def _of_spawner(said: Said) -> dict[str, Any]:
    if said.code == 0:
        return said.json()
    _refuse_old(said)
    problems = problems_of(said)
    if problems:
        raise ConfigError(problems)
    raise ServiceUnreachable(f"the spawner reloaded nothing: {said.reason()}", "./gatehouse logs spawner")


def _of_front(engine: Engine, front: Container, report: Report) -> dict[str, Any]:
    said = engine.health(front, "reload", RELOAD_SECONDS)
    if said.code == 0:
        return said.json()
    why = "; ".join(map(str, problems_of(said))) or said.reason()
    kind = DefinitionMismatch if said.code == DefinitionMismatch.exit_code else ServiceUnreachable
    raise kind(
        f"turns run on the files as they are now (pack {report.after.pack[:SHORT]}), but the front still "
        f"describes and admits by what it had before: {why}",
        AGAIN,
    )


def problems_of(said: Said) -> tuple[Problem, ...]:
    """Return the problems that a service answered with."""
    found = said.json().get("problems")
    return tuple(
        Problem(
            line_of(str(one.get("file", ""))),
            _number(one.get("line")),
            _number(one.get("col")),
            line_of(str(one.get("path", ""))),
            line_of(str(one.get("message", ""))),
            line_of(str(one.get("mend", ""))),
        )
        for one in (found if isinstance(found, list) else ())
        if isinstance(one, dict)
    )


def _refuse_old(said: Said) -> None:
    if said.outdated:
        raise ImageError(f"the spawner cannot reload: {OUTDATED}", "./gatehouse up")


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
