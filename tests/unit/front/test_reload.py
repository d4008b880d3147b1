"""A reload of the front: one at a time, after the spawner, and nothing changed when it fails."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runtime.agents.definition import AgentDefinition, Card, Grounding, Network, Tools
from runtime.errors import ConfigError, DefinitionMismatch, Problem, ServiceUnreachable
from runtime.front.current import Current, served
from runtime.front.reload import Reload, at_the_same_address, default_url


def definition(**changes: Any) -> AgentDefinition:
    agent = AgentDefinition(
        id="ada",
        card=Card("Ada", "Answers.", "1", "http://127.0.0.1:8011"),
        persona="You are Ada.",
        grounding=Grounding(Path("/nowhere")),
        tools=Tools(),
        tools_dir=Path("/nowhere"),
        model="sonnet",
    )
    return replace(agent, **changes)


OLD, NEW = definition(), definition(persona="You are Ada, anew.")


class Spawner:
    """Says what it serves; `failing` makes it unreachable. It leaves out everything else."""

    def __init__(self, agent: AgentDefinition) -> None:
        self.digest = agent.digest
        self.failing = False
        self.order: list[str] = []
        self.asked = asyncio.Event()
        self.answering = asyncio.Event()
        self.answering.set()

    async def agent(self, agent: str) -> dict[str, Any]:
        self.order.append("asked")
        self.asked.set()
        await self.answering.wait()
        self.order.append("answered")
        if self.failing:
            raise OSError(f"the spawner did not describe agent {agent}")
        return {"id": agent, "digest": self.digest, "pack": "p", "demo": False}


def current() -> Current:
    return Current(served(OLD, OLD.digest))


async def test_a_definition_that_the_spawner_serves_is_served_and_said_to_be_new() -> None:
    now = current()
    before = now.now
    told: list[str] = []
    now.follow(lambda one: told.append(one.digest))
    reload = Reload(now, Spawner(NEW), lambda: NEW)
    assert await reload() == {"agent": "ada", "digest": NEW.digest, "changed": True}
    assert now.now.pack == "p"
    assert (now.agent.persona, now.now.digest, told) == (NEW.persona, NEW.digest, [NEW.digest])
    assert now.now.loaded_at >= before.loaded_at
    assert await reload() == {"agent": "ada", "digest": NEW.digest, "changed": False}


async def test_files_that_are_wrong_change_nothing_and_the_spawner_is_not_asked() -> None:
    def broken() -> AgentDefinition:
        raise ConfigError((Problem("a.yaml", 1, 2, "x", "is wrong", "mend it"),))

    now, spawner = current(), Spawner(OLD)
    before = now.now
    with pytest.raises(ConfigError):
        await Reload(now, spawner, broken)()
    assert now.now is before
    assert not spawner.asked.is_set()


async def test_a_spawner_that_serves_something_else_changes_nothing() -> None:
    now = current()
    before = now.now
    with pytest.raises(DefinitionMismatch, match="reload the spawner first"):
        await Reload(now, Spawner(OLD), lambda: NEW)()
    assert now.now is before


async def test_a_spawner_out_of_reach_changes_nothing_and_no_later_reload_waits_for_it() -> None:
    now, spawner = current(), Spawner(NEW)
    before = now.now
    reload = Reload(now, spawner, lambda: NEW)
    spawner.failing = True
    with pytest.raises(ServiceUnreachable, match="did not describe agent ada"):
        await reload()
    assert now.now is before
    spawner.failing = False
    assert (await reload())["changed"] is True


async def test_a_reload_that_is_given_up_half_way_changes_nothing_and_lets_the_next_in() -> None:
    now, spawner = current(), Spawner(NEW)
    before = now.now
    reload = Reload(now, spawner, lambda: NEW)
    spawner.answering.clear()
    given_up = asyncio.create_task(reload())
    async with asyncio.timeout(5):
        await spawner.asked.wait()
        given_up.cancel()
        with pytest.raises(asyncio.CancelledError):
            await given_up
        assert now.now is before
        spawner.answering.set()
        assert (await reload())["changed"] is True


async def test_two_reloads_at_once_run_one_after_the_other_and_the_later_sees_the_later_files() -> None:
    files = iter([NEW, OLD])
    now, spawner = current(), Spawner(NEW)
    order = spawner.order

    def load() -> AgentDefinition:
        order.append("load")
        return next(files)

    reload = Reload(now, spawner, load)
    spawner.answering.clear()
    first = asyncio.create_task(reload())
    async with asyncio.timeout(5):
        await spawner.asked.wait()
        second = asyncio.create_task(reload())
        for _ in range(3):  # long enough for a second load that does not wait to begin
            await asyncio.to_thread(lambda: None)
        spawner.answering.set()
        assert (await first)["digest"] == NEW.digest
        with pytest.raises(DefinitionMismatch):  # the spawner still serves the first one's
            await second
    assert now.now.digest == NEW.digest
    assert order == ["load", "asked", "answered"] * 2


async def test_the_port_stays_until_a_restart_and_the_card_goes_on_naming_it() -> None:
    moved = definition(
        network=Network(port=9000, cors_origins=("https://a.example",)),
        card=replace(OLD.card, public_url="http://127.0.0.1:9000", version="2"),
    )
    now = current()
    answer = await Reload(now, Spawner(moved), lambda: moved)()
    assert answer == {"agent": "ada", "digest": moved.digest, "changed": True, "restart": ["port"]}
    assert now.now.digest == moved.digest
    assert now.agent.network == Network(port=8011, cors_origins=("https://a.example",))
    assert (now.agent.card.public_url, now.agent.card.version) == ("http://127.0.0.1:8011", "2")


def test_a_public_address_of_its_own_is_followed_though_the_port_waits() -> None:
    loaded = definition(
        network=Network(host="::1", port=9000), card=replace(OLD.card, public_url="https://ada.example")
    )
    agent, restart = at_the_same_address(loaded, OLD.network)
    assert restart == ["host", "port"]
    assert agent.card.public_url == "https://ada.example"
    assert default_url(loaded.network) == "http://[::1]:9000"


def test_the_address_without_a_change_is_no_reason_to_restart() -> None:
    assert at_the_same_address(NEW, OLD.network) == (NEW, [])
