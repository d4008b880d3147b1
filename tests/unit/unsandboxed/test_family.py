"""Who belongs to a process, as the process table tells it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.unsandboxed.family import Entry, family, parse_stat, process_table

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("7 (claude) S 1 7 5 0 -1", Entry(7, 1, 5)),
        ("7 (a) b) (c 9 9 9) S 1 7 5 0 -1", Entry(7, 1, 5)),
        ("", None),
        ("7 (claude", None),
        ("x (claude) S 1 7 5", None),
    ],
)
def test_a_line_of_the_process_table_is_read_whatever_the_program_is_called(
    text: str, entry: Entry | None
) -> None:
    assert parse_stat(text) == entry


@given(st.text())
def test_no_line_makes_it_raise(text: str) -> None:
    found = parse_stat(text)
    assert found is None or isinstance(found.pid, int)


def test_the_family_is_the_session_and_all_that_descends_from_it() -> None:
    table = [
        Entry(1, 0, 1),
        Entry(10, 1, 10),  # the leader
        Entry(11, 10, 10),
        Entry(12, 1, 10),  # its parent has ended
        Entry(13, 12, 13),  # a session of its own
        Entry(14, 13, 13),
        Entry(20, 1, 20),  # somebody else
        Entry(21, 20, 20),
    ]
    assert family(10, table) == {10, 11, 12, 13, 14}
    assert family(99, table) == set()


def test_a_table_with_a_circle_in_it_ends() -> None:
    assert family(10, [Entry(10, 11, 10), Entry(11, 10, 11)]) == {10, 11}


def test_this_process_is_in_the_table_and_a_folder_that_is_none_gives_nothing(tmp_path: Path) -> None:
    assert os.getpid() in {entry.pid for entry in process_table()}
    assert process_table(tmp_path / "none") == []
