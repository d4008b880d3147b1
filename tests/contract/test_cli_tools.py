"""Which tools a turn offers the model, what they reach, and how large that makes a request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.contract.conftest import CONTEXT

if TYPE_CHECKING:
    from tests.contract.conftest import Cli, Ran

pytestmark = pytest.mark.engine

MODEL = "claude-sonnet-5-5"  # what the alias `sonnet` becomes in the pinned CLI
FILE_TOOLS = ["Glob", "Grep", "Read"]
SCRIPT = '''"""Says which context it serves."""
import os, sys
print("context", os.environ.get("AGENT_CONTEXT_ID"), "arguments", sys.argv[1:], "names", sorted(os.environ))
'''


def offered(ran: Ran) -> list[str]:
    return sorted(tool["name"] for tool in ran.bodies[0]["tools"])


def only_allowed_tools(body: dict[str, Any]) -> None:
    """The call without what makes it narrow: --allowedTools alone."""
    command = body["Cmd"]
    for flag, values in (
        ("--tools", 1),
        ("--restricted", 0),
        ("--disallowedTools", 1),
        ("--disable-slash-commands", 0),
    ):
        at = command.index(flag)
        del command[at : at + 1 + values]


def size(ran: Ran) -> int:
    first = next(request for request in ran.requests if request["path"] == "/v1/messages")
    return int(first["bytes"])


def test_only_the_file_tools_are_offered(cli: Cli) -> None:
    cli.script({"text": "An answer."})
    ran = cli.run("hello")
    assert offered(ran) == FILE_TOOLS
    assert ran.bodies[0]["model"] == MODEL
    assert ran.bodies[0]["max_tokens"] == 4000


@pytest.mark.control("CLI-02")
def test_a_grant_adds_one_tool_to_the_first_request_and_no_shell(cli: Cli) -> None:
    (cli.instance / "tools" / "which.py").write_text(SCRIPT)
    cli.script({"text": "An answer."})
    ran = cli.run("hello", agent=cli.agent(granted=("which",)))
    assert offered(ran) == [*FILE_TOOLS, "mcp__grants__which"]
    (tool,) = [tool for tool in ran.bodies[0]["tools"] if tool["name"].startswith("mcp__")]
    assert tool["description"] == "Says which context it serves."


def test_no_tool_at_all_is_possible(cli: Cli) -> None:
    cli.script({"text": "An answer."})
    ran = cli.run("hello", agent=cli.agent(builtin=()))
    assert ran.bodies[0].get("tools", []) == []


@pytest.mark.parametrize(
    ("granted", "ratio"), [((), 0.30), (("which",), 0.35)], ids=["without a grant", "with a grant"]
)
def test_a_request_is_a_third_of_what_allowed_tools_alone_makes(
    cli: Cli, granted: tuple[str, ...], ratio: float
) -> None:
    (cli.instance / "tools" / "which.py").write_text(SCRIPT)
    agent = cli.agent(granted=granted)
    cli.script({"text": "An answer."})
    narrow = cli.run("hello", agent=agent)
    cli.script({"text": "An answer."})
    wide = cli.run("hello", agent=agent, change=only_allowed_tools)
    assert "Bash" in offered(wide)
    assert narrow.bodies[0]["model"] == wide.bodies[0]["model"] == MODEL
    assert size(narrow) / size(wide) <= ratio, f"{size(narrow)} / {size(wide)} bytes"


@pytest.mark.control("CLI-02")
@pytest.mark.parametrize("form", ["Bash", "Write", "WebFetch", "Task"])
def test_a_model_that_calls_a_tool_that_was_not_offered_gets_an_error(cli: Cli, form: str) -> None:
    cli.script(
        {"tool_use": {"name": form, "input": {"command": "id", "file_path": "/tmp/x", "content": "x"}}},
        {"text": "Done."},
    )
    ran = cli.run("hello")
    assert ran.tool_result()["is_error"] is True
    assert "uid=" not in json.dumps(ran.tool_result())


@pytest.mark.control("CLI-03")
@pytest.mark.parametrize(
    ("tool", "untrusted_input", "leak"),
    [
        ("Read", {"file_path": "/etc/passwd"}, "root:x:0"),
        ("Read", {"file_path": "/proc/self/environ"}, "ANTHROPIC_"),
        ("Read", {"file_path": "../etc/passwd"}, "root:x:0"),
        ("Read", {"file_path": "/instance/system-prompt.md"}, "exists in tests"),
        ("Read", {"file_path": "/grounding/link"}, "root:x:0"),
        ("Grep", {"pattern": "root", "path": "/etc", "output_mode": "content"}, "root:x:0"),
        ("Glob", {"pattern": "/etc/*"}, "/etc/passwd"),
    ],
)
def test_a_file_outside_the_grounding_is_not_read(
    cli: Cli, tool: str, untrusted_input: dict[str, Any], leak: str
) -> None:
    (cli.grounding / "link").symlink_to("/etc/passwd")
    cli.script({"tool_use": {"name": tool, "input": untrusted_input}}, {"text": "Done."})
    ran = cli.run("hello")
    assert leak not in json.dumps(ran.tool_result()["content"])


def test_a_file_of_the_grounding_is_read(cli: Cli) -> None:
    cli.script(
        {"tool_use": {"name": "Read", "input": {"file_path": "/grounding/hours.md"}}}, {"text": "Done."}
    )
    assert "Tuesday, 10 to 12" in json.dumps(cli.run("hello").tool_result())


@pytest.mark.control("CLI-03")
def test_without_restricted_a_file_outside_the_grounding_is_read(cli: Cli) -> None:
    """The twin."""
    cli.script({"tool_use": {"name": "Read", "input": {"file_path": "/etc/passwd"}}}, {"text": "Done."})
    ran = cli.run("hello", change=lambda body: body["Cmd"].remove("--restricted"))
    assert "root:x:0" in json.dumps(ran.tool_result())


def test_a_granted_script_runs_with_its_arguments_and_its_context_and_nothing_else(cli: Cli) -> None:
    (cli.instance / "tools" / "which.py").write_text(SCRIPT)
    call = {"name": "mcp__grants__which", "input": {"args": ["--day", "; id", "$(id)"]}}
    cli.script({"tool_use": call}, {"text": "Done."})
    ran = cli.run("hello", agent=cli.agent(granted=("which",)))
    (block,) = ran.tool_result()["content"]
    assert f"context {CONTEXT} arguments ['--day', '; id', '$(id)']" in block["text"]
    assert "names ['AGENT_CONTEXT_ID', 'HOME', 'LANG', 'PATH', 'TZ']" in block["text"]
    assert ran.result["result"] == "Done."
