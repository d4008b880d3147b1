"""What is known of the running stack, gathered from those who know it; nothing here is guessed.

The engine tells which containers run, each service's ops socket what it has loaded and whether it could work,
the published port whether a visitor gets the card, and the front's log the newest turn. What nobody could
tell is None.
"""

from __future__ import annotations

import asyncio
import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from runtime.cli.engine import Engine
from runtime.cli.log_lines import TURN, bounded
from runtime.cli.log_source import history
from runtime.cli.said import OUTDATED, line_of
from runtime.cli.waiting import instances_root, overrides_waiting, port_waiting
from runtime.errors import GatehouseError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.cli.containers import Container
    from runtime.cli.failures import Told
    from runtime.cli.said import Said
    from runtime.cli.settings import Settings

# Whoever comes first is the cause of what those behind it report.
NEEDED: Final = ("modelproxy", "spawner", "front", "ingress")
ASKED: Final = ("modelproxy", "spawner", "front")
STATUS_SECONDS: Final = 70.0  # a comparison of files with the pack takes as long as a reload
CARD_SECONDS: Final = 5.0
CARD_MAX_BYTES: Final = 1024 * 1024
LOG_LINES: Final = 400


@dataclass(frozen=True, slots=True)
class Service:
    """One service: how its container is, and why it could not work now, or None."""

    name: str
    state: str
    restarts: int
    reason: str | None


@dataclass(frozen=True, slots=True)
class Facts:
    """One look at a stack. `stale` says whether the files on disk differ from what is loaded.

    `needs_up` names what a reload cannot take over (waiting.py).
    """

    project: str
    services: tuple[Service, ...]
    agent: str = ""
    name: str = ""
    port: int | None = None
    public_url: str | None = None
    demo: bool | None = None
    running: int | None = None
    digest: str | None = None
    front_digest: str | None = None
    pack: str | None = None
    loaded_at: float | None = None
    stale: bool | None = None
    stale_detail: str = ""
    problems: tuple[Mapping[str, Any], ...] = ()
    left_out: tuple[str, ...] = ()
    needs_up: tuple[str, ...] = ()
    spent_today_usd: float | None = None
    daily_limit_usd: float | None = None
    day: str | None = None
    newest_turn: Mapping[str, Any] | None = field(default=None)

    @property
    def cause(self) -> Service | None:
        """The service that keeps the stack from answering, or None when it is ready."""
        by_name = {one.name: one for one in self.services}
        for name in NEEDED:
            one = by_name.get(name)
            if one is None:
                return Service(name, "absent", 0, "there is no container of it")
            if one.reason is not None:
                return one
        return None

    def as_json(self, error: Told | None = None) -> dict[str, Any]:
        """Return all of it as one object, whose keys are always the same (docs/reference/json.md).

        `error` is why the stack is not ready; without a look at any service it is the reason too.
        """
        cause = self.cause if self.services else None
        value = asdict(self)
        demo = value.pop("demo")
        return {
            "ready": error is None,
            "reason": f"{cause.name}: {cause.reason}" if cause else error and error["message"],
            "model": None if demo is None else ("demo" if demo else "live"),
            **{key: None if found == "" else found for key, found in value.items()},
            "error": error,
        }


def gather(settings: Settings) -> Facts | None:
    """Look at the settings' stack; None when it has no container. Raises EngineUnavailable."""
    engine = Engine.of(settings)
    containers = engine.containers()
    if not containers:
        return None
    by_name = {one.service: one for one in containers}
    asked = [by_name[name] for name in ASKED if name in by_name and by_name[name].running]
    port = by_name["ingress"].port if "ingress" in by_name and by_name["ingress"].running else None
    front = by_name.get("front")
    with ThreadPoolExecutor(len(ASKED) + 2) as pool:
        card = pool.submit(_card, port)
        turn = pool.submit(_newest_turn, engine, front)
        said = dict(
            zip(
                (one.service for one in asked), pool.map(lambda one: _status(engine, one), asked), strict=True
            )
        )
    services = tuple(_service(engine, one, said.get(one.service), port, card.result()) for one in containers)
    facts = _facts(engine, services, front, said, port, card.result(), turn.result())
    return replace(facts, needs_up=_needs_up(settings, facts, by_name.get("spawner")))


def _needs_up(settings: Settings, facts: Facts, spawner: Container | None) -> tuple[str, ...]:
    if spawner is None or not facts.agent:
        return ()
    root = instances_root(settings, spawner)
    return (
        *overrides_waiting(settings.environ, spawner.environ),
        *port_waiting(settings, root, facts.agent, spawner.environ, facts.port),
    )


