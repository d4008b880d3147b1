"""The two small command lines that `./gatehouse up` asks: which directories to mount, and what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.agents import check, sources

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
    assert [line.partition(" (")[0] for line in err.splitlines()] == [
        "warning: docs/old.txt:2:4: is not UTF-8 text, so a model may not be able to read it",
        "warning: empty: extra_read_dirs[0]: 'empty' holds no document",
        "warning: docs: 1 with a dot in front left out of what the persona may know: docs/.git",
        "warning: docs: inline_grounding[1]: no file in docs matches 'none/*.md'",
        "warning: docs/old.txt: is not told up front: is not UTF-8 text",
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
