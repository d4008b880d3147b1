"""Folders below instances/: none is passed over, and what is wrong with one is said with its mend."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.agents.check import check_instances
from runtime.agents.folders import folder_names, instance_names
from runtime.agents.instance import inspect_instance

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_without_an_agent_file_is_reported_by_a_check_of_all(root: Path) -> None:
    (root / "instances" / "mira").mkdir()
    (root / "instances" / ".git").mkdir()
    (root / "instances" / "__pycache__").mkdir()
    (root / "instances" / "README.md").write_text("x\n")
    good, mira = check_instances(root, (), {})
    assert (good.name, good.ok, mira.name, mira.ok) == ("good", True, "mira", False)
    (problem,) = mira.problems
    assert str(problem).startswith(
        "instances/mira/agent.yaml: does not exist (write it, as instances/_template"
    )
    assert folder_names(root) == ("good", "mira")
    assert instance_names(root) == ("good",)


@pytest.mark.parametrize("likely", ["agent.yml", "agent.yaml.txt"])
def test_an_agent_file_of_nearly_the_right_name_is_named(root: Path, likely: str) -> None:
    (root / "instances/good/agent.yaml").rename(root / "instances/good" / likely)
    (problem,) = inspect_instance(root, "good", {}).problems
    assert problem.mend == f"rename {likely} to agent.yaml"


def test_an_unknown_instance_is_told_the_personas_and_how_to_make_it(root: Path) -> None:
    (root / "instances" / "_template").mkdir()
    (root / "instances" / "_template" / "agent.yaml").write_text("grounding_dir: docs\n")
    (problem,) = inspect_instance(root, "mira", {}).problems
    assert problem.mend == "there are: good; `./gatehouse new mira` makes it"


def test_no_instance_at_all_is_told_how_to_make_one(tmp_path: Path) -> None:
    (one,) = check_instances(tmp_path, (), {})
    assert one.problems[0].mend == "`./gatehouse new NAME` makes one from the template"


@pytest.mark.parametrize(("name", "better"), [("Mira", "mira"), ("Mira Okafor", "mira-okafor")])
def test_a_folder_whose_name_is_none_is_told_a_better_one(root: Path, name: str, better: str) -> None:
    (root / "instances" / name).mkdir()
    (problem,) = inspect_instance(root, name, {}).problems
    assert f"has a folder {name!r}" in problem.message
    assert problem.mend.startswith(f"rename the folder to `{better}`: ")
    assert [one.ok for one in check_instances(root, (), {})] == [False, True]


def test_a_name_of_no_folder_is_looked_for_nowhere(root: Path) -> None:
    (problem,) = inspect_instance(root, "Nobody", {}).problems
    assert problem.message == "has no instance named 'Nobody'"
