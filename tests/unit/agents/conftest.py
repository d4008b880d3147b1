"""A small repository on disk with one good instance, for tests that change one thing about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "repository"
    (root / "docs" / "facts").mkdir(parents=True)
    (root / "docs" / "fact.md").write_text("A fact.\n")
    folder = root / "instances" / "good"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "hours.py").write_text("print('always')\n")
    (folder / "system-prompt.md").write_text("You represent somebody. Tools: ${tools_dir}\n")
    (folder / "agent.yaml").write_text("grounding_dir: docs\n")
    return root
