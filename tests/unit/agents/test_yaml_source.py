"""The YAML reader: places, and a problem instead of an exception for whatever a file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runtime.agents.fields import SETTINGS
from runtime.agents.instance import load_instance
from runtime.agents.yaml_source import Mapping, Report, Scalar, Sequence, read_mapping
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
