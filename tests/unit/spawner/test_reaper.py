from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from runtime import layout
from runtime.spawner.reaper import doomed

if TYPE_CHECKING:
    from collections.abc import Mapping

OWNER, IMAGE, NOW = "0" * 32, "sha256:image", 1000.0


@dataclass(frozen=True)
class Container:
    labels: Mapping[str, str]
    image_id: str = IMAGE
    id: str = "c"


def labelled(owner: str = OWNER, deadline: str = "2000", turn: str = "t1", image: str = IMAGE) -> Container:
    return Container(
        {layout.LABEL_TURN: turn, layout.LABEL_OWNER: owner, layout.LABEL_DEADLINE: deadline}, image
    )


def is_doomed(container: Container, *live: str) -> bool:
    return doomed([container], owner=OWNER, image_id=IMAGE, live=live, now=NOW) == ["c"]


def test_ours_goes_unless_its_turn_lives() -> None:
    assert is_doomed(labelled())
    assert not is_doomed(labelled(), "t1")
    assert is_doomed(labelled(image="sha256:older"))


def test_anybodys_on_our_image_goes_past_its_deadline_even_when_we_think_that_it_lives() -> None:
    assert is_doomed(labelled(owner="f" * 32, deadline="999"))
    assert is_doomed(labelled(deadline="999"), "t1")


@pytest.mark.parametrize(
    "foreign",
    [
        labelled(owner="f" * 32),
        labelled(owner="f" * 32, deadline="999", image="sha256:other"),
        labelled(owner="f" * 32, deadline=""),
        labelled(owner="f" * 32, deadline="-5"),
        labelled(owner="f" * 32, deadline="٣"),
        labelled(owner="f" * 32, deadline="9" * 5000),
        Container({}),
        Container({layout.LABEL_OWNER: OWNER}),
        Container({layout.LABEL_DEADLINE: "1"}),
    ],
)
def test_a_foreign_container_that_resembles_ours_stays(foreign: Container) -> None:
    assert not is_doomed(foreign)
