"""The two small command lines that `./gatehouse up` asks: which directories to mount, and what is wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from runtime.agents import check, sources
from runtime.errors import Problem

if TYPE_CHECKING:
    from pathlib import Path


def agent_file(root: Path, text: str) -> None:
    (root / "instances" / "good" / "agent.yaml").write_text(text)


def test_directories_outside_the_root_are_printed_once_each(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    agent_file(
        root, f"grounding_dir: {tmp_path}/one\nextra_read_dirs: [docs, {tmp_path}/two, {tmp_path}/one]\n"
    )
    assert sources.main(["--root", str(root), "good"], {}) == 0
    assert capsys.readouterr().out == f"{tmp_path}/one\n{tmp_path}/two\n"


def test_an_instance_that_reads_only_the_repository_prints_nothing(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sources.main(["--root", str(root), "good"], {}) == 0
    assert capsys.readouterr().out == ""


def test_a_link_below_the_root_is_printed_as_what_it_leads_to(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one").mkdir()
    (root / "public").symlink_to(tmp_path / "one")
    agent_file(root, "grounding_dir: public\n")
    assert sources.main(["--root", str(root), "good"], {}) == 0
    assert capsys.readouterr().out == f"{tmp_path}/one\n"


def test_mounts_name_the_path_in_the_spawner_for_directories_below_the_root(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "one").mkdir()
    (root / "instances" / "good" / "grounding").mkdir()
    agent_file(
        root, f"grounding_dir: docs\nextra_read_dirs: [{tmp_path}/one, '${{instance_dir}}/grounding']\n"
    )
    assert sources.main(["--root", str(root), "--mounts", "good"], {}) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"{tmp_path}/one\t{tmp_path}/one",
        f"{root}/docs\t{root}/docs",
        f"{root}/docs\t/srv/gatehouse/docs",
    ]


@pytest.mark.parametrize("module", [sources, check])
def test_wrong_files_give_every_problem_on_stderr_and_exit_code_3(
    root: Path, module: object, capsys: pytest.CaptureFixture[str]
) -> None:
    agent_file(root, "port: x\n")
    assert module.main(["--root", str(root), "good"], {}) == 3  # type: ignore[attr-defined]
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 2
    assert "instances/good/agent.yaml:1:7: port: " in err


def test_a_good_instance_is_one_ok_line_with_paths_as_the_owner_sees_them(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent_file(root, "grounding_dir: docs\ninline_grounding: [fact.md]\n")
    assert check.main(["--root", str(root)], {}) == 0
    assert capsys.readouterr() == (
        "ok good: model sonnet; tools Read,Glob,Grep; reads docs; 1 files told up front\n",
        "",
    )


def test_what_is_odd_is_a_warning_with_its_place_and_changes_no_exit_code(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "docs" / "old.txt").write_bytes(b"one\ncaf\xe9\n")
    (root / "docs" / ".git").mkdir()
    (root / "empty").mkdir()
    agent_file(
        root,
        "grounding_dir: docs\nextra_read_dirs: [empty]\ninline_grounding: ['*.txt', 'none/*.md']\n",
    )
    assert check.main(["--root", str(root), "good"], {}) == 0
    out, err = capsys.readouterr()
    assert out.startswith("ok good: ")
    file = "warning: instances/good/agent.yaml"
    assert [line.partition(" (")[0] for line in err.splitlines()] == [
        f"{file}:2:19: extra_read_dirs[0]: 'empty' holds no document",
        f"{file}:3:20: inline_grounding[0]: docs/old.txt is not told up front: is not UTF-8 text",
        f"{file}:3:29: inline_grounding[1]: no file in docs matches 'none/*.md'",
        "warning: docs: 1 with a dot in front left out of what the persona may know: docs/.git",
        "warning: docs/old.txt:2:4: is not UTF-8 text, so a model may not be able to read it",
    ]


def test_the_template_is_checked_as_a_template_and_refused_by_name(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (root / "instances" / "_template").mkdir()
    (root / "instances" / "_template" / "system-prompt.md").write_text("You are <Name of the persona>.\n")
    (root / "instances" / "_template" / "agent.yaml").write_text("grounding_dir: docs\n")
    assert check.main(["--root", str(root)], {}) == 0
    assert capsys.readouterr().out.startswith("ok _template: to be copied; it cannot be started\nok good: ")
    assert check.main(["--root", str(root), "_template"], {}) == 3
    assert "is what a persona is copied from" in capsys.readouterr().err


def test_a_root_without_instances_is_a_config_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.main(["--root", str(tmp_path)], {}) == 3
    assert "holds no instance" in capsys.readouterr().err


def test_a_missing_argument_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        sources.main(["--root", "."], {})
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_directories_are_listed_where_they_are_not_mounted_yet(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent_file(root, "grounding_dir: /data/public\n")
    assert sources.main(["--root", str(root), "good"], {}) == 0
    assert capsys.readouterr().out == "/data/public\n"
    assert check.main(["--root", str(root), "good"], {}) == 3


def test_json_is_one_object_with_every_instance_problem_and_warning(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent_file(root, "port: x\nicon_url: https://example.org/x.png\n")
    fine = root / "instances" / "fine"
    fine.mkdir()
    (fine / "agent.yaml").write_text("grounding_dir: docs\n")
    (fine / "system-prompt.md").write_text("You answer.\n")
    assert check.main(["--root", str(root), "--json"], {}) == 3
    out, err = capsys.readouterr()
    assert err == ""
    file = "instances/good/agent.yaml"
    mend = "write a whole number without a unit, such as 8011"
    found = json.loads(out)
    assert (found["ok"], [one["name"] for one in found["instances"]]) == (False, ["fine", "good"])
    first, second = found["instances"]
    assert (first["ok"], first["problems"], first["warnings"]) == (True, [], [])
    assert first["summary"].startswith("ok fine: ")
    assert (second["ok"], second["summary"]) == (False, "")
    assert second["problems"][1] == {
        "file": file,
        "line": 1,
        "col": 7,
        "path": "port",
        "message": "must be a whole number, not 'x'",
        "mend": mend,
    }
    assert [(one["path"], one["line"]) for one in second["warnings"]] == [("icon_url", 2)]
    assert check.main(["--root", str(root), "--json", "fine"], {}) == 0


def test_what_is_checked_is_the_same_for_a_program_that_calls_it(root: Path) -> None:
    agent_file(root, "grounding_dir: docs\nport: x\n")
    (one,) = check.check_instances(root, ["good"], {})
    assert (one.name, one.ok, one.template, one.summary) == ("good", False, False, "")
    assert one.problems[0].as_json()["path"] == "port"
    assert json.loads(check.as_json((one,)))["instances"] == [one.as_json()]


def test_a_root_without_instances_is_not_ok_in_json_either(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.main(["--root", str(tmp_path), "--json"], {}) == 3
    (found,) = json.loads(capsys.readouterr().out)["instances"]
    assert found["problems"][0]["message"] == "holds no instance"


def test_a_problem_is_printed_on_one_line_whatever_its_file_is_called() -> None:
    problem = Problem("docs/a\nb\u202e.md", 1, 2, "", "is odd", "mend it")
    assert str(problem) == "docs/a\\nb\\u202e.md:1:2: is odd (mend it)"
    assert problem.as_json()["file"] == "docs/a\nb\u202e.md"
