"""Promises, tests and docs hold together, in every direction."""

from __future__ import annotations

from pathlib import Path

from tests import controls

REPO = Path(__file__).resolve().parents[1]


def test_every_promise_has_a_test_or_says_what_is_pending() -> None:
    linked = controls.marks()
    assert [c.id for c in controls.CONTROLS if not linked.get(c.id) and not c.pending] == []


def test_every_mark_names_a_promise() -> None:
    known = {control.id for control in controls.CONTROLS}
    assert {id_: tests for id_, tests in controls.marks().items() if id_ not in known} == {}


def test_promise_ids_are_unique() -> None:
    ids = [control.id for control in controls.CONTROLS]
    assert len(ids) == len(set(ids))


def test_every_promise_names_files_that_exist() -> None:
    missing = [
        (control.id, name.strip())
        for control in controls.CONTROLS
        for name in control.enforced_in.split(",")
        if not (REPO / name.strip()).is_file()
    ]
    assert missing == []


def test_the_controls_page_is_made_from_the_table() -> None:
    assert controls.PAGE.read_text() == controls.page()
