"""Tools that a prompt names wrongly are found in place, and what it denies is no mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agents.definition import Tools
from runtime.agents.instance import load_instance
from runtime.agents.prompt_tools import is_named, misnamed_tools
from runtime.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = Tools(("Read", "Glob"), ("hours",))
SCRIPTS = {"hours": "", "send_mail": ""}


def wrong(prompt: str, tools: Tools = TOOLS) -> list[tuple[int, int, str]]:
    return [(one.line, one.col, one.message) for one in misnamed_tools(prompt, tools, SCRIPTS)]


@pytest.mark.parametrize(
    ("prompt", "col", "words"),
    [
        ("Run tools/hours.py for it.", 5, "by a path that no turn has: tools/hours.py"),
        ("Run ./tools/hours.py for it.", 5, "by a path that no turn has"),
        ("Run `python3 /srv/ada/tools/hours.py` then.", 14, "by a path that no turn has"),
        ("Run instances/ada/tools/hours.py.", 5, "by a path that no turn has"),
        ("Run hours.py for it.", 5, "by a path that no turn has"),
        ("Run ~/hours.py for it.", 5, "by a path that no turn has"),
        ("Run tools/other.py for it.", 5, "by a path that no turn has"),
        ("Run ${tools_dir}/send_mail.py for it.", 5, "names the script send_mail, which is not granted"),
        ("Run ${tools_dir}/gone.py for it.", 5, "names the script gone, which is not in the tools folder"),
        ("Run ${instance_dir}/tools/gone.py for it.", 5, "not in the tools folder"),
        ("Call mcp__grants__send_mail.", 6, "names the script send_mail, which is not granted"),
        ("Call mcp__grants__gone.", 6, "names the script gone, which is not in the tools folder"),
        ("Call mcp__files__read_all.", 6, "a turn has no MCP server but `grants`"),
        ("Look it up with WebSearch.", 17, "names the tool WebSearch, which is not granted"),
        ("Find it with Grep.", 14, "names the tool Grep, which is not granted"),
        ("Use `Write` for notes.", 6, "names the tool Write"),
        ("Use the Bash tool.", 9, "names the tool Bash"),
        ("- Read, Glob and Grep: the files.", 18, "names the tool Grep"),
        ("- Glob/Bash", 8, "names the tool Bash"),
        ("Never guess. Use WebFetch.", 18, "names the tool WebFetch"),
        ("You have no shell but WebFetch is there.", 23, "names the tool WebFetch"),
    ],
)
def test_a_tool_that_no_turn_has_is_found_at_its_place(prompt: str, col: int, words: str) -> None:
    ((line, at, message),) = wrong(f"# Role\n\n{prompt}\n")
    assert (line, at) == (3, col)
    assert words in message


@pytest.mark.parametrize(
    "prompt",
    [
        "hours: prints the hours (`${tools_dir}/hours.py`).",
        "Run ${instance_dir}/tools/hours.py.",
        "Call mcp__grants__hours.",
        "Read and Glob: the files of your working directory.",
        "Read the documents, write briefly, edit nothing. Task: answer.",
        "Read and Write about it.",
        "Do not use WebFetch or `Write`.",
        "You cannot\nuse WebSearch.",
        "You have neither Bash nor WebFetch.",
        "# Do not\n\n- Use WebFetch.\n- Use the Bash tool.",
        "What you never do:\n\n- use WebFetch",
        "There is no ${tools_dir}/send_mail.py any more.",
        "See https://example.org/tools/hours.py and setup.py and src/main.py.",
        "Bash your way through; an Edit war; a Skill.",
        "hours.pyc and hours.python are no scripts.",
    ],
)
def test_what_a_prompt_may_say_is_no_alarm(prompt: str) -> None:
    assert wrong(f"# Role\n\n{prompt}\n") == []


def test_a_wrong_path_is_wrong_even_where_it_is_denied() -> None:
    assert len(wrong("Never call tools/hours.py without a day.")) == 1


@pytest.mark.parametrize(
    "prompt", ["the hours tool", "${tools_dir}/hours.py", "mcp__grants__hours", "`hours`"]
)
def test_a_script_is_named_by_word_path_or_model_name(prompt: str) -> None:
    assert is_named("hours", prompt)


@pytest.mark.parametrize("prompt", ["opening_hours", "hourshours", "", "mcp__grants__hours_late"])
def test_part_of_a_word_names_no_script(prompt: str) -> None:
    assert not is_named("hours", prompt)


def test_the_places_come_with_every_other_mistake_of_the_instance(root: Path) -> None:
    (root / "instances/good/agent.yaml").write_text("grounding_dir: docs\nport: x\n")
    (root / "instances/good/system-prompt.md").write_text("You are it.\n\nRun tools/hours.py or WebFetch.\n")
    with pytest.raises(ConfigError) as caught:
        load_instance(root, "good", {})
    assert [str(problem).partition(" (")[0] for problem in caught.value.problems] == [
        "instances/good/agent.yaml:2:7: port: must be a whole number, not 'x'",
        "instances/good/system-prompt.md:3:5: names a tool by a path that no turn has: tools/hours.py",
        "instances/good/system-prompt.md:3:23: names the tool WebFetch, which is not granted",
    ]


PIECES = st.sampled_from(
    [
        "Read",
        "Grep",
        "WebFetch",
        "`Write`",
        "mcp__",
        "grants__",
        "hours",
        ".py",
        "tools/",
        "${tools_dir}/",
        "not ",
        "but ",
        "\n\n",
        "- ",
        "# ",
        ", ",
        " and ",
        "/",
        ".",
        ": ",
    ]
)


@given(st.lists(PIECES | st.text(max_size=3), max_size=40).map("".join))
def test_every_place_lies_in_the_prompt_and_every_message_is_short(prompt: str) -> None:
    lines = prompt.splitlines()
    for one in misnamed_tools(prompt, TOOLS, SCRIPTS):
        assert 1 <= one.line <= len(lines)
        assert 1 <= one.col <= len(lines[one.line - 1])
        assert one.mend
        assert len(one.message) < 200
        assert one.message.isprintable()
