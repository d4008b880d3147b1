"""The real CLI with and without its container: the same script gives the same answer, from the same requests.

And what is not the same: around a turn without a sandbox there is nothing but the CLI's own `--restricted`.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import pytest

from runtime.ingress.forward import Forwarder
from runtime.turn.events import Answer, Step
from runtime.turn.plan import plan_turn
from runtime.unsandboxed.demo import DemoDoors
from runtime.unsandboxed.runner import SubprocessRunner

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from runtime.agents.definition import AgentDefinition

pytestmark = pytest.mark.engine

HOURS = '"""Says when."""\nimport os\nprint("Tuesday", os.environ["AGENT_CONTEXT_ID"])\n'
ANSWER = "The documents say: Tuesday, ten to twelve."
CONTEXT = "context-hmac-1"  # the conftest's own


@pytest.fixture(scope="module")
def claude(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The CLI of the turn image, outside of it."""
    path = tmp_path_factory.mktemp("cli") / "claude"
    name = f"gatehouse-test-cli-{secrets.token_hex(4)}"
    subprocess.run(
        ["docker", "create", "--name", name, "gatehouse-turn:dev"], capture_output=True, check=True
    )
    try:
        copy = ["docker", "cp", f"{name}:/usr/local/bin/claude", str(path)]
        subprocess.run(copy, capture_output=True, check=True)
        yield path
    finally:
        subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)
        path.unlink(missing_ok=True)  # 400 MB that pytest would keep


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder whose path is short enough for sockets in it."""
    folder = Path(tempfile.mkdtemp(prefix="u-"))
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
async def outside(
    cli: Any, claude: Path, scripted_model: Path, place: Path
) -> AsyncGenerator[tuple[SubprocessRunner, AgentDefinition]]:
    """A runner of the same agent, whose CLI finds the same scripted model on a loopback port."""
    (cli.instance / "tools" / "hours.py").write_text(HOURS)
    agent = dataclasses.replace(
        cli.agent(granted=("hours",)),
        persona=(cli.instance / "system-prompt.md").read_text(),
        binary=str(claude),
    )
    forwarder = Forwarder(scripted_model / "model.sock")
    await forwarder.start("127.0.0.1", 0)
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(place),
        "TMPDIR": str(place),
        "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{forwarder.port}",
        "ANTHROPIC_API_KEY": "made-up",
    }
    runner = SubprocessRunner(agent, environ, root=place)
    yield runner, agent
    await runner.aclose()
    await forwarder.stop(0.5)


async def turn(runner: SubprocessRunner, agent: AgentDefinition, text: str) -> list[Any]:
    plan = plan_turn(agent, (), text, CONTEXT, "visitor-1")
    async with contextlib.aclosing(runner.run(plan)) as events:
        return [event async for event in events]


def steps(grounding: str) -> tuple[dict[str, Any], ...]:
    return (
        {"tool_use": {"name": "Read", "input": {"file_path": f"{grounding}/hours.md"}}},
        {"tool_use": {"name": "mcp__grants__hours", "input": {"args": []}}},
        {"text": ANSWER},
    )


def seen(cli: Any, grounding: str) -> list[tuple[Any, ...]]:
    """Return what matters of each model request: tools, model, output cap, and what the tools returned."""
    found = []
    for request in cli.model.get("/requests").json():
        if request["path"] == "/v1/messages":
            body = request["body"]
            blocks = [
                block
                for message in body["messages"]
                if isinstance(message["content"], list)
                for block in message["content"]
                if block["type"] == "tool_result"
            ]
            results = json.dumps([block["content"] for block in blocks]).replace(grounding, "/grounding")
            tools = [tool["name"] for tool in body["tools"]]
            found.append((tools, body["model"], body["max_tokens"], results))
    return found


async def test_the_same_script_gives_the_same_requests_and_the_same_answer(cli: Any, outside: Any) -> None:
    runner, agent = outside
    prompt = plan_turn(agent, (), "When?", CONTEXT, "visitor-1").prompt
    cli.script(*steps("/grounding"))
    inside = await anyio.to_thread.run_sync(lambda: cli.run(prompt, agent=agent))
    requests_inside = seen(cli, "/grounding")
    grounding = str(runner.snapshot.grounding)
    cli.script(*steps(grounding))
    events = await turn(runner, agent, "When?")
    assert inside.result["result"] == ANSWER
    assert isinstance(events[-1], Answer)
    assert events[-1].text == ANSWER
    assert [event.tool for event in events if isinstance(event, Step)] == ["Read", "mcp__grants__hours"]
    assert seen(cli, grounding) == requests_inside
    assert len(requests_inside) == 3
    assert f"Tuesday {CONTEXT}" in requests_inside[-1][3]


async def test_the_demo_model_gives_the_same_answer_and_counts_the_same_requests(
    cli: Any, outside: Any, place: Path
) -> None:
    _runner, agent = outside
    environ = {"PATH": os.environ["PATH"], "HOME": str(place), "TMPDIR": str(place), "MODEL": "demo"}
    runner = SubprocessRunner(agent, environ, root=place)
    events = await turn(runner, agent, "When are office hours?")
    await runner.aclose()
    doors = place / "doors"
    doors.mkdir(0o755)
    demo = DemoDoors(doors)
    plan = plan_turn(agent, (), "When are office hours?", CONTEXT, "visitor-1")
    await demo.open("inside", plan, agent.model, 1000)
    for folder in (place, doors, doors / "inside"):
        folder.chmod(0o755)
    inside = await anyio.to_thread.run_sync(lambda: cli.run(plan.prompt, agent=agent, door=doors / "inside"))
    usage = await demo.close("inside")
    await demo.aclose()
    end = events[-1]
    assert isinstance(end, Answer)
    assert end.text == inside.result["result"].strip()
    assert "Office hours are on Tuesday" in end.text
    assert end.usage.requests == usage.requests > 1
    assert end.usage.refused == usage.refused == 0


async def test_the_file_tools_are_kept_in_the_grounding_by_the_cli_alone(cli: Any, outside: Any) -> None:
    runner, agent = outside
    cli.script({"tool_use": {"name": "Read", "input": {"file_path": "/etc/passwd"}}}, {"text": "no"})
    await turn(runner, agent, "Read it.")
    (_first, second) = seen(cli, str(runner.snapshot.grounding))
    assert "--restricted confines the file tools to the working directory" in second[3]
    assert "root:" not in second[3]


async def test_a_granted_script_reads_what_its_user_can_read(cli: Any, outside: Any, place: Path) -> None:
    before, agent = outside
    secret = place / "secret.txt"
    secret.write_text("a-file-of-the-user")
    (cli.instance / "tools" / "hours.py").write_text(f'"""Reads."""\nprint(open({str(secret)!r}).read())\n')
    runner = SubprocessRunner(agent, before._environ, root=place)
    cli.script({"tool_use": {"name": "mcp__grants__hours", "input": {"args": []}}}, {"text": "read"})
    await turn(runner, agent, "Run it.")
    await runner.aclose()
    assert "a-file-of-the-user" in seen(cli, "/nowhere")[-1][3]
