"""What every test shares: an event loop, one whole stack, and no setting that the operator has exported."""

from __future__ import annotations

import asyncio
import functools
import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

import httpcore2
import pytest
import uvicorn.server
from hypothesis import settings

from runtime.agents.fields import ENVIRONMENT, OVERRIDES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.stack import Stack

settings.register_profile("gatehouse", deadline=None)  # no test asserts wall time
settings.register_profile("other", settings.get_profile("gatehouse"), max_examples=20)  # the second Python's
settings.load_profile("gatehouse")


# Settings of ours; DOCKER_* and BASE stay, since they say how this machine builds and reaches its engine.
OURS = ("AGENT_", "COMPOSE_", "FRONT_", "GATEHOUSE_", "MODEL_", "SPAWNER_", "TUNNEL_", "TURN_")
KEPT = "GATEHOUSE_LOCKED"  # no setting: it tells a test's own ./gatehouse that this run holds the lock
NAMED = frozenset({*OVERRIDES, ENVIRONMENT, "MODEL"})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "host_only(reason): cannot run in the container of the other Python (tests/other_python.sh)",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuse a mark that leaves a test out without saying why."""
    for item in items:
        for mark in item.iter_markers("host_only"):
            if len(mark.args) != 1 or not str(mark.args[0]).strip():
                raise pytest.UsageError(f"{item.nodeid}: host_only needs its reason")


def ours(name: str) -> bool:
    return name in NAMED or (name.startswith(OURS) and name != KEPT)


@pytest.fixture(scope="session", autouse=True)
def _clean_environment() -> Iterator[None]:
    """Take our settings out of the environment, so that a test sees what it sets itself."""
    with pytest.MonkeyPatch.context() as patch:
        for name in filter(ours, tuple(os.environ)):
            patch.delenv(name)
        yield


async def _soon(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.01))


@pytest.fixture(scope="session", autouse=True)
def _quick_ends() -> Iterator[None]:
    """Save what each of some hundred servers and clients in this process would wait for or read again.

    uvicorn looks ten times a second whether it is to end, and a client reads the host's certificates when it
    is made, also where it asks in clear text.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(uvicorn.server, "asyncio", SimpleNamespace(**vars(asyncio) | {"sleep": _soon}))
        patch.setattr(httpcore2, "default_ssl_context", functools.cache(httpcore2.default_ssl_context))
        yield


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    from tests.harness.stack import Stack  # unit tests need no engine

    with Stack() as running:
        yield running
