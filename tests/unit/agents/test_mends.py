"""What a wrong setting is told: in its own words, and so that what it is told to write is right."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.agents.fields import SETTINGS, Kind
from runtime.agents.instance import inspect_instance
from runtime.agents.mends import EXAMPLES, INTEGER, NUMBER

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.errors import Problem


def problems(root: Path, text: str) -> tuple[Problem, ...]:
    (root / "instances" / "good" / "agent.yaml").write_text(text)
    return inspect_instance(root, "good", {"HOME": "/home/owner"}).problems


@pytest.mark.parametrize(
    ("line", "mend"),
    [
        ("allowed_tools: [Read, Glob, Grep]", "write them on one line, separated by commas: Read,Glob,Grep"),
        ('port: "8011"', "take the quotes off: port: 8011"),
        ("timeout: '90'", "take the quotes off: timeout: 90"),
        ("timeout: ' 12.5 '", "take the quotes off: timeout: 12.5"),
        ("max_input_chars: 4.000", "write a whole number without a separator, such as 4000"),
        ("max_input_chars: 1,000", "write a whole number without a separator, such as 4000"),
        ("max_contexts: 1_000", "write a whole number without a separator, such as 500"),
        ("max_contexts: 1\u00a0000", "write a whole number without a separator, such as 500"),
        ("max_turns: 24 Runden", "write a whole number without a unit, such as 24"),
        ("max_concurrency: 1.5", "write a whole number without a fraction, such as 2"),
        ("timeout: 90s", "write a number without a unit, such as 90"),
        ("port: [8011]", "write a whole number without a unit, such as 8011"),
        ("name: [A]", "write one text"),
        ("skills: facts", "write each item indented below it, starting with `- id:`"),
        ("cors_origins: https://a.example", "write `cors_origins: [https://a.example]`"),
        ("next\u00a0key: x", "a no-break space (U+00A0) stands in this line"),
    ],
)
def test_a_wrong_value_is_told_how_to_be_written(root: Path, line: str, mend: str) -> None:
    (problem,) = problems(root, f"grounding_dir: docs\n{line}\n")
    assert problem.mend.startswith(mend)


@pytest.mark.parametrize("kind", sorted(set(Kind) - {Kind.INTEGER, Kind.NUMBER}))
def test_every_kind_of_setting_has_an_example(kind: Kind) -> None:
    assert EXAMPLES[kind].startswith("write ")


@pytest.mark.parametrize(
    "item", [item for item in SETTINGS if item.kind in {Kind.INTEGER, Kind.NUMBER}], ids=lambda item: item.key
)
def test_the_example_of_a_number_is_the_settings_own_default(root: Path, item: object) -> None:
    key, default = item.key, item.default  # type: ignore[attr-defined]
    (problem,) = problems(root, f"grounding_dir: docs\n{key}: [x]\n")
    shown = problem.mend.rpartition(" ")[2]
    assert NUMBER.fullmatch(shown) or INTEGER.fullmatch(shown)
    assert float(shown) == default


def test_a_misspelt_key_is_one_mistake_and_not_a_missing_one_as_well(root: Path) -> None:
    text = "grounding_dir: docs\nprovider: {organisation: A, url: 'https://ada-office.org'}\n"
    (problem,) = problems(root, text)
    assert (problem.path, problem.mend) == ("provider.organisation", "did you mean `organization`?")
    (problem,) = problems(root, "groundingdir: docs\n")
    assert problem.path == "groundingdir"
    assert len(problems(root, "grounding_dir: docs\nprovider: {x: A}\n")) == 3


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ("grounding", "write `${instance_dir}/grounding`"),
        ("./grounding", "write `${instance_dir}/grounding`"),
        ("$instance_dir/grounding", "write `${instance_dir}/grounding`"),
        ("$HOME/public", "write `~/public`"),
        ("${HOME}/public", "write `~/public`"),
        ("grounds", "create it, or name the folder of public documents itself"),
    ],
)
def test_a_directory_that_is_not_there_is_told_what_was_likely_meant(
    root: Path, text: str, mend: str
) -> None:
    (root / "instances/good/grounding").mkdir()
    (problem,) = problems(root, f"grounding_dir: {text}\n")
    assert (problem.path, problem.mend) == ("grounding_dir", mend)


def test_settings_that_cannot_be_read_hide_neither_documents_nor_prompt(root: Path) -> None:
    folder = root / "instances" / "good"
    (folder / "grounding").mkdir()
    (folder / "grounding" / "link.md").symlink_to("x.md")
    (folder / "grounding" / "about.md").write_text("I am <Name of the persona>.\npassword: hunter22\n")
    (folder / "system-prompt.md").write_text("Use WebFetch, tools/hours.py, Grep.\n")
    text = "name: a: b\n"
    (folder / "agent.yaml").write_text(text)
    seen = inspect_instance(root, "good", {})
    assert [(one.file, one.message.partition(":")[0]) for one in seen.problems] == [
        ("instances/good/agent.yaml", "is not valid YAML"),
        ("instances/good/grounding/about.md", "still holds the template's <Name of the persona>"),
        ("instances/good/grounding/link.md", "is a symbolic link"),
        ("instances/good/system-prompt.md", "names a tool by a path that no turn has"),
    ]
    assert seen.problems[0].mend.endswith("; more may be found once the file can be read")
    assert [(one.file, one.line) for one in seen.warnings] == [
        ("instances/good/grounding/about.md", 2),
        ("instances/good/system-prompt.md", 1),
    ]
    quick = inspect_instance(root, "good", {}, check_sources=False)
    assert not any("grounding" in one.file for one in quick.problems)


def test_settings_that_cannot_be_read_and_no_documents_in_place_are_one_mistake(root: Path) -> None:
    assert len(problems(root, "name: a: b\n")) == 1


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ("[docs]", "'docs' is the directory that grounding_dir names"),
        ("[./docs/]", "'docs' is the directory that grounding_dir names"),
        ("[docs/facts]", "'docs/facts' lies within 'docs', which grounding_dir names"),
        ("[more, more]", "'more' is the directory that extra_read_dirs[0] names"),
        ("[more/inner, more]", "'more' holds 'more/inner', which extra_read_dirs[0] names"),
        ("[link]", "'link' is the directory that grounding_dir names"),
    ],
)
def test_a_directory_that_is_given_twice_is_a_warning(root: Path, extra: str, message: str) -> None:
    (root / "more" / "inner").mkdir(parents=True)
    (root / "link").symlink_to("docs")
    for folder in ("docs/facts", "more/inner"):
        (root / folder / "one.md").write_text("One.\n")
    (root / "instances/good/agent.yaml").write_text(f"grounding_dir: docs\nextra_read_dirs: {extra}\n")
    seen = inspect_instance(root, "good", {})
    assert [one.message for one in seen.warnings if "names" in one.message] == [message]
    assert all(one.line == 2 for one in seen.warnings)


def test_directories_side_by_side_are_none_given_twice(root: Path) -> None:
    (root / "docs2").mkdir()
    (root / "docs2" / "two.md").write_text("Two.\n")
    (root / "instances/good/agent.yaml").write_text("grounding_dir: docs\nextra_read_dirs: [docs2]\n")
    assert inspect_instance(root, "good", {}).warnings == ()
