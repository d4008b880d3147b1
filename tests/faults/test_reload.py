"""A reload of the spawner while something that it needs, or that a turn needs, is broken."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest

from tests.faults.conftest import full

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.conftest import Faults

pytestmark = pytest.mark.engine

OLD: Final = "# Facts\n\nThe sky is blue.\n"


@pytest.fixture
def facts(faults: Faults) -> Iterator[Path]:
    """The tester's document, which a test changes; afterwards it is served as it was."""
    path = faults.services.folder / "instances" / "tester" / "grounding" / "facts.md"
    yield path
    faults.heal()
    path.write_text(OLD)
    assert faults.services.reload()[0] == 200


def served(faults: Faults) -> Any:
    return faults.services.status("spawner")["agents"]["tester"]["pack"]


def test_a_reload_that_finds_no_room_for_a_pack_is_refused_and_the_old_one_answers_on(
    faults: Faults, facts: Path
) -> None:
    before = served(faults)
    facts.write_text("The sky is grey.\n" * 4096)
    with full(faults.services.packs, "size=8k"):
        status, told = faults.services.reload()
        assert (status, told["error"]) == (503, "host-not-ready")
        assert "No space left on device" in told["detail"]
        assert served(faults) == before
    faults.nothing_is_left()
    status, told = faults.services.reload()
    assert (status, told["agents"]["tester"]["changed"]) == (200, True)
    assert served(faults) != before
    faults.nothing_is_left()


def test_a_reload_in_mid_turn_without_an_engine_is_done_and_the_turn_gets_its_one_answer(
    faults: Faults, facts: Path
) -> None:
    before = served(faults)
    with faults.in_mid_turn() as reply:
        facts.write_text("The sky is grey.\n")
        faults.engine.kill()
        status, told = faults.services.reload()
        assert (status, told["agents"]["tester"]["changed"]) == (200, True)
        assert faults.told(reply.result()) == "engine"
    assert served(faults) != before
    faults.engine.start()
    faults.nothing_is_left()
