"""The page on privacy says the figures that the code has."""

from __future__ import annotations

from pathlib import Path

from runtime.front.identity import Identity
from runtime.front.settings import FrontSettings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "privacy.md"


def row(what: str) -> str:
    """Return the row of the page's first table that begins with a word."""
    (found,) = [line for line in PAGE.read_text().splitlines() if line.startswith(f"| {what}")]
    return found


def test_how_long_conversations_and_tasks_are_held_is_what_the_settings_say() -> None:
    settings = FrontSettings()
    hours = f"{settings.memory_age_seconds / 3600:g} hours after the last message"
    assert hours in row("conversations")
    assert f"{settings.task_age_seconds / 3600:g} hours after the last change" in row("tasks")
    assert f"at most {settings.max_tasks} and" in row("tasks")
    for what in ("conversations", "tasks"):
        assert f"{settings.store_bytes // 2**20} MiB" in row(what)
        assert "on no disk" in row(what)


def test_an_address_cannot_be_told_from_what_is_kept_of_it() -> None:
    today = ["2026-01-01"]
    identity, other = (Identity(today=lambda: today[0]) for _ in range(2))
    first = identity.visitor("203.0.113.9")
    assert "203.0.113.9" not in first
    assert first != other.visitor("203.0.113.9"), "the key is drawn at each start"
    today[0] = "2026-01-02"
    assert first != identity.visitor("203.0.113.9"), "and the day is part of it"
