"""Tools that a prompt names wrongly are found in place, and what it denies is no mistake."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.agents.definition import Tools
from runtime.agents.instance import inspect_instance
from runtime.agents.prompt_tools import is_mentioned, is_named, misnamed_tools
from runtime.agents.tool_grants import Granted

if TYPE_CHECKING:
    from pathlib import Path

TOOLS = Tools(("Read", "Glob"), ("hours",))
SCRIPTS = {"hours": "", "send_mail": ""}


GRANTED = Granted(TOOLS)


def wrong(prompt: str, granted: Granted = GRANTED) -> list[tuple[int, int, str]]:
    return [(one.line, one.col, one.message) for one in misnamed_tools(prompt, granted, SCRIPTS)]


def severity(prompt: str, granted: Granted = GRANTED) -> list[bool]:
    return [one.certain for one in misnamed_tools(prompt, granted, SCRIPTS)]


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
        ("Run $tools_dir/precos.py for it.", 5, "by a path that no turn has: $tools_dir/precos.py"),
        ("Run {tools_dir}/hours.py for it.", 5, "by a path that no turn has"),
        ("Run ${tools_dir}/pre\u00e7os.py for it.", 5, "not in the tools folder"),
        ("There is no ${tools_dir}/gone.py.", 13, "not in the tools folder"),
        ("If you do not know a price, run ${tools_dir}/price.py.", 33, "not in the tools folder"),
        ("If the files do not say it, use WebSearch.", 33, "names the tool WebSearch"),
        ("When you do not know use WebSearch", 26, "names the tool WebSearch"),
        ("Do not guess, call `Bash` instead.", 21, "names the tool Bash"),
        ("Do not guess: use WebSearch.", 19, "names the tool WebSearch"),
        ("When the files have nothing, use the Grep tool.", 38, "names the tool Grep"),
        ("Use WebSearch for what is not in the files.", 5, "names the tool WebSearch"),
        ("Use WebFetch if the files do not say it.", 5, "names the tool WebFetch"),
        ("Tools: Read, Write.", 14, "names the tool Write"),
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
        "The tool WebSearch is unavailable to you.",
        "WebFetch and Bash are switched off.",
        "Refuse requests to run Bash or WebSearch.",
        "If a visitor asks you to use WebFetch, decline.",
        "Avoid Grep.",
        "Ignore anything about `Bash`.",
        "Do not use WebFetch, the Write tool, or WebSearch.",
        "Do not use WebFetch, Bash and the WebSearch tool.",
        "On the page, visitors click `Edit`, and the command is `Task`.",
        "Her Bash tool of 2019 is well known.",
        "She teaches people to Read, Write and Edit prose.",
        "Her release script is tools/release.py in the shellkit repository.",
        "Her server is not there to run tools/release.py.",
    ],
)
def test_what_a_prompt_may_say_is_no_alarm(prompt: str) -> None:
    assert wrong(f"# Role\n\n{prompt}\n") == []


DENIALS = {
    "German": "Verwende niemals WebFetch oder WebSearch. Du hast kein `Bash`.",
    "French": "N'utilise jamais WebFetch ni WebSearch. Tu travailles sans Grep.",
    "Spanish": "Nunca uses WebSearch. Jam\u00e1s abras `Bash`, ni WebFetch.",
    "Portuguese": "N\u00e3o use WebFetch, WebSearch nem Grep.",
    "Italian": "Non usare mai WebFetch, WebSearch o Grep.",
    "Dutch": "Gebruik nooit WebFetch of WebSearch.",
    "Polish": "Nie u\u017cywaj WebFetch ani Grep.",
    "Russian": "\u041d\u0435 \u0438\u0441\u043f\u043e\u043b\u044c\u0437\u0443\u0439 WebFetch.",
    "Arabic": "\u0644\u0627 \u062a\u0633\u062a\u062e\u062f\u0645 WebFetch",
    "Chinese": "\u4e0d\u8981\u4f7f\u7528WebFetch\u3002",
}


@pytest.mark.parametrize("language", DENIALS)
def test_a_denial_in_another_language_is_no_alarm(language: str) -> None:
    assert wrong(DENIALS[language]) == []


@pytest.mark.parametrize(
    "prompt",
    [
        *DENIALS.values(),
        "\u00c4l\u00e4 k\u00e4yt\u00e4 ty\u00f6kaluja WebFetch, Grep tai mcp__files__read.",
        "WebFetch ve WebSearch kullanma. mcp__grants__gone yok.",
        "Use WebSearch, WebFetch, Grep, `Bash` and mcp__files__read.",
    ],
)
def test_what_only_words_tell_keeps_no_prompt_from_starting_in_whatever_language(prompt: str) -> None:
    """Finnish and Turkish are not understood, and do no harm."""
    assert not any(severity(prompt))


@pytest.mark.parametrize(
    ("prompt", "certain"),
    [
        ("Corre tools/hours.py.", True),
        ("Corre send_mail.py.", True),
        ("Corre ${tools_dir}/gone.py.", True),
        ("Corre ${tools_dir}/send_mail.py.", True),
        ("Llama a mcp__grants__send_mail.", True),
        ("Llama a mcp__grants__gone.", False),
        ("Run tools/prices.py for prices.", False),
    ],
)
def test_a_mistake_about_a_script_is_certain_where_the_files_show_it(prompt: str, certain: bool) -> None:
    assert severity(prompt) == [certain]


def test_while_grants_are_wrong_only_what_they_cannot_change_is_a_mistake() -> None:
    prompt = "Use Grep, WebFetch, ${tools_dir}/gone.py, tools/hours.py, ${tools_dir}/send_mail.py."
    unknown = [message for *_, message in wrong(prompt, Granted(Tools((), ()), None))]
    assert [message.split(",")[0] for message in unknown] == [
        "names the script gone",
        "names a tool by a path that no turn has: tools/hours.py",
        "names the tool WebFetch",
    ]
    doubtful = Granted(Tools(("Read",), ()), "Read;Grep")
    messages = " ".join(message for *_, message in wrong(prompt, doubtful))
    assert "the script send_mail, which is not granted" in messages
    assert "the tool Grep" not in messages


def test_a_wrong_path_is_wrong_even_where_it_is_denied() -> None:
    assert len(wrong("Never call tools/hours.py without a day.")) == 1


@pytest.mark.parametrize(
    "prompt",
    [
        *("the hours tool", "${tools_dir}/hours.py", "mcp__grants__hours", "`hours`", "hours: when it opens"),
        *(
            "- **hours**: when",
            "\u00ab hours \u00bb",
            "Ask hours for a day.",
            "\u201ehours\u201c",
            "hours : quand",
        ),
    ],
)
def test_a_script_is_named_by_word_path_or_model_name(prompt: str) -> None:
    assert is_named("hours", prompt)


def test_a_plain_word_is_mentioned_and_names_no_script() -> None:
    assert not is_named("hours", "Her hours change daily; use the hours well.")
    assert is_mentioned("hours", "Her hours change daily.")
    assert is_named("opening_hours", "Look at opening_hours for it.")


@pytest.mark.parametrize("prompt", ["opening_hours", "hourshours", "", "mcp__grants__hours_late"])
def test_part_of_a_word_names_no_script(prompt: str) -> None:
    assert not is_named("hours", prompt)


def test_the_places_come_with_every_other_mistake_of_the_instance(root: Path) -> None:
    (root / "instances/good/agent.yaml").write_text("grounding_dir: docs\nport: x\n")
    (root / "instances/good/system-prompt.md").write_text("You are it.\n\nRun tools/hours.py or WebFetch.\n")
    seen = inspect_instance(root, "good", {})
    assert [str(problem).partition(" (")[0] for problem in seen.problems] == [
        "instances/good/agent.yaml:2:7: port: must be a whole number, not 'x'",
        "instances/good/system-prompt.md:3:5: names a tool by a path that no turn has: tools/hours.py",
    ]
    assert [str(warning).partition(" (")[0] for warning in seen.warnings] == [
        "instances/good/system-prompt.md:3:23: names the tool WebFetch, which is not granted",
    ]


def test_wrong_grants_hide_no_certain_mistake_of_the_prompt(root: Path) -> None:
    (root / "instances/good/agent.yaml").write_text("grounding_dir: docs\nallowed_tools: [Read, Glob]\n")
    (root / "instances/good/system-prompt.md").write_text(
        "Run tools/hours.py or ${tools_dir}/gone.py. Glob.\n"
    )
    seen = inspect_instance(root, "good", {})
    assert [(problem.line, problem.col, problem.path) for problem in seen.problems] == [
        (2, 16, "allowed_tools"),
        (1, 5, ""),
        (1, 23, ""),
    ]
    assert seen.warnings == ()


def test_a_flood_of_names_is_cut(root: Path) -> None:
    (root / "instances/good/system-prompt.md").write_text("Use WebFetch.\n" * 300)
    seen = inspect_instance(root, "good", {})
    assert seen.agent is not None
    assert len(seen.warnings) == 50


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


@example("\x1eGrep")
@given(st.lists(PIECES | st.text(max_size=3), max_size=40).map("".join))
def test_every_place_lies_in_the_prompt_and_every_message_is_short(prompt: str) -> None:
    lines = re.split(r"\r\n|[\n\r\x85\u2028\u2029]", prompt)
    for one in misnamed_tools(prompt, GRANTED, SCRIPTS):
        assert 1 <= one.line <= len(lines)
        assert 1 <= one.col <= len(lines[one.line - 1])
        assert one.mend
        assert len(one.message) < 200
        assert one.message.isprintable()
