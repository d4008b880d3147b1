"""The official clients of both generations, as they come, play one course against a served front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.clients.conftest import clients
from tests.clients.expectations import CLIENTS, DIFFERENCES, EXPECTED, compared, expected

if TYPE_CHECKING:
    from tests.clients.conftest import Clients


@pytest.mark.parametrize("step", list(EXPECTED))
@pytest.mark.parametrize("client", clients())
def test_a_client_sees_at_each_step_what_the_table_says(others: Clients, client: str, step: str) -> None:
    record = others.records(client).get(step)
    seen: dict[str, Any] | None = None if record is None else compared(step, record)
    assert seen == expected(client, step), record


def test_every_difference_is_of_a_client_and_a_step_and_has_its_reason() -> None:
    for (client, step), (seen, reason) in DIFFERENCES.items():
        assert client in CLIENTS
        assert seen != EXPECTED[step]
        assert len(reason.split()) >= 3
