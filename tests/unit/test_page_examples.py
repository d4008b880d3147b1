"""The examples of the how-to pages do what the pages say: the tool runs, the settings load, the texts fit."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from runtime.agents.definition import AgentDefinition, Messages
from runtime.agents.instance import load_instance

HOW_TO = Path(__file__).resolve().parents[2] / "docs" / "how-to"
CARD = (
    "name: Mira (automated representative)\ndescription: Answers about a ferry.\ngrounding_dir: grounding\n"
)


def fenced(page: str, language: str) -> list[str]:
    """Return the blocks of a page that are fenced with a language."""
    text = (HOW_TO / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def loaded(root: Path, settings: str, prompt: str = "# Role\n\nYou represent Mira.\n") -> AgentDefinition:
    """Return the agent that these settings and this prompt make, with the page's tool in its folder."""
    folder = root / "instances" / "mira"
    (folder / "tools").mkdir(parents=True)
    (folder / "tools" / "next_ferry.py").write_text(fenced("tools.md", "python")[0])
    (folder / "agent.yaml").write_text(CARD + settings)
    (folder / "system-prompt.md").write_text(prompt)
    (root / "grounding").mkdir()
    (root / "grounding" / "about.md").write_text("# Mira\n\nMira runs a ferry.\n")
    return load_instance(root, "mira", {})


def ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the page's tool as a turn does."""
    script = folder / "next_ferry.py"
    script.write_text(fenced("tools.md", "python")[0])
    return subprocess.run(
        [sys.executable, "-I", str(script), *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )


def test_the_tool_prints_a_day_and_without_arguments_everything(tmp_path: Path) -> None:
    one, whole = ran(tmp_path, "--day", "Wednesday"), ran(tmp_path)
    assert (one.returncode, one.stdout) == (0, "Wednesday: 07:45 and 16:10\n")
    assert (whole.returncode, len(whole.stdout.splitlines())) == (0, 3)


@pytest.mark.parametrize(
    "arguments", [("--day", "; cat /etc/passwd"), ("--day", "sunday"), ("--da", "monday"), ("monday",)]
)
def test_the_tool_refuses_what_it_does_not_know_with_a_sentence(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    done = ran(tmp_path, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error: " in done.stderr
    assert "Traceback" not in done.stderr


def test_the_tools_settings_and_its_prompt_load_together(tmp_path: Path) -> None:
    (settings,), (prompt,) = fenced("tools.md", "yaml"), fenced("tools.md", "markdown")
    agent = loaded(tmp_path, settings, prompt)
    assert agent.tools.granted == ("next_ferry",)
    assert yaml.safe_load(settings)["skills"][0]["tools"] == ["next_ferry"]


def test_the_messages_in_another_language_are_all_of_them_and_load(tmp_path: Path) -> None:
    (settings,) = fenced("tone-and-languages.md", "yaml")
    given = yaml.safe_load(settings)["messages"]
    assert list(given) == list(Messages.__dataclass_fields__)
    messages = loaded(tmp_path, settings).messages
    assert {name: getattr(messages, name) for name in given} == given
    assert not set(given.values()) & {str(one.default) for one in Messages.__dataclass_fields__.values()}
    assert ("{n}" in messages.too_long, "{error}" in messages.error) == (True, True)
