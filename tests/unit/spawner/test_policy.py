from __future__ import annotations

import dataclasses
import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime import layout
from runtime.agents.definition import AgentDefinition, Tools
from runtime.spawner import policy
from runtime.spawner.cli_call import command, environment
from runtime.spawner.policy import GVISOR, Host, TurnFacts, create_body

if TYPE_CHECKING:
    from collections.abc import Iterator

GOLDEN = Path(__file__).with_name("create_body.json")
PACK = "b" * 64


def test_the_body_is_the_reviewed_one(agent: AgentDefinition, host: Host, facts: TurnFacts) -> None:
    """Regenerate with UPDATE_CREATE_BODY=1, and review the difference line by line."""
    body = create_body(agent, PACK, host, facts)
    if os.environ.get("UPDATE_CREATE_BODY"):
        GOLDEN.write_text(json.dumps(body, indent=2, ensure_ascii=False) + "\n")
    assert body == json.loads(GOLDEN.read_text())


def test_every_key_has_its_reason_in_the_docstring_in_the_order_of_the_code(
    agent: AgentDefinition, host: Host, facts: TurnFacts
) -> None:
    body = create_body(agent, PACK, host, facts)
    reasons = policy.__doc__ or ""
    outside, inside = reasons.split("    HostConfig\n")
    implied = {"Domainname", "AttachStdin", "AttachStdout", "AttachStderr", "StdinOnce", "Tty", "HostConfig"}
    for text, keys in ((outside, body), (inside, body["HostConfig"])):
        places = []
        for key in keys:
            if key not in implied:
                match = re.search(rf"^ {{4}}(?:\w+, )?{key}\b", text, re.MULTILINE)
                assert match, key
                places.append(match.start())
        assert places == sorted(places)


def test_nothing_is_writable_but_sized_noexec_tmpfs(
    agent: AgentDefinition, host: Host, facts: TurnFacts
) -> None:
    config = create_body(agent, PACK, host, facts)["HostConfig"]
    assert config["ReadonlyRootfs"] is True
    assert all(mount["ReadOnly"] is True and mount["Type"] == "volume" for mount in config["Mounts"])
    for options in config["Tmpfs"].values():
        assert {"noexec", "nosuid", "nodev"} <= set(options.split(","))
        assert "size=" in options
    assert "Binds" not in config


def test_the_profile_goes_in_as_its_content_and_gvisor_takes_none(
    agent: AgentDefinition, host: Host, facts: TurnFacts
) -> None:
    options = create_body(agent, PACK, host, facts)["HostConfig"]["SecurityOpt"]
    assert options == ["no-new-privileges", f"seccomp={host.seccomp}"]
    gvisor = create_body(agent, PACK, dataclasses.replace(host, runtime=GVISOR), facts)["HostConfig"]
    assert gvisor["SecurityOpt"] == ["no-new-privileges"]
    assert gvisor["Runtime"] == GVISOR


def test_the_environment_holds_no_key_and_no_prefix_of_one() -> None:
    names = [entry.partition("=")[0] for entry in environment()]
    assert len(names) == len(set(names))
    assert not [entry for entry in environment() if "sk-ant" in entry]
    assert "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD" not in names


def flag(argv: list[str], name: str) -> str:
    assert argv.count(name) == 1
    return argv[argv.index(name) + 1]


def test_bash_is_never_a_tool_and_a_grant_is_an_mcp_tool(agent: AgentDefinition) -> None:
    argv = command(agent)
    assert flag(argv, "--tools") == "Read,Glob,Grep"
    assert flag(argv, "--allowedTools") == "Read,Glob,Grep,mcp__grants__opening_hours"
    server = json.loads(flag(argv, "--mcp-config"))["mcpServers"]["grants"]
    assert server["command"] == "/usr/bin/python3"
    assert server["args"][-2:] == ["--tool", "opening_hours"]


def test_without_a_grant_there_is_no_server_and_without_tools_none_exists(agent: AgentDefinition) -> None:
    argv = command(dataclasses.replace(agent, tools=Tools((), ())))
    assert "--mcp-config" not in argv
    assert "--strict-mcp-config" in argv
    assert flag(argv, "--tools") == ""


def test_no_argument_is_longer_than_linux_takes(agent: AgentDefinition) -> None:
    many = tuple(f"{'t' * 36}_{number:02}" for number in range(32))
    for argument in command(dataclasses.replace(agent, tools=Tools(granted=many))):
        assert len(argument.encode()) < 131_072


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from strings(one)
    elif isinstance(value, list):
        for one in value:
            yield from strings(one)
    elif isinstance(value, str):
        yield value


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    turn=st.text("0123456789abcdef", min_size=32, max_size=32),
    uid=st.sampled_from(layout.TURN_UIDS),
    deadline=st.floats(1.7e9, 2e9),
)
def test_only_labels_user_tmpfs_and_the_doors_depend_on_the_turn(
    turn: str, uid: int, deadline: float, agent: AgentDefinition, host: Host, facts: TurnFacts
) -> None:
    one = create_body(agent, PACK, host, facts)
    other = create_body(agent, PACK, host, TurnFacts(turn, uid, deadline))
    for body in (one, other):
        for key in ("User", "Labels"):
            del body[key]
        del body["HostConfig"]["Tmpfs"]
        body["HostConfig"]["Mounts"][-1]["VolumeOptions"].pop("Subpath")
    assert one == other


def test_no_path_of_the_operators_is_in_the_body(
    agent: AgentDefinition, host: Host, facts: TurnFacts, tmp_path: Path
) -> None:
    body = create_body(agent, PACK, host, facts)
    assert not [text for text in strings(body) if str(tmp_path) in text]
