"""The programs of the page for clients, run as they stand against a served front, each by its library."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.clients.conftest import AGENT, REPO, clients
from tests.clients.expectations import CLIENTS

if TYPE_CHECKING:
    from tests.clients.conftest import Clients

PAGE = (REPO / "docs" / "how-to" / "client.md").read_text()
PROGRAMS = re.findall(r"^```(?:python|javascript)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
ADDRESS = "http://127.0.0.1:8011"


def test_the_page_has_a_program_for_every_client() -> None:
    assert len(PROGRAMS) == len(CLIENTS)
    assert [program.count(ADDRESS) for program in PROGRAMS] == [1] * len(CLIENTS)


@pytest.mark.parametrize("client", clients())
def test_a_clients_program_prints_the_answers(others: Clients, client: str) -> None:
    program = PROGRAMS[CLIENTS.index(client)].replace(ADDRESS, others.url)
    assert others.run(client, program).splitlines() == [
        "echo: When are your office hours?",
        "echo: And where?",
    ]


def test_the_gateways_agent_on_the_page_has_what_the_tested_one_has() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (agent,) = yaml.safe_load(block)["agents"]
    params = agent["agent_card_params"]
    assert params == AGENT | {"protocolVersion": "1.0", "url": ADDRESS + "/"}
    assert agent["litellm_params"] == {}
