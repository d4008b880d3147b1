"""Every setting of the front reaches the part that it bounds: the app is built with none at its default."""

from __future__ import annotations

import ipaddress
from dataclasses import fields
from typing import Any

from runtime.front.readiness import Readiness
from runtime.front.settings import NUMBERS, Forwarders, FrontSettings
from runtime.front.wire import HeadBounds, RequestGate
from runtime.server import build_app, server_config

PROXIES = Forwarders((ipaddress.ip_network("192.0.2.0/24"),), local=True)


def of_their_own() -> FrontSettings:
    """Return settings of which none is its default and no two are alike, so that no two can be mixed up."""
    numbers = {one.field: one.default + 10_000 * (1 + place) for place, one in enumerate(NUMBERS)}
    settings = FrontSettings(**numbers, forwarded_from=PROXIES)
    given, default = values(settings), values(FrontSettings())
    assert [name for name in given if given[name] == default[name]] == []
    assert len(set(map(repr, given.values()))) == len(given)
    return settings


def values(settings: FrontSettings) -> dict[str, Any]:
    return {one.name: getattr(settings, one.name) for one in fields(settings)}


def middlewares(app: Any) -> dict[type, Any]:
    """Return the app's middlewares by class, made as they are for the first request."""
    found, one = {}, app.build_middleware_stack()
    while one is not app.router:
        found[type(one)] = one
        one = one.app
    return found


async def test_every_setting_reaches_the_part_that_it_bounds(kit: Any) -> None:
    settings = of_their_own()
    agent = kit.definition()
    readiness = Readiness(kit.Spawner(agent.digest), agent.id, agent.digest)
    app = build_app(agent, kit.Runner(), readiness, settings=settings)
    executor, forget = app.state.executor, app.state.forget
    handler, memory, store = forget._handler, forget._memory, forget._store
    made = middlewares(app)
    head, gate = made[HeadBounds], made[RequestGate]
    config = server_config(app, settings)
    protocol: Any = config.http
    assert {
        "body_max_bytes": gate._settings.body_max_bytes,
        "body_seconds": gate._settings.body_seconds,
        "head_seconds": protocol.head_seconds,
        "head_max_bytes": head._max_bytes,
        "head_max_count": head._max_count,
        "unread_seconds": protocol.unread_seconds,
        "keep_alive_seconds": config.timeout_keep_alive,
        "max_parts": gate._bounds.parts,
        "max_depth": gate._bounds.depth,
        "max_values": gate._bounds.values,
        "max_connections": protocol.connections_max,
        "max_streams": handler._streams_max,
        "max_readers": handler._readers_max,
        "max_waiting": executor._waiting_max,
        "max_tasks": store._max_tasks,
        "task_age_seconds": store._max_age_seconds,
        "memory_age_seconds": memory._max_age_seconds,
        "store_bytes": store._max_bytes,
        "stop_grace_seconds": executor._stop_grace_seconds,
        "forwarded_from": executor._identity._forwarded_from,
    } == values(settings)
    assert memory._max_bytes == settings.store_bytes, "the one setting that bounds two stores"
    assert config.h11_max_incomplete_event_size == settings.head_max_bytes
    assert gate._identity is executor._identity, "one identity names visitors and conversations"
    assert (memory, store, handler._executor) == (executor._memory, handler._store, executor)
