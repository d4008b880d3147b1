"""The YAML reader: places, and a problem instead of an exception for whatever a file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runtime.agents.fields import SETTINGS
from runtime.agents.instance import load_instance
from runtime.agents.tree import Mapping, Scalar, Sequence
from runtime.agents.yaml_source import Report, read_mapping
from runtime.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

KEYS = st.sampled_from([item.key for item in SETTINGS]) | st.text(max_size=5)
SCRAPS = st.sampled_from(
    [
        ": ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "\n",
        "  ",
        "&a",
        "*a",
        "!t ",
        "|",
        ">",
        "'",
        '"',
        "#",
        "%",
        "---",
        "?",
        "<<",
        "\t",
    ]
)
FRAGMENTS = st.lists(KEYS | SCRAPS | st.text(max_size=3), max_size=30).map("".join)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=10,
)


def read(raw: bytes) -> tuple[Mapping | None, Report]:
    report = Report("agent.yaml")
    return read_mapping(raw, report), report


def test_every_value_and_key_knows_its_line_and_column() -> None:
    source, report = read(b"a: 1\nlist:\n  - x\n  - {y: z}\n")
    assert report.problems == []
    assert source is not None
    first, second = source.entries
    assert (first.key, first.line, first.col) == ("a", 1, 1)
    assert first.value == Scalar("1", "int", 1, 4)
    assert isinstance(second.value, Sequence)
    assert (second.value.line, second.value.col) == (3, 3)
    inner = second.value.items[1]
    assert isinstance(inner, Mapping)
    assert inner.entries[0].value == Scalar("z", "str", 4, 9)


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    source, report = read(b"\xef\xbb\xbfname: x\n")
    assert source is not None
    assert source.entries[0].key == "name"
    assert report.problems == []


def test_a_key_given_twice_keeps_its_first_value_for_the_checks_that_follow() -> None:
    source, report = read(b"a: 1\na: 2\n")
    assert source is not None
    assert [entry.value for entry in source.entries] == [Scalar("1", "int", 1, 4)]
    assert [(problem.line, problem.col) for problem in report.problems] == [(2, 1)]


def test_a_key_that_is_no_word_is_a_problem() -> None:
    _, report = read(b"? [a, b]\n: c\n")
    assert "has a key that is not a word" in str(report.problems[0])


@given(st.binary(max_size=300) | FRAGMENTS.map(str.encode))
@example(b"")
@example(b"\x00")
@example(b"a: \xed\xa0\x80")
@example(b"a: '\x85'")
@example(b"[" * 2000)
@example(b"? " * 200)
@example(b'a: "\\ud800"')
@example(b"= : 1")
def test_whatever_a_file_holds_it_is_a_mapping_or_a_problem(raw: bytes) -> None:
    source, report = read(raw)
    assert source is not None or report.problems
    assert all(problem.mend and problem.line >= 0 and problem.col >= 0 for problem in report.problems)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(st.dictionaries(KEYS, VALUES, max_size=6))
def test_whatever_the_settings_hold_they_load_or_are_reported(root: Path, value: dict[str, Any]) -> None:
    import json

    (root / "instances/good/agent.yaml").write_text(json.dumps({"grounding_dir": "docs", **value}))
    report: ConfigError | None = None
    try:
        agent = load_instance(root, "good", {})
    except ConfigError as error:
        report = error
    else:
        assert agent.grounding.directory.is_relative_to(root)
        assert agent.digest
    assert report is None or report.problems


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("provider:\n\turl: x\n", "indent with spaces: YAML takes no TAB"),
        ("a:\n\t- x\n", "indent with spaces"),
        ('name: "Ada "the" Countess"\n', "write the whole text in the other kind of quotes"),
        ("name: 'Ada's office'\n", "write the whole text in the other kind of quotes"),
        ("a: 1\nname:\u00a0x\nb: 2\n", "a no-break space (U+00A0) stands in this line"),
        ("name:\u00a0x\n", "a no-break space (U+00A0) stands in this line"),
        ("a: b: c\n", "put the text in quotes"),
    ],
)
def test_usual_slips_of_yaml_are_told_how_to_be_mended(text: str, mend: str) -> None:
    source, report = read(text.encode())
    assert source is None
    assert mend in report.problems[0].mend


def test_all_that_is_written_at_a_key_can_be_searched_for_a_name() -> None:
    source, _ = read(b"a: [x, {y: z}]\nb: [w]\n")
    assert source is not None
    assert source.words_of("a") == "x y z"
    assert source.words_of("c") == ""
