"""An agent on disk, and the facts of a host and a turn, for the spawner's unit tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.agents.definition import AgentDefinition, Card, Grounding, Limits, Tools
from runtime.spawner.policy import Host, TurnFacts

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def agent(tmp_path: Path) -> AgentDefinition:
    sources = tmp_path / "sources"
    (sources / "grounding" / "deep").mkdir(parents=True)
    (sources / "grounding" / "facts.md").write_text("The sky is blue.\n")
    (sources / "grounding" / "deep" / "more.md").write_text("It is high.\n")
    (sources / "extra").mkdir()
    (sources / "extra" / "letters.md").write_text("Dear all.\n")
    (sources / "tools").mkdir()
    (sources / "tools" / "opening_hours.py").write_text('"""Say when."""\n')
    return AgentDefinition(
        id="tester",
        card=Card("Tester", "A test.", "1", "http://localhost:8011"),
        persona="You are a test. Tools: ${tools_dir}. Home: ${instance_dir}.",
        grounding=Grounding(sources / "grounding", (sources / "extra",), ()),
        tools=Tools(granted=("opening_hours",)),
        tools_dir=sources / "tools",
        model="sonnet",
        limits=Limits(),
    )


@pytest.fixture
def host() -> Host:
    return Host(
        image_id="sha256:" + "1" * 64,
        packs_volume="packs",
        doors_volume="doors",
        owner="0" * 32,
        seccomp='{"defaultAction":"SCMP_ACT_ERRNO"}',
    )


@pytest.fixture
def facts() -> TurnFacts:
    return TurnFacts(turn="a" * 32, uid=23456, deadline=1790000000.7)
