"""Completion: the scripts of the three shells, and the bash one at work in a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime.cli.main import COMMANDS

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Checkout

REPO = Path(__file__).resolve().parents[3]
BASH = shutil.which("bash")


def completed(checkout: Checkout, *words: str, called: str = "gatehouse") -> list[str]:
    """Return what a real bash offers at the end of these words."""
    bin_folder = checkout.root / "bin"
    bin_folder.mkdir(exist_ok=True)
    entry = bin_folder / "gatehouse"
    entry.write_text(f'#!/bin/sh\ncd {REPO} && exec {sys.executable} -m runtime.cli "$@"\n')
    entry.chmod(0o755)
    script = checkout.run("completion", "bash").out
    line = " ".join(f"'{word}'" for word in (called, *words))
    program = f"""
{script}
COMP_WORDS=({line}) COMP_CWORD={len(words)}
$(complete -p gatehouse | sed 's/.*-F \\([^ ]*\\) .*/\\1/') {called}
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    assert BASH is not None
    done = subprocess.run(
        [BASH, "--norc", "-c", program],
        cwd=bin_folder,
        env={**checkout.variables(), "PATH": f"{bin_folder}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_a_script_that_calls_gatehouse(checkout: Checkout, shell: str) -> None:
    done = checkout.run("completion", shell)
    assert (done.code, done.err) == (0, "")
    assert f"_GATEHOUSE_COMPLETE={shell}_complete" in done.out


class TestInBash:
    def test_commands_are_completed(self, checkout: Checkout) -> None:
        assert completed(checkout, "") == list(COMMANDS)
        assert completed(checkout, "ch") == ["check"]
        assert completed(checkout, "--he") == ["--help"]

    def test_names_of_instances_are_completed_and_the_template_is_none(self, checkout: Checkout) -> None:
        shutil.copytree(checkout.instances / "ada", checkout.instances / "alan")
        shutil.copytree(checkout.instances / "ada", checkout.instances / "A;touch x")
        assert completed(checkout, "check", "") == ["ada", "alan"]
        assert completed(checkout, "check", "al") == ["alan"]
        assert completed(checkout, "check", "ada", "") == ["alan"]
        assert completed(checkout, "turn", "ad") == ["ada"]

    def test_flags_and_shells_are_completed(self, checkout: Checkout) -> None:
        assert "--json" in completed(checkout, "check", "--")
        assert "--contact" in completed(checkout, "new", "--co")
        assert completed(checkout, "completion", "") == ["bash", "zsh", "fish"]

    def test_the_command_may_be_called_by_its_path(self, checkout: Checkout) -> None:
        assert completed(checkout, "sta", called="./gatehouse") == ["status"]
