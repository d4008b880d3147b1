"""Which program a name stands for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from runtime.unsandboxed.snapshot import find_program

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "claude"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_a_name_is_looked_for_on_the_path(folder: Path) -> None:
    assert find_program("claude", f"/nowhere:{folder}/bin") == str(folder / "bin" / "claude")
    assert find_program("other", f"{folder}/bin") == ""


@pytest.mark.parametrize("search", ["", ".", "bin", "bin:./bin", ":"])
def test_relative_parts_of_the_path_are_left_out(folder: Path, search: str) -> None:
    assert folder.is_dir()
    assert find_program("claude", search) == ""


@pytest.mark.parametrize("name", ["bin/claude", "./bin/claude", "~/bin/claude", "bin/../bin/claude"])
def test_a_path_is_one_from_here_or_from_home(folder: Path, name: str) -> None:
    assert find_program(name, "/nowhere") == str(folder / "bin" / "claude")


@pytest.mark.parametrize("name", ["bin/none", "./bin", "bin/text", "bin/claude\0x", "claude\0x"])
def test_what_cannot_be_run_is_no_program(folder: Path, name: str) -> None:
    (folder / "bin" / "text").write_text("no program")
    assert find_program(name, f"{folder}/bin") == ""
