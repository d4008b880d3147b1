"""The agents and packs that are served: swapped in one step, and a pack in use is never removed."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
from typing import TYPE_CHECKING

import pytest

from runtime.errors import ConfigError, HostError, Problem
from runtime.spawner import catalogue as module
from runtime.spawner.catalogue import Catalogue
from runtime.spawner.packs import build_pack, pack_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from runtime.agents.definition import AgentDefinition


class Files:
    """What is on the owner's disk, and which packs turns have."""

    def __init__(self, folder: Path, *agents: AgentDefinition) -> None:
        self.agents = {agent.id: agent for agent in agents}
        self.mounted: set[str] = set()
        self.folder = folder
        self.before_load: Callable[[], object] = lambda: None
        self.catalogue = Catalogue(tuple(self.agents), folder, self.load, lambda: self.mounted)

    def hold_load(self) -> tuple[threading.Event, threading.Event]:
        """Have the next load say that it began, by the first event, and wait for the second."""
        building, release = threading.Event(), threading.Event()

        def before_load() -> None:
            building.set()
            assert release.wait(5)

        self.before_load = before_load
        return building, release

    def load(self, name: str) -> AgentDefinition:
        self.before_load()
        return self.agents[name]

    def write(self, name: str, text: str) -> None:
        (self.agents[name].grounding.directory / "facts.md").write_text(text)

    def pack(self, name: str) -> str:
        ready = self.catalogue.get(name)
        assert ready is not None
        return ready.pack.digest

    def defined(self) -> list[str]:
        """Return the models of the definitions that can be asked for, the one that is served last."""
        both = (self.catalogue.previous("tester"), self.catalogue.get("tester"))
        for one in both:
            assert one is None or self.catalogue.defined("tester", one.agent.digest) is one
        return [one.agent.model for one in both if one is not None]

    def on_disk(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def files(agent: AgentDefinition, tmp_path: Path) -> Files:
    folder = tmp_path / "packs"
    folder.mkdir()
    return Files(folder, agent)


def broken(message: str) -> ConfigError:
    return ConfigError((Problem("a.yaml", 1, 1, "x", message, "mend it"),))


async def test_a_load_says_of_each_agent_whether_it_changed(files: Files, agent: AgentDefinition) -> None:
    first = await files.catalogue.load()
    pack = files.pack("tester")
    assert first == {"tester": {"digest": agent.digest, "pack": pack, "changed": True}}
    assert (await files.catalogue.load())["tester"]["changed"] is False
    files.write("tester", "The sky is red.\n")
    again = await files.catalogue.load()
    assert again["tester"]["changed"] is True
    assert again["tester"]["digest"] == agent.digest
    assert again["tester"]["pack"] == files.pack("tester") != pack
    files.agents["tester"] = dataclasses.replace(agent, model="opus")
    third = await files.catalogue.load()
    assert (third["tester"]["changed"], third["tester"]["pack"]) == (True, again["tester"]["pack"])


async def test_what_nobody_can_ask_for_and_no_turn_has_leaves_the_disk_at_once(files: Files) -> None:
    await files.catalogue.load()
    files.write("tester", "The sky is red.\n")
    await files.catalogue.load()
    assert files.on_disk() == {files.pack("tester")}


@pytest.mark.parametrize("reloads", [1, 3])
async def test_the_pack_of_a_live_turn_stays_whole_until_the_turn_has_ended(
    files: Files, reloads: int
) -> None:
    await files.catalogue.load()
    old = files.pack("tester")
    files.mounted = {old}
    for number in range(reloads):
        files.write("tester", f"Number {number}.\n")
        await files.catalogue.load()
    await files.catalogue.sweep()
    assert files.on_disk() == {old, files.pack("tester")}
    assert pack_digest(files.folder / old) == old
    files.mounted = set()
    await files.catalogue.sweep()
    assert files.on_disk() == {files.pack("tester")}


async def test_a_sweep_with_nothing_to_remove_looks_at_no_disk(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    await files.catalogue.load()
    monkeypatch.setattr(module, "prune", lambda *_: pytest.fail("it was not needed"))
    await files.catalogue.sweep()
    assert files.on_disk() == {files.pack("tester")}


async def test_a_reload_that_fails_half_way_changes_nothing_and_leaves_nothing(
    agent: AgentDefinition, tmp_path: Path
) -> None:
    folder = tmp_path / "packs"
    folder.mkdir()
    other = dataclasses.replace(agent, id="other", persona="You are another.")
    files = Files(folder, agent, other)
    await files.catalogue.load()
    served = [files.catalogue.get(name) for name in ("tester", "other")]
    disk, loaded_at = files.on_disk(), files.catalogue.loaded_at
    files.write("tester", "The sky is red.\n")  # its pack is built before the next one's is refused
    (agent.grounding.directory / "deep" / "link").symlink_to("/etc/passwd")
    with pytest.raises(ConfigError, match="is a symbolic link"):
        await files.catalogue.load()
    (agent.grounding.directory / "deep" / "link").unlink()

    def load(name: str) -> AgentDefinition:
        if name == "other":
            raise HostError("no space")
        return agent

    files.catalogue._load = load
    with pytest.raises(HostError, match="no space"):
        await files.catalogue.load()
    assert [files.catalogue.get(name) for name in ("tester", "other")] == served
    assert (files.on_disk(), files.catalogue.loaded_at) == (disk, loaded_at)


async def test_the_problems_of_all_instances_come_together(agent: AgentDefinition, tmp_path: Path) -> None:
    def load(name: str) -> AgentDefinition:
        raise broken(f"is wrong in {name}")

    catalogue = Catalogue(("one", "two"), tmp_path, load, set)
    with pytest.raises(ConfigError) as caught:
        await catalogue.load()
    assert [problem.message for problem in caught.value.problems] == ["is wrong in one", "is wrong in two"]
    assert catalogue.all() == ()
    assert agent.id == "tester"


async def test_a_start_that_fails_removes_no_pack(files: Files) -> None:
    await files.catalogue.load()
    before = files.on_disk()

    def load(name: str) -> AgentDefinition:
        raise broken(f"is wrong in {name}")

    with pytest.raises(ConfigError):
        await Catalogue(("tester",), files.folder, load, set).load()
    assert files.on_disk() == before


async def test_two_reloads_at_once_run_one_after_the_other(files: Files) -> None:
    loading, release = threading.Event(), threading.Event()
    inside = threading.Lock()
    seen: list[str] = []

    def before_load() -> None:
        assert inside.acquire(blocking=False), "two loads at once"
        loading.set()
        assert release.wait(5)
        seen.append((files.agents["tester"].grounding.directory / "facts.md").read_text())
        inside.release()

    files.before_load = before_load
    first = asyncio.create_task(files.catalogue.load())
    async with asyncio.timeout(10):
        assert await asyncio.to_thread(loading.wait, 5)
        second = asyncio.create_task(files.catalogue.load())
        for _ in range(3):  # long enough for a second load that does not wait to begin
            await asyncio.to_thread(lambda: None)
        release.set()
        await first
        await second
    assert len(seen) == 2
    assert files.on_disk() == {files.pack("tester")}


async def test_a_turn_that_begins_while_packs_are_built_has_the_old_pack_and_keeps_it(files: Files) -> None:
    await files.catalogue.load()
    old = files.catalogue.get("tester")
    assert old is not None
    building, release = files.hold_load()
    files.write("tester", "The sky is red.\n")
    reloading = asyncio.create_task(files.catalogue.load())
    async with asyncio.timeout(10):
        assert await asyncio.to_thread(building.wait, 5)
        assert files.catalogue.get("tester") is old  # served on, and a turn begins with it
        files.mounted = {old.pack.digest}
        release.set()
        await reloading
    assert files.pack("tester") != old.pack.digest
    assert files.on_disk() == {old.pack.digest, files.pack("tester")}


async def test_a_reload_is_carried_out_though_nobody_waits_for_it_any_more(files: Files) -> None:
    await files.catalogue.load()
    old = files.pack("tester")
    building, release = files.hold_load()
    files.write("tester", "The sky is red.\n")
    waiting = asyncio.create_task(files.catalogue.load())
    async with asyncio.timeout(10):
        assert await asyncio.to_thread(building.wait, 5)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        files.before_load = lambda: None
        release.set()
        assert (await files.catalogue.load())["tester"][
            "changed"
        ] is False  # after the other, never beside it
    assert files.pack("tester") != old


async def test_a_disk_that_cannot_be_pruned_fails_no_reload_and_is_tried_again(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    await files.catalogue.load()
    old = files.pack("tester")

    def fail(*_: object) -> None:
        raise PermissionError("not now")

    files.write("tester", "The sky is red.\n")
    with monkeypatch.context() as patch:
        patch.setattr(module, "prune", fail)
        assert (await files.catalogue.load())["tester"]["changed"] is True
    assert old in files.on_disk()
    await files.catalogue.sweep()
    assert files.on_disk() == {files.pack("tester")}


async def test_stale_says_what_a_reload_would_change_and_changes_nothing(
    files: Files, agent: AgentDefinition
) -> None:
    await files.catalogue.load()
    served, disk = files.catalogue.get("tester"), files.on_disk()
    assert await files.catalogue.compare() == {"tester": {"stale": False}}
    files.write("tester", "The sky is red.\n")
    assert await files.catalogue.compare() == {"tester": {"stale": True}}
    files.write("tester", "The sky is blue.\n")
    files.agents["tester"] = dataclasses.replace(agent, model="opus")
    assert await files.catalogue.compare() == {"tester": {"stale": True}}
    assert (files.catalogue.get("tester"), files.on_disk()) == (served, disk)


async def test_stale_tells_the_problems_of_files_that_are_wrong_now(files: Files) -> None:
    await files.catalogue.load()

    def wrong() -> None:
        raise broken("is wrong")

    files.before_load = wrong
    told = (await files.catalogue.compare())["tester"]
    assert told["stale"] is True
    assert [problem["message"] for problem in told["problems"]] == ["is wrong"]

    def full() -> None:
        raise HostError("no space")

    files.before_load = full
    assert (await files.catalogue.compare())["tester"] == {"stale": None, "detail": "no space"}


async def test_the_definition_before_stays_with_its_pack_until_the_next_takes_its_place(
    files: Files, agent: AgentDefinition
) -> None:
    definitions = [dataclasses.replace(agent, model=model) for model in ("first", "second", "third")]
    packs = []
    for number, one in enumerate(definitions):
        files.agents["tester"] = one
        files.write("tester", f"Number {number}.\n")
        await files.catalogue.load()
        packs.append(files.pack("tester"))
        assert files.defined() == [old.model for old in definitions[: number + 1]][-2:]
        assert files.on_disk() == set(packs[-2:])
    assert files.catalogue.defined("tester", definitions[0].digest) is None
    assert files.catalogue.defined("other", definitions[2].digest) is None
    kept = files.catalogue.defined("tester", definitions[1].digest)
    assert kept is not None
    assert (kept.agent, kept.pack.digest) == (definitions[1], packs[1])
    assert pack_digest(files.folder / packs[1]) == packs[1]
    await files.catalogue.sweep()
    assert files.on_disk() == set(packs[1:])


async def test_a_reload_without_a_new_definition_keeps_the_one_before(
    files: Files, agent: AgentDefinition
) -> None:
    await files.catalogue.load()
    first = files.pack("tester")
    files.agents["tester"] = dataclasses.replace(agent, model="second")
    await files.catalogue.load()
    for text in ("The sky is blue.\n", "The sky is red.\n"):
        files.write("tester", text)
        await files.catalogue.load()
        assert files.defined() == [agent.model, "second"]
        assert files.on_disk() == {first, files.pack("tester")}
    files.agents["tester"] = agent
    await files.catalogue.load()
    assert files.defined() == ["second", agent.model]


def test_a_pack_that_is_only_looked_at_is_not_kept(agent: AgentDefinition, tmp_path: Path) -> None:
    folder = tmp_path / "packs"
    folder.mkdir()
    looked_at = build_pack(agent, folder, keep=False)
    assert list(folder.iterdir()) == []
    assert build_pack(agent, folder) == looked_at
