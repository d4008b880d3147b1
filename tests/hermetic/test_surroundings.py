"""What a turn without a sandbox is given: arguments, environment, folder, scripts; and the notices."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runtime.errors import ConfigError, HostError
from runtime.spawner.cli_call import SWITCHES, command
from runtime.unsandboxed import starting as outside

if TYPE_CHECKING:
    from runtime.agents.definition import AgentDefinition


async def recorded(stub: Any, kit: Any, agent: AgentDefinition, **environ: str) -> tuple[dict[str, Any], Any]:
    """Run one turn and return what the stub saw, with the runner, whose snapshot is still there."""
    runner = stub.runner(agent, **environ)
    stub.play({"read": True}, {"record": str(stub.record)}, kit.result("ok"))
    await kit.events_of(runner, agent)
    return stub.recorded(), runner


@pytest.mark.control("CLI-02", "CLI-03")
async def test_the_arguments_are_the_sandboxs_with_other_places(stub: Any, kit: Any) -> None:
    agent = stub.agent(granted=("hours",))
    seen, runner = await recorded(stub, kit, agent)
    inside = command(agent)
    assert len(seen["argv"]) == len(inside)
    pack = str(runner.snapshot.pack)
    differing = {(ours, theirs) for ours, theirs in zip(seen["argv"], inside, strict=True) if ours != theirs}
    configuration = next(ours for ours, _theirs in differing if ours.startswith("{"))
    assert differing == {
        (str(stub.program), "/usr/local/bin/claude"),
        (f"{pack}/instance/system-prompt.md", "/instance/system-prompt.md"),
        (f"{pack}/extra/0", "/extra/0"),
        (configuration, inside[inside.index("--mcp-config") + 1]),
    }
    await runner.aclose()


async def test_it_runs_in_the_copy_of_the_grounding(stub: Any, kit: Any) -> None:
    seen, runner = await recorded(stub, kit, stub.agent())
    assert seen["cwd"] == str(runner.snapshot.grounding)
    assert (Path(seen["cwd"]) / "facts.md").read_text() == "The sky is blue.\n"
    persona = runner.snapshot.persona.read_text()
    assert persona == f"You are Ada. Tools: {runner.snapshot.tools}"
    assert runner.snapshot.folder.stat().st_mode & 0o777 == 0o700
    await runner.aclose()
    assert not runner.snapshot.folder.exists()


async def test_a_link_in_the_grounding_is_refused_as_in_the_stack_and_leaves_nothing(stub: Any) -> None:
    (stub.folder / "grounding" / "link.md").symlink_to("/etc/passwd")
    with pytest.raises(ConfigError, match=r"grounding/link\.md"):
        stub.runner()


async def test_the_environment_is_the_parents_with_the_switches_and_no_context(stub: Any, kit: Any) -> None:
    given = {"EDITOR": "ed", "AGENT_CONTEXT_ID": "of-somebody", "CLAUDECODE": "1"}
    seen, runner = await recorded(stub, kit, stub.agent(), **given)
    await runner.aclose()
    env = seen["env"]
    assert env["EDITOR"] == "ed"
    assert env["ANTHROPIC_API_KEY"] == "made-up"
    assert "ANTHROPIC_BASE_URL" not in env
    assert {name: env[name] for name in SWITCHES} == dict(SWITCHES)
    assert "AGENT_CONTEXT_ID" not in env
    assert "CLAUDECODE" not in env
    assert "ctx-1" not in json.dumps(seen)


async def test_the_context_reaches_a_granted_script_and_it_alone(stub: Any, kit: Any) -> None:
    script = '"""Tell."""\nimport json, os, sys\nprint(json.dumps([dict(os.environ), sys.argv[1:]]))\n'
    (stub.folder / "tools" / "hours.py").write_text(script)
    (stub.folder / "grounding" / "json.py").write_text("raise SystemExit('from the grounding')\n")
    (stub.folder / "grounding" / "sandbox.py").write_text("raise SystemExit('from the grounding')\n")
    agent = stub.agent(granted=("hours",))
    called = stub.folder / "called.json"
    runner = stub.runner(agent)
    calls: list[list[str]] = []
    argv = runner.argv

    def noted(folder: Path) -> list[str]:
        found: list[str] = argv(folder)
        server = json.loads(found[found.index("--mcp-config") + 1])["mcpServers"]["grants"]
        calls.append([server["command"], *server["args"]])
        request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
        request["params"] = {"name": "hours", "arguments": {"args": ["--day", "x y"]}}
        done = subprocess.run(
            calls[-1],
            input=json.dumps(request).encode() + b"\n",
            capture_output=True,
            cwd=runner.snapshot.grounding,
            timeout=30,
            check=False,
        )
        called.write_bytes(done.stdout or done.stderr)
        return found

    runner.argv = noted
    await kit.events_of(runner, agent)
    (block,) = json.loads(called.read_text())["result"]["content"]
    environ, arguments = json.loads(block["text"])
    assert arguments == ["--day", "x y"]
    assert environ["AGENT_CONTEXT_ID"] == "ctx-1"
    assert set(environ) <= {"AGENT_CONTEXT_ID", "PATH", "HOME", "LANG", "TZ", "LC_CTYPE"}
    assert not any("ctx-1" in argument for argument in calls[0])
    await runner.aclose()


async def test_with_no_way_to_a_model_the_demo_answers_on_loopback_and_nothing_else_can(
    stub: Any, kit: Any
) -> None:
    keys = {"MODEL": "demo", "ANTHROPIC_AUTH_TOKEN": "made-up", "HTTPS_PROXY": "http://proxy.invalid"}
    seen, runner = await recorded(stub, kit, stub.agent(), **keys)
    env = seen["env"]
    assert env["ANTHROPIC_BASE_URL"].startswith("http://127.0.0.1:")
    assert env["ANTHROPIC_API_KEY"] == "no-key-inside"
    assert "ANTHROPIC_AUTH_TOKEN" not in env
    assert env["NO_PROXY"] == "127.0.0.1"
    assert env["CLAUDE_CONFIG_DIR"].startswith(str(runner.snapshot.folder))
    assert (await runner.agent("ada"))["demo"] is True
    assert runner.model.reason == "MODEL=demo is set"
    await runner.aclose()


async def test_ready_says_that_there_is_no_sandbox(front: Any) -> None:
    assert (await front.http.get("/ready")).json() == {"status": "ready", "sandbox": "none"}


@pytest.mark.control("BARE-01")
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8011", 200),
        ("localhost", 200),
        ("[::1]:8011", 200),
        ("evil.example", 421),
        ("127.0.0.1.evil.example", 421),
        ("", 421),
        ("10.0.0.1:8011", 421),
    ],
)
async def test_a_page_that_calls_this_machine_by_another_name_is_refused(
    front: Any, host: str, status: int
) -> None:
    answer = await front.http.get("/health", headers={"host": host})
    assert answer.status_code == status


@pytest.mark.control("BARE-01")
@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://127.0.0.1:3000", 200), ("http://localhost", 200), ("https://evil.example", 403), ("null", 403)],
)
async def test_a_page_of_another_site_runs_no_turn(front: Any, origin: str, status: int) -> None:
    answer = await front.http.get("/health", headers={"host": "127.0.0.1", "origin": origin})
    assert answer.status_code == status


def test_the_card_and_the_banner_say_it_too(stub: Any) -> None:
    folder = stub.folder / "instances" / "ada"
    folder.mkdir(parents=True)
    (folder / "agent.yaml").write_text("description: Answers.\ngrounding_dir: grounding\n")
    (folder / "system-prompt.md").write_text("You are Ada.\n")
    agent = outside.load(stub.folder, "ada", stub.environ, CLAUDE_MODEL="haiku", AGENT_PORT=None)
    assert agent.card.description == f"Answers. {outside.NOTICE}"
    assert agent.model == "haiku"
    runner = stub.runner()
    lines = outside.banner(runner, runner.agent_definition).splitlines()
    runner.snapshot.remove()
    assert lines[1].startswith("NO SANDBOX: ")
    assert "Never for visitors" in lines[2]
    assert lines[3] == "The CLI's own model, sonnet answers, because ANTHROPIC_API_KEY is set."


def test_without_a_server_library_the_demo_says_so_and_the_clis_own_model_works(
    stub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name}", name="uvicorn")

    monkeypatch.setattr("runtime.unsandboxed.starting.importlib.import_module", missing)
    with pytest.raises(HostError, match=r"The demo model needs uvicorn, which is not installed here\."):
        outside.start(stub.agent(), {**stub.environ, "MODEL": "demo"}, stub.folder)
    runner = outside.start(stub.agent(), stub.environ, stub.folder)
    assert runner.model.demo is False
    runner.snapshot.remove()


@pytest.mark.parametrize("there", [True, False], ids=["not by this kernel", "not by this system"])
def test_where_the_end_of_a_process_cannot_be_waited_for_nothing_starts(
    stub: Any, kit: Any, temporary: Path, monkeypatch: pytest.MonkeyPatch, *, there: bool
) -> None:
    def unknown(_pid: int) -> int:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    if there:
        monkeypatch.setattr(os, "pidfd_open", unknown)
    else:
        monkeypatch.delattr(os, "pidfd_open")
    with pytest.raises(HostError, match=r"need Linux 5\.3 or later"):
        outside.start(stub.agent(), stub.environ, stub.folder)
    assert kit.inside(temporary) == []


async def test_the_cli_is_started_with_the_signals_and_the_environment_that_it_would_have_by_itself(
    stub: Any, kit: Any, tmp_path: Path
) -> None:
    stub.program.write_text(
        f"#!/bin/sh\ngrep SigIgn /proc/self/status >{tmp_path}/signals\n"
        f"tr '\\0' '\\n' </proc/$$/environ >{tmp_path}/environ\n"
    )
    agent = stub.agent()
    runner = stub.runner(agent)
    given = set(runner.environment("", tmp_path))
    await kit.events_of(runner, agent)
    await runner.aclose()
    ignored = int((tmp_path / "signals").read_text().split()[1], 16)
    assert ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0
    assert {line.partition("=")[0] for line in (tmp_path / "environ").read_text().splitlines()} == given
