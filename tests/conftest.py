"""What every test shares: asyncio is the event loop, and one whole stack serves all who need one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.stack import Stack

settings.register_profile("gatehouse", deadline=None)  # no test asserts wall time
settings.load_profile("gatehouse")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="session")
def stack() -> Iterator[Stack]:
    from tests.harness.stack import Stack  # unit tests need no engine

    with Stack() as running:
        yield running
