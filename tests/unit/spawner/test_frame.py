from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runtime.spawner.frame import FIRST, LAST, framed


@given(st.text())
def test_no_visitor_byte_is_the_first_or_the_last(prompt: str) -> None:
    message = framed(prompt)
    assert message == f"{FIRST}\n{prompt}\n{LAST}"
    assert message[0].isalpha()
    assert message.endswith(LAST)


def test_the_frame_is_short_and_says_what_binds_nobody() -> None:
    assert len((FIRST + LAST).encode()) < 900
    for word in ("data", "anonymous visitor"):
        assert word in FIRST
    for word in (
        '"now"',
        "language",
        "grounding",
        "automated representative",
        "promise",
        "price",
        "consent",
        "endorse",
    ):
        assert word in LAST
