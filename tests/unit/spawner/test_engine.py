"""How a container's end is made sure of, whatever the engine says of it.

The API is a fake that says one thing and does another; tests/faults has an engine that does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from docker.errors import APIError, NotFound

from runtime.errors import EngineUnavailable
from runtime.spawner.engine import Ended, Engine

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path


@dataclass
class Api:
    """Holds one container; `wait` always says that it was removed. What is in `refuses` does nothing."""

    base_url: str = "http+docker://localhost"
    there: bool = True
    refuses: tuple[str, ...] = ()
    asked: list[str] = field(default_factory=list)

    def wait(self, _container: str, **_options: Any) -> None:
        self.asked.append("wait")

    def inspect_container(self, container: str) -> dict[str, Any]:
        self.asked.append("inspect")
        if not self.there:
            raise NotFound(f"no container {container}")
        return {}

    def kill(self, _container: str) -> None:
        self._do("kill")

    def remove_container(self, _container: str, **_options: Any) -> None:
        self._do("remove")
        self.there = False

    def get(self, _url: str, **_options: Any) -> Any:
        raise APIError("no events")

    def close(self) -> None:
        pass

    def _do(self, what: str) -> None:
        self.asked.append(what)
        if what in self.refuses:
            raise APIError(f"will not {what}")


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncGenerator[Engine, None]:
    made = Engine(tmp_path / "docker.sock")
    yield made
    await made.close()


async def test_a_container_that_is_gone_as_the_wait_said_is_left_alone(engine: Engine) -> None:
    engine._api = api = Api(there=False)
    assert await engine.end("c", kill=False, since=0) == Ended()
    assert api.asked == ["wait", "inspect"]


async def test_a_container_that_is_still_there_after_a_wait_that_said_removed_is_killed_and_removed(
    engine: Engine,
) -> None:
    engine._api = api = Api()
    assert await engine.end("c", kill=False, since=0) == Ended()
    assert api.asked == ["wait", "inspect", "kill", "remove", "inspect"]


async def test_a_container_that_stays_after_all_of_it_is_an_error(engine: Engine) -> None:
    engine._api = api = Api(refuses=("kill", "remove"))
    with pytest.raises(EngineUnavailable, match="could not be removed: the engine refused remove"):
        await engine.end("c", kill=False, since=0)
    assert api.asked == ["wait", "inspect", "kill", "remove", "inspect", "wait", "inspect"]
