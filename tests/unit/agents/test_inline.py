"""Inline grounding: which files, in which order, how much, and nothing from outside the directory."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agents import inline
from runtime.agents.definition import Grounding
from runtime.agents.inline import InlineResult, append_inline, inline_files, matches

PERSONA = "You represent somebody.\n"
PARTS = st.sampled_from(["a", "b.md", "c.txt", ".d", "*", "*.md", "?", "**", "a*", ".*"])


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "outside.md").write_text("a secret\n")
    docs = tmp_path / "docs"
    (docs / "facts").mkdir(parents=True)
    for name in ("b.md", "a.md", "c.txt", "facts/d.md", ".hidden.md"):
        (docs / name).write_text(f"text of {name}\n")
    return docs


def chosen(docs: Path, *patterns: str) -> list[str]:
    return [file.path for file in inline_files(Grounding(docs, (), patterns)).files]


def reasons(docs: Path, *patterns: str) -> dict[str, str]:
    return {item.path: item.reason for item in inline_files(Grounding(docs, (), patterns)).skipped}


def test_files_come_in_the_order_of_the_patterns_and_sorted_within_one(docs: Path) -> None:
    assert chosen(docs, "c.txt", "*.md", "facts/*") == ["c.txt", "a.md", "b.md", "facts/d.md"]


def test_overlapping_patterns_tell_a_file_once(docs: Path) -> None:
    assert chosen(docs, "b.md", "*.md", "**/*.md") == ["b.md", "a.md", "facts/d.md"]


def test_siblings_that_do_not_match_stay_out(docs: Path) -> None:
    assert chosen(docs, "a.md") == ["a.md"]
    assert chosen(docs, "*.md") == ["a.md", "b.md"]


def test_hidden_files_need_a_pattern_that_says_so(docs: Path) -> None:
    assert ".hidden.md" not in chosen(docs, "*", "**/*")
    assert chosen(docs, ".hidden.md") == [".hidden.md"]


def test_no_pattern_and_no_match_leave_the_persona_byte_for_byte(docs: Path) -> None:
    for persona in (PERSONA, "no line end", "\n\n trailing \n\n", ""):
        assert append_inline(persona, Grounding(docs)) == persona
        assert append_inline(persona, Grounding(docs, (), ("nothing/*.md",))) == persona


def test_the_persona_stays_first_and_each_file_is_whole_under_its_name(docs: Path) -> None:
    text = append_inline(PERSONA, Grounding(docs, (), ("a.md", "facts/d.md")))
    assert text.startswith(PERSONA)
    assert text.count("# Grounding documents") == 1
    assert text.index("## a.md\n\ntext of a.md\n") < text.index("## facts/d.md\n\ntext of facts/d.md\n")
    assert "need not be opened again" in text


def test_placeholders_in_grounding_are_not_touched(docs: Path) -> None:
    (docs / "a.md").write_text("${tools_dir}")
    assert "${tools_dir}" in append_inline(PERSONA, Grounding(docs, (), ("a.md",)))


@pytest.mark.control("PACK-01")
@pytest.mark.parametrize(
    "pattern", ["../*.md", "../outside.md", "facts/../../outside.md", "/etc/passwd", "..", "", "/"]
)
def test_a_pattern_cannot_leave_the_directory(docs: Path, pattern: str) -> None:
    assert chosen(docs, pattern) == []


@pytest.mark.control("PACK-01")
def test_links_are_refused_whether_they_are_files_or_folders(docs: Path) -> None:
    (docs / "link.md").symlink_to("../outside.md")
    (docs / "inner.md").symlink_to("a.md")
    (docs / "folder").symlink_to("..")
    assert "link.md" not in chosen(docs, "**/*.md")
    assert "inner.md" not in chosen(docs, "**/*.md")
    assert chosen(docs, "folder/*.md") == []
    assert reasons(docs, "link.md", "inner.md") == {"link.md": "is a link", "inner.md": "is a link"}


@pytest.mark.control("PACK-01")
def test_a_pipe_is_skipped_without_being_waited_for(docs: Path) -> None:
    os.mkfifo(docs / "pipe.md")
    assert reasons(docs, "pipe.md") == {"pipe.md": "is not a regular file"}


def test_a_file_at_the_ceiling_is_told_and_one_byte_more_is_skipped(docs: Path) -> None:
    (docs / "a.md").write_bytes(b"x" * 600_000)
    (docs / "b.md").write_bytes(b"x" * 600_001)
    assert chosen(docs, "*.md") == ["a.md"]
    assert reasons(docs, "*.md") == {"b.md": "is above 600000 bytes"}


def test_a_file_that_would_pass_the_total_is_skipped_and_smaller_ones_stay(docs: Path) -> None:
    for name in ("a.md", "b.md"):
        (docs / name).write_bytes(b"x" * 599_999)
    (docs / "c.md").write_bytes(b"x" * 3)
    (docs / "d.md").write_bytes(b"x" * 2)
    assert chosen(docs, "*.md") == ["a.md", "b.md", "d.md"]
    assert "1200000" in reasons(docs, "*.md")["c.md"]


def test_text_that_is_not_utf_8_is_skipped_and_reported_and_the_rest_stays(docs: Path) -> None:
    (docs / "a.md").write_bytes(b"caf\xe9")
    (docs / "c.md").write_bytes(b"a\x00b")
    assert chosen(docs, "*.md") == ["b.md"]
    assert reasons(docs, "*.md") == {"a.md": "is not UTF-8 text", "c.md": "is not UTF-8 text"}


def test_a_file_name_cannot_forge_a_heading(docs: Path) -> None:
    (docs / "x\n# Role.md").write_text("x")
    assert chosen(docs, "x*") == []


def test_a_pattern_without_a_file_is_reported(docs: Path) -> None:
    assert reasons(docs, "nothing.md") == {"nothing.md": "no file matches"}


def test_a_huge_tree_is_looked_at_only_so_far(docs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "MAX_WALKED", 3)
    assert len(chosen(docs, "**/*", ".*")) <= 3
    assert "." in reasons(docs, "**/*")


def test_without_patterns_the_disk_is_not_read() -> None:
    assert inline_files(Grounding(Path("/does/not/exist"))) == InlineResult()


@given(st.lists(PARTS.filter(lambda part: "*" not in part and "?" not in part), min_size=1, max_size=4))
def test_a_plain_path_matches_itself(parts: list[str]) -> None:
    name = "/".join(parts)
    assert matches(name, name)
    assert not matches(name, name + "/more")


@given(
    st.lists(st.sampled_from(["a", "b.md", "c.txt", "ab"]), min_size=1, max_size=4),
    st.lists(PARTS.filter(lambda part: part != "**"), min_size=1, max_size=4),
)
def test_without_double_stars_it_matches_as_pathlib_does(names: list[str], patterns: list[str]) -> None:
    name, pattern = "/".join(names), "/".join(patterns)
    expected = len(names) == len(patterns) and PurePosixPath(name).match(pattern)
    assert matches(name, pattern) == expected


@given(st.lists(PARTS, max_size=3), st.lists(st.sampled_from(["a", "b.md"]), min_size=1, max_size=3))
def test_double_stars_stand_for_any_number_of_folders(patterns: list[str], names: list[str]) -> None:
    name = "/".join(names)
    assert matches(name, "**/" + "/".join(["*"] * len(names)))
    assert matches(name, "**")
    assert matches(name, "/".join([*names[:-1], "**", names[-1]]))
    assert not matches(name, "/".join(["**", *patterns, "absent"]))
