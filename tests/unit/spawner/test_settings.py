from __future__ import annotations

from pathlib import Path

import pytest

from runtime.errors import UsageError
from runtime.spawner.settings import TABLE, read_settings, settings_page

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "spawner-settings.md"


def test_defaults_hold_when_nothing_or_emptiness_is_set() -> None:
    empty = read_settings({one.name: " " for one in TABLE})
    assert empty == read_settings({})
    assert empty.agents == ("ada",)
    assert empty.turn_memory_bytes == 1024 * 1024 * 1024


def test_two_agents_are_two_names() -> None:
    assert read_settings({"GATEHOUSE_AGENT": "ada, grace"}).agents == ("ada", "grace")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GATEHOUSE_AGENT", ","),
        ("GATEHOUSE_AGENT", "ada,ada"),
        ("TURN_RUNTIME", "crun"),
        ("TURN_MEMORY_MIB", "1"),
        ("TURN_MEMORY_MIB", "1e3"),
        ("TURN_PIDS", "٣٣٣"),
        ("TURN_CPUS", "nan"),
        ("TURN_CPUS", "many"),
        ("SPAWNER_MAX_RUNNING", "0"),
        ("SPAWNER_STARTS_PER_MINUTE", "-1"),
        ("SPAWNER_MEMORY_MIB", "9" * 4000),
    ],
)
def test_a_wrong_value_is_one_sentence_that_names_the_variable(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        read_settings({name: value})


def test_the_page_is_the_tables() -> None:
    assert PAGE.read_text() == settings_page()
