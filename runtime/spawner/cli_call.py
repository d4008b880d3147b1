"""The CLI's argument list and environment in a turn, each with its reason. Pure; part of the create body.

docs/reference/cli-call.md says what was measured of each flag. The container is the control; these are what
keeps the CLI from doing on its own what the container would stop, and the request to the model small. A run
without a sandbox (runtime/unsandboxed) makes the same list with places of its own, so that there is no second
one to forget a flag in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from runtime import layout
from runtime.spawner.denylist import DENYLIST

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.agents.definition import AgentDefinition

CLAUDE = "/usr/local/bin/claude"
GRANTS = ("/usr/bin/python3", "-I", "-S", "/opt/gatehouse/grants.pyc")
DOOR_URL = "http://127.0.0.1:8787"
MODEL_REQUESTS = 8
MODEL_OUTPUT_TOKENS = 4000
NO_KEY = "no-key-inside"


@dataclass(frozen=True, slots=True)
class Places:
    """Where the CLI finds what its arguments name.

    `grants` is the command that serves granted scripts, before their names; `extra` is the folder that holds
    the extra directories as 0, 1 and so on.
    """

    claude: str = CLAUDE
    grants: tuple[str, ...] = GRANTS
    persona: str = layout.TURN_PERSONA
    extra: str = layout.TURN_EXTRA


IN_A_CONTAINER: Final = Places()


def command(agent: AgentDefinition, places: Places = IN_A_CONTAINER) -> list[str]:
    """Return the CLI's whole argument list; it holds nothing of the visitor's.

    -p, stream-json twice     one turn, fed by one line on stdin (the prompt never is an argument)
    --verbose, --include-partial-messages   needed for NDJSON, and for an answer that builds up
    --model                   the agent's alias; the door compares what the CLI makes of it
    --append-system-prompt-file   persona by file: an argument is limited to 128 KiB
    --add-dir                 one per extra directory
    --tools                   which built-in tools exist at all (CLI-02): never Bash
    --allowedTools            which of those and of the granted scripts run without asking
    --disallowedTools         backstop, see denylist.py
    --permission-mode         a headless run must never wait for a person
    --setting-sources, --restricted   settings, hooks and .mcp.json in a grounding stay dead (CLI-03)
    --strict-mcp-config, --mcp-config   the grants server, where there is a grant, and no other
    --disable-slash-commands  the CLI's syntax in visitor text is inert (CLI-01)
    --max-turns               as many model requests as the door allows
    --no-session-persistence  nothing is written for a session that is never resumed
    """
    granted = [f"mcp__grants__{name}" for name in agent.tools.granted]
    argv = [places.claude, "-p", "--input-format", "stream-json", "--output-format", "stream-json"]
    argv += ["--verbose", "--include-partial-messages"]
    argv += ["--model", agent.model]
    argv += ["--append-system-prompt-file", places.persona]
    for number in range(len(agent.grounding.extra)):
        argv += ["--add-dir", f"{places.extra}/{number}"]
    argv += ["--tools", ",".join(agent.tools.builtin)]
    argv += ["--allowedTools", ",".join([*agent.tools.builtin, *granted])]
    argv += ["--disallowedTools", DENYLIST]
    argv += ["--permission-mode", "acceptEdits"]
    argv += ["--setting-sources", "project", "--restricted"]
    argv += ["--strict-mcp-config"]
    if agent.tools.granted:
        argv += ["--mcp-config", _mcp_config(agent.tools.granted, places.grants)]
    argv += ["--disable-slash-commands"]
    argv += ["--max-turns", str(MODEL_REQUESTS)]
    argv += ["--no-session-persistence"]
    return argv


def _mcp_config(granted: tuple[str, ...], program: tuple[str, ...]) -> str:
    """Return the MCP configuration as inline JSON: the grants server with its scripts."""
    arguments = [*program[1:]]
    for name in granted:
        arguments += ["--tool", name]
    server = {"type": "stdio", "alwaysLoad": True, "command": program[0], "args": arguments}
    return json.dumps({"mcpServers": {"grants": server}}, separators=(",", ":"))


SWITCHES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "CLAUDE_CODE_DISABLE_ATTACHMENTS": "1",  # @mentions in visitor text attach nothing
        "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",  # the same, by its own switch
        "CLAUDE_CODE_DISABLE_CLAUDE_MDS": "1",  # a CLAUDE.md in the grounding is a document, no instruction
        "CLAUDE_CODE_DISABLE_AUTO_MEMORY": "1",  # no memory folder in HOME
        "MCP_CONNECTION_NONBLOCKING": "0",  # the first request waits for the granted tools,
        "MCP_TIMEOUT": "5000",  # but not for ever (milliseconds)
        "MCP_TOOL_TIMEOUT": "25000",  # longer than grants.py's own limit (milliseconds)
        "CLAUDE_CODE_MAX_RETRIES": "1",  # a dead door ends the turn in two seconds, not three minutes
        "CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK": "1",  # no second, larger request
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(MODEL_OUTPUT_TOKENS),  # what the door allows
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",  # there is nobody to talk to
        "DISABLE_AUTOUPDATER": "1",  # the image is pinned
    }
)
"""What the CLI is told by its environment wherever it runs."""


def environment() -> list[str]:
    """Return the closed list of a turn's environment as NAME=value. It holds no secret (KEY-01).

    ANTHROPIC_API_KEY is there because the CLI asks for one; the door ignores it.
    """
    values = {
        "PATH": "/usr/local/bin:/usr/bin",
        "HOME": layout.TURN_HOME,
        "LANG": "C.UTF-8",
        "ANTHROPIC_BASE_URL": DOOR_URL,
        "ANTHROPIC_API_KEY": NO_KEY,
        **SWITCHES,
    }
    return [f"{name}={value}" for name, value in values.items()]
