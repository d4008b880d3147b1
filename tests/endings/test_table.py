"""The table of endings is complete, without doubles, true of the tests it names, and what the page says."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from runtime.front import admit
from runtime.spawner import turns
from runtime.turn.events import Cause
from tests.endings.row import ANSWER, NOBODY, Model, Play, Run
from tests.endings.table import BEGIN, END, PAGE, TABLE, page
from tests.harness.processes import MESSAGES
from tests.harness.stack import REPO

if TYPE_CHECKING:
    from tests.endings.row import Row


def test_every_cause_has_a_row() -> None:
    assert set(Cause) - {row.outcome for row in TABLE} == set()


def test_every_reason_of_the_spawner_has_a_row() -> None:
    assert set(turns.Reason) - {row.reason for row in TABLE} == set()


def test_every_refusal_of_a_message_has_a_row() -> None:
    assert set(admit.Reason) - {row.outcome for row in TABLE} == {admit.Reason.ADMITTED}


def test_no_two_rows_are_the_same() -> None:
    assert [sentence for sentence, count in Counter(row.sentence for row in TABLE).items() if count > 1] == []
    brought_about = [(row.how, row.persona) for row in TABLE if not isinstance(row.how, Run)]
    assert [how for how in brought_about if brought_about.count(how) > 1] == []


def test_no_row_has_an_outcome_that_the_product_does_not_know() -> None:
    known = {*Cause, *admit.Reason, ""} - {admit.Reason.ADMITTED}
    assert {row.outcome for row in TABLE} - known == set()
    assert {row.text for row in TABLE} - {*MESSAGES, ANSWER, NOBODY} == set()
    assert all((row.outcome == "") == (row.text in {ANSWER, NOBODY}) for row in TABLE)


@pytest.mark.parametrize(
    "row", [row for row in TABLE if isinstance(row.how, Run)], ids=lambda row: row.sentence
)
def test_the_test_is_there_that_brings_about(row: Row) -> None:
    assert isinstance(row.how, Run)
    assert row.how.test in (REPO / row.how.file).read_text()


def test_a_timeout_asks_to_try_again_whatever_was_shown_before() -> None:
    rows = [row for row in TABLE if row.outcome == Cause.TIMEOUT]
    assert {row.text for row in rows} == {"timeout"}
    assert {row.partial for row in rows if isinstance(row.how, Play)} == {True, False}
    assert {row.partial for row in rows if isinstance(row.how, Model)} == {True, False}


def test_the_page_says_what_the_table_says() -> None:
    text = PAGE.read_text()
    assert text[text.index(BEGIN) : text.index(END) + len(END)] == page(), "python -m tests.endings.table"