def _facts(
    engine: Engine,
    services: tuple[Service, ...],
    front: Container | None,
    said: Mapping[str, Said],
    port: int | None,
    card: Mapping[str, Any] | None,
    turn: Mapping[str, Any] | None,
) -> Facts:
    told = {name: one.json() for name, one in said.items()}
    of_front, of_spawner, of_proxy = (told.get(name, {}) for name in ("front", "spawner", "modelproxy"))
    agent = str(of_front.get("agent") or (front.environ.get("GATEHOUSE_AGENT", "") if front else ""))
    agents = of_spawner.get("agents")
    served = agents.get(agent) if isinstance(agents, dict) else None
    served = served if isinstance(served, dict) else {}
    spent = of_proxy.get("spent_today_usd")
    return Facts(
        project=engine.project,
        services=services,
        agent=agent,
        name=line_of(str((card or {}).get("name", "")), 120),
        port=port,
        public_url=_public_url(card),
        demo=_first(bool, of_proxy.get("demo"), of_front.get("demo")),
        running=_first(int, of_front.get("running"), of_spawner.get("running")),
        digest=_first(str, served.get("digest")),
        front_digest=_first(str, of_front.get("digest")),
        pack=_first(str, served.get("pack")),
        loaded_at=_first(float, of_spawner.get("loaded_at")),
        stale=_first(bool, served.get("stale")),
        stale_detail=line_of(str(served.get("detail", ""))),
        problems=tuple(one for one in _list(served.get("problems")) if isinstance(one, dict)),
        left_out=tuple(str(one) for name in ("hidden", "not_inlined") for one in _list(served.get(name))),
        spent_today_usd=_first(float, spent.get(agent, 0.0)) if isinstance(spent, dict) else None,
        daily_limit_usd=_first(float, of_proxy.get("daily_limit_usd")),
        day=_first(str, of_proxy.get("day")),
        newest_turn=turn,
    )


def _service(
    engine: Engine,
    container: Container,
    said: Said | None,
    port: int | None,
    card: Mapping[str, Any] | None,
) -> Service:
    reason: str | None = None
    if not container.running:
        reason = f"its container is {container.words()}"
    elif said is not None and said.outdated:
        reason = OUTDATED
    elif said is not None and said.code:
        reason = f"it does not say how it is: {said.reason()}"
    elif said is not None and said.json().get("reason"):
        reason = line_of(str(said.json()["reason"]))
    elif not container.well:
        reason = (
            engine.health(container, "health").reason() if said is not None else f"it is {container.words()}"
        )
    elif container.service == "ingress" and card is None:
        reason = "it publishes no port" if port is None else f"no card comes at http://127.0.0.1:{port}/"
    return Service(container.service, container.words(), container.restarts, reason)


def _status(engine: Engine, container: Container) -> Said:
    return engine.health(container, "status", STATUS_SECONDS)


def _card(port: int | None) -> Mapping[str, Any] | None:
    """Return the card as a visitor gets it through the published port, or None."""
    if port is None:
        return None
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    address = f"http://127.0.0.1:{port}/.well-known/agent-card.json"
    try:
        with opener.open(address, timeout=CARD_SECONDS) as reply:
            value = json.loads(reply.read(CARD_MAX_BYTES))
    except (OSError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _public_url(card: Mapping[str, Any] | None) -> str | None:
    interfaces = _list((card or {}).get("supportedInterfaces"))
    first = interfaces[0] if interfaces else {}
    value = first.get("url") if isinstance(first, dict) else None
    return line_of(value) if isinstance(value, str) and value else None


def _newest_turn(engine: Engine, front: Container | None) -> Mapping[str, Any] | None:
    if front is None:
        return None
    try:
        lines = asyncio.run(history(engine, [front], f"--tail={LOG_LINES}"))
    except GatehouseError:
        return None
    turns = (line.fields for line in reversed(lines) if '"turn"' in line.untrusted_text)
    return next((one for one in turns if one is not None and one.get("event") == TURN), None)


def _list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def _first(kind: type[Any], *values: Any) -> Any:
    """Return the first value of a kind; whole numbers are numbers of any kind, but truth is none.

    A number that is not finite or larger than any count or time is none.
    """
    for value in values:
        if kind in {int, float} and bounded(value) is None:
            continue
        if isinstance(value, (int, float) if kind is float else kind):
            return value
    return None
