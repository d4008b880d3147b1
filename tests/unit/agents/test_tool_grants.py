"""The closed grammar of allowed_tools: what it does not know is refused, and the rest reads back the same."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.agents.definition import Tools
from runtime.agents.tool_grants import (
    BUILTIN,
    MAX_GRANTS,
    Granted,
    missing_scripts,
    parse_grants,
    render_grants,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.control("CFG-01")

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,40}", fullmatch=True)
ALLOWED = re.compile(r"(Read|Glob|Grep|Bash\(python3 \$\{tools_dir\}/[a-z][a-z0-9_]{0,40}\.py:\*\))")
FRAGMENTS = st.lists(
    st.sampled_from(
        [
            *BUILTIN,
            "Bash",
            "Bash(",
            "python3 ",
            "${tools_dir}/",
            "a",
            ".py",
            ":*)",
            ",",
            " ",
            "\n",
            "../",
            ";",
            "Write",
            "mcp__x",
            "*",
            "Bash(python3 ${tools_dir}/ok.py:*)",
        ]
    ),
    max_size=12,
).map("".join)


@given(st.lists(st.sampled_from(BUILTIN), unique=True), st.lists(NAMES, unique=True, max_size=MAX_GRANTS))
def test_every_set_of_grants_survives_writing_and_reading(builtin: list[str], granted: list[str]) -> None:
    tools = Tools(tuple(name for name in BUILTIN if name in builtin), tuple(granted))
    if tools.builtin or tools.granted:
        assert parse_grants(render_grants(tools)) == (tools, ())


@given(st.text() | FRAGMENTS)
@example("Read,Bash(python3 ${tools_dir}/a.py:*),Read")
@example("Bash(python3 ${tools_dir}/../a.py:*)")
@example("Bash(python3 ${tools_dir}/a.py:*)\x00")
@example("read")
@example("Read\uff0cGlob")
def test_text_is_either_wholly_in_the_grammar_or_a_problem(text: str) -> None:
    tools, wrong = parse_grants(text)
    parts = [part.strip(" \t\r\n") for part in text.split(",")]
    in_grammar = all(ALLOWED.fullmatch(part) for part in parts) and len(set(parts)) == len(parts)
    assert bool(wrong) == (not in_grammar)
    if not wrong:
        assert sorted(render_grants(tools).split(",")) == sorted(parts)


@given(st.text() | FRAGMENTS)
def test_no_text_ever_yields_a_tool_outside_the_closed_set(text: str) -> None:
    tools, _ = parse_grants(text)
    assert set(tools.builtin) <= set(BUILTIN)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{0,40}", name) for name in tools.granted)


@pytest.mark.parametrize(
    "grant",
    [
        "Bash",
        "Bash(*)",
        "Bash(cat:*)",
        "Bash(python3:*)",
        "Bash(python3 ${tools_dir}/a.sh:*)",
        "Bash(python3 ${tools_dir}/sub/a.py:*)",
        "Bash(python3 ${tools_dir}/a.py)",
        "Bash(python3  ${tools_dir}/a.py:*)",
        "Bash(python ${tools_dir}/a.py:*)",
        "Bash(python3 ${instance_dir}/tools/a.py:*)",
        "Edit",
        "Write",
        "WebFetch",
        "Task",
        "Read(/etc/**)",
        "mcp__grants__a",
    ],
)
def test_a_grant_outside_the_grammar_is_refused_by_name(grant: str) -> None:
    tools, wrong = parse_grants(f"Read,{grant}")
    assert tools == Tools(("Read",), ())
    assert wrong == (f"{grant!r} cannot be granted",)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("next-ferry", "has a-z, 0-9 and _, and no `-`; rename the file too"),
        ("Next", "has a-z, 0-9 and _, and no `N`"),
        ("1st", "begins with a letter"),
    ],
)
def test_what_is_wrong_with_the_name_of_a_script_is_said(name: str, words: str) -> None:
    tools, (message,) = parse_grants(f"Bash(python3 ${{tools_dir}}/{name}.py:*)")
    assert tools == Tools((), ())
    assert words in message


def test_what_is_granted_is_not_known_while_the_grants_are_wrong() -> None:
    assert Granted(Tools((), ())).lacks("Read", builtin=True)
    assert Granted(Tools((), ())).lacks("hours")
    assert not Granted(Tools((), ()), None).lacks("hours")
    assert not Granted(Tools((), ()), "Read; hours").lacks("hours")
    assert Granted(Tools((), ()), "Read; hours").lacks("menu")
    assert Granted(Tools((), ()), None).lacks("WebFetch", builtin=True)


def test_a_grant_given_twice_is_a_problem() -> None:
    assert parse_grants("Read,Read")[1] == ("'Read' is granted twice",)


def test_more_scripts_than_a_turn_can_serve_are_refused() -> None:
    text = render_grants(Tools((), tuple(f"a{n}" for n in range(MAX_GRANTS + 1))))
    assert parse_grants(text)[1] == (f"grants more than {MAX_GRANTS} scripts",)


def test_a_long_grant_is_shortened_in_its_message() -> None:
    (message,) = parse_grants("x" * 10000)[1]
    assert len(message) < 100


def test_only_regular_files_in_the_tools_folder_itself_can_be_granted(tmp_path: Path) -> None:
    (tmp_path / "good.py").write_text("")
    (tmp_path / "folder.py").mkdir()
    (tmp_path / "link.py").symlink_to("good.py")
    assert missing_scripts(Tools((), ("good", "folder", "link", "absent")), tmp_path) == (
        "tools/folder.py is not a regular file",
        "tools/link.py is not a regular file",
        "tools/absent.py does not exist",
    )
