"""Every command block of README, tutorial and how-to pages is run by a test, or a table says why not."""

from __future__ import annotations

import pytest

from tests.harness.page_blocks import all_blocks, blocks_of
from tests.harness.page_course import COURSE, NOT_RUN

BLOCKS = all_blocks()
PAGE = """\
# Title

Text with `code` and

    indented one   # remark

    goes on

- a list
  goes on here
    not a block

```sh
fenced one
  two
```
```yaml
key: value
```
```
indented one
```
```console
$ prompt
output
```
"""


def test_every_block_is_decided_on() -> None:
    decided = {step.key for step in COURSE} | set(NOT_RUN)
    assert [block.key for block in BLOCKS if block.key not in decided] == [], (
        "add it to COURSE or, with the reason, to NOT_RUN in tests/harness/page_course.py"
    )


def test_every_decision_is_about_a_block_that_is_there() -> None:
    there = {block.key for block in BLOCKS}
    assert sorted({step.key for step in COURSE} - there) == []
    assert sorted(set(NOT_RUN) - there) == []


def test_no_block_is_decided_on_twice_and_every_reason_is_words() -> None:
    steps = [step.key for step in COURSE]
    assert len(set(steps)) == len(steps)
    assert set(steps) & set(NOT_RUN) == set()
    assert [key for key, reason in NOT_RUN.items() if len(reason.split()) < 3] == []


def test_a_line_that_is_left_out_stands_in_its_block_and_has_its_reason() -> None:
    text = {block.key: block.text for block in BLOCKS}
    for step in COURSE:
        lines = [line.split("  #")[0].strip() for line in text.get(step.key, "").splitlines()]
        for line, reason in step.without.items():
            assert line in lines, step.key
            assert len(reason.split()) >= 3, step.key


@pytest.mark.parametrize(
    ("language", "text", "number"),
    [
        ("", "indented one   # remark\n\ngoes on", 1),
        ("sh", "fenced one\n  two", 1),
        ("", "indented one", 2),
        ("console", "$ prompt\noutput", 1),
    ],
)
def test_a_block_is_found_with_its_language(language: str, text: str, number: int) -> None:
    assert (language, text, number) in [(one.language, one.text, one.number) for one in blocks_of("p", PAGE)]


def test_nothing_else_is_taken_for_a_block() -> None:
    assert [one.first for one in blocks_of("p", PAGE)] == [
        "indented one",
        "fenced one",
        "indented one (2)",
        "$ prompt",
    ]
