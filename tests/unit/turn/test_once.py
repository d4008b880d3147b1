"""One turn for its author: what is told, in which order, and how it exits."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from runtime.agents.definition import AgentDefinition, Card, Grounding, Limits, Messages, Tools
from runtime.agents.instance import load_instance
from runtime.errors import UsageError
from runtime.serving import serving
from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step, ToolFailed, TurnEvent, Usage
from runtime.turn.once import main, run_once

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from starlette.requests import Request

    from runtime.turn.plan import TurnPlan

LONG = "The office hours are on Monday from two to four, and on Thursday in the morning as well. " * 2
USAGE = Usage(2, 300, 40, 1, 84_512)
USAGE_JSON = {
    "requests": 2,
    "input_tokens": 300,
    "output_tokens": 40,
    "refused": 1,
    "request_bytes": 84_512,
}


@pytest.fixture
def agent() -> AgentDefinition:
    return AgentDefinition(
        id="ada",
        card=Card("Ada", "Answers.", "1", "http://127.0.0.1:8011"),
        persona="You are Ada.",
        grounding=Grounding(Path("/nowhere")),
        tools=Tools(),
        tools_dir=Path("/nowhere"),
        model="sonnet",
        limits=Limits(timeout_seconds=7.0, max_input_chars=20),
        messages=Messages(error="It failed: {error}.", spawn_error="Overloaded.", empty_model="Nothing."),
    )


@dataclass
class Runner:
    """Plays events; `cleaned_up` says that its generator was run to its end or closed."""

    events: tuple[TurnEvent, ...]
    plans: list[TurnPlan] = field(default_factory=list)
    cleaned_up: bool = False
    told_before_cleanup: int = 0
    lines: list[str] = field(default_factory=list)

    async def run(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        self.plans.append(plan)
        try:
            for event in self.events:
                yield event
        finally:
            self.told_before_cleanup = len(self.lines)
            await asyncio.sleep(0)
            self.cleaned_up = True

    async def told(self, agent: AgentDefinition, text: str = "Office hours?") -> tuple[int, list[Any]]:
        code = await run_once(agent, self, text, self.lines.append)
        assert all(line.endswith("\n") and line.count("\n") == 1 and line.isascii() for line in self.lines)
        return code, [json.loads(line) for line in self.lines]


async def test_an_answer_is_told_with_steps_first_text_and_usage_and_is_exit_0(
    agent: AgentDefinition,
) -> None:
    runner = Runner(
        (Step("Read", "Reading hours.md"), Snapshot(LONG), Snapshot(LONG * 2), Answer(LONG + "é", USAGE))
    )
    code, told = await runner.told(agent, "  Office hours?\n")
    assert code == 0
    assert [one["event"] for one in told] == ["planned", "step", "snapshot", "snapshot", "answer"]
    (plan,) = runner.plans
    assert (plan.agent, plan.context, plan.visitor, plan.timeout_seconds) == ("ada", "local", "operator", 7.0)
    assert plan.definition == agent.digest
    assert plan.prompt == '{"from":"visitor","text":"Office hours?","now":true}'
    assert told[0] == {"event": "planned", "prompt_bytes": len(plan.prompt)}
    assert (told[1]["tool"], told[1]["label"]) == ("Read", "Reading hours.md")
    assert LONG.startswith(told[2]["text"])
    last = told[-1]
    assert last["text"] == LONG + "é"
    assert last["usage"] == USAGE_JSON
    assert last["first_text_seconds"] == told[2]["seconds"]
    assert 0 <= told[1]["seconds"] <= told[2]["seconds"] <= told[3]["seconds"] <= last["seconds"]
    assert set(last) == {"event", "text", "seconds", "first_text_seconds", "usage"}


async def test_a_tool_that_failed_is_told_between_its_step_and_the_answer(agent: AgentDefinition) -> None:
    failure = ToolFailed("mcp__grants__which", "No module named 'requests' \x1b[31m[exit code 1]")
    runner = Runner((Step("mcp__grants__which", "Using which"), failure, Answer("Monday.")))
    code, told = await runner.told(agent)
    assert code == 0
    assert [one["event"] for one in told] == ["planned", "step", "tool-failed", "answer"]
    assert set(told[2]) == {"event", "tool", "detail", "seconds"}
    assert told[2]["tool"] == "mcp__grants__which"
    assert told[2]["detail"] == "No module named 'requests' [exit code 1]"


async def test_the_last_line_comes_before_the_clean_up_and_the_return_after_it(
    agent: AgentDefinition,
) -> None:
    runner = Runner((Answer("Monday."), Answer("never told")))
    _code, told = await runner.told(agent)
    assert [one["event"] for one in told] == ["planned", "answer"]
    assert (runner.told_before_cleanup, runner.cleaned_up) == (2, True)


async def test_an_answer_without_a_snapshot_has_no_first_text(agent: AgentDefinition) -> None:
    _code, told = await Runner((Answer("Monday."),)).told(agent)
    assert told[-1]["first_text_seconds"] is None


@pytest.mark.parametrize(
    ("cause", "code", "message"),
    [
        (Cause.SPAWNER, 8, "Overloaded."),
        (Cause.ENGINE, 1, "Overloaded."),
        (Cause.CRASH, 1, "It failed: crash."),
        (Cause.EMPTY, 1, "Nothing."),
    ],
)
async def test_a_failure_tells_cause_detail_and_what_a_visitor_would_read(
    agent: AgentDefinition, cause: Cause, code: int, message: str
) -> None:
    found, told = await Runner((Snapshot(LONG), Failed(cause, "exit code 1", USAGE))).told(agent)
    assert found == code
    last = told[-1]
    assert (last["event"], last["cause"], last["detail"]) == ("failed", cause.value, "exit code 1")
    assert (last["message"], last["usage"]) == (message, USAGE_JSON)
    assert last["first_text_seconds"] is not None
    assert last["seconds"] >= last["first_text_seconds"]


async def test_what_a_visitor_would_not_be_shown_the_author_is_not_shown_either(
    agent: AgentDefinition,
) -> None:
    runner = Runner(
        (
            Step("Read", "Reading \x1b[2Jx"),
            Snapshot("short"),
            Answer("Clear \x1b[31mwords\x1b[0m sk-ant-api03-" + "x" * 40),
        )
    )
    _code, told = await runner.told(agent)
    assert [one["event"] for one in told] == [
        "planned",
        "step",
        "answer",
    ]  # nothing of "short" may be shown yet
    assert told[1]["label"] == "Reading x"
    assert "\x1b" not in told[2]["text"]
    assert "sk-ant-api03" not in told[2]["text"]


async def test_an_answer_of_which_nothing_is_left_is_a_failure(agent: AgentDefinition) -> None:
    code, told = await Runner((Answer("\u200b\u200b", USAGE),)).told(agent)
    assert (code, told[-1]["event"], told[-1]["cause"]) == (1, "failed", "empty")
    assert told[-1]["usage"] == USAGE_JSON


async def test_a_runner_without_a_terminal_event_is_a_failure_of_ours(agent: AgentDefinition) -> None:
    code, told = await Runner((Step("Read", "Reading"),)).told(agent)
    assert (code, told[-1]["event"], told[-1]["cause"]) == (1, "failed", "internal")


@pytest.mark.parametrize("text", ["", " \n", "x" * 21])
async def test_a_text_that_no_visitor_could_send_starts_nothing(agent: AgentDefinition, text: str) -> None:
    runner = Runner((Answer("x"),))
    with pytest.raises(UsageError):
        await runner.told(agent, text)
    assert (runner.plans, runner.lines) == ([], [])


async def test_a_reader_that_goes_away_ends_the_turn(agent: AgentDefinition) -> None:
    runner = Runner((Step("Read", "Reading"), Answer("x")))

    def write(_line: str) -> None:
        if runner.plans:
            raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        await run_once(agent, runner, "hi", write)
    assert runner.cleaned_up


async def test_a_turn_that_is_interrupted_cleans_up_first(agent: AgentDefinition) -> None:
    began, forever = asyncio.Event(), asyncio.Event()

    class Endless(Runner):
        async def run(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
            self.plans.append(plan)
            began.set()
            try:
                await forever.wait()
                yield Answer("never")
            finally:
                self.cleaned_up = True

    runner = Endless(())
    turn = asyncio.create_task(run_once(agent, runner, "hi", runner.lines.append))
    async with asyncio.timeout(5):
        await began.wait()
        turn.cancel()
        with pytest.raises(asyncio.CancelledError):
            await turn
    assert runner.cleaned_up


# --- the process, against a spawner that speaks the protocol -------------------------------------------


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "instances" / "test"
    (folder / "tools").mkdir(parents=True)
    (tmp_path / "grounding").mkdir()
    (tmp_path / "grounding" / "fact.md").write_text("A fact.\n")
    (folder / "agent.yaml").write_text("name: Test\ndescription: A test.\ngrounding_dir: grounding\n")
    (folder / "system-prompt.md").write_text("You are a test.\n")
    return tmp_path


class Spawner:
    """Answers one turn, or holds it until it is deleted."""

    def __init__(self, root: Path) -> None:
        self.digest = load_instance(root, "test", {}, check_sources=False).digest
        self.asked: dict[str, Any] = {}
        self.holds = False
        self.holding = asyncio.Event()
        self.deleted = asyncio.Event()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/agents/{agent}", self.agent),
                Route("/turns", self.turns, methods=["POST"]),
                Route("/turns/{turn}", self.delete, methods=["DELETE"]),
            ]
        )

    async def agent(self, _request: Request) -> Response:
        return JSONResponse({"id": "test", "digest": self.digest, "pack": "", "demo": True})

    async def delete(self, _request: Request) -> Response:
        self.deleted.set()
        return JSONResponse({})

    async def turns(self, request: Request) -> Response:
        self.asked = await request.json()
        headers = {"gatehouse-turn": "ab" * 16}
        return StreamingResponse(self.lines(), media_type="application/x-ndjson", headers=headers)

    async def lines(self) -> AsyncIterator[bytes]:
        yield b'{"event":"started","turn":"abababababababababababababababab"}\n'
        if self.holds:
            self.holding.set()
            await self.deleted.wait()
        data = json.dumps({"type": "result", "is_error": False, "result": "Grüße."})
        yield json.dumps({"event": "line", "data": data}).encode() + b"\n"
        end = {"event": "end", "reason": "exited", "exit_code": 0, "oom": False, "usage": USAGE_JSON}
        yield json.dumps(end).encode() + b"\n"


@contextlib.asynccontextmanager
async def process(
    root: Path, spawner: Spawner | None, *words: str, stdin: bytes = "Größe?\n".encode()
) -> AsyncGenerator[asyncio.subprocess.Process, None]:
    with tempfile.TemporaryDirectory() as name:
        socket = Path(name) / "spawn.sock"
        async with contextlib.AsyncExitStack() as stack:
            if spawner is not None:
                await stack.enter_async_context(serving(spawner.app(), socket, grace_seconds=1))
            started = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "runtime.turn.once", "--agent", "test", "--root", str(root)),
                *("--spawn-socket", str(socket), *words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={**os.environ, "LC_ALL": "C"},
            )
            assert started.stdin is not None
            started.stdin.write(stdin)
            started.stdin.close()
            try:
                async with asyncio.timeout(30):
                    yield started
            finally:
                if started.returncode is None:
                    started.kill()
                await started.communicate()


async def test_the_process_asks_on_stdin_and_tells_ndjson_on_stdout_in_any_locale(root: Path) -> None:
    spawner = Spawner(root)
    async with process(root, spawner) as started:
        out, err = await started.communicate()
        assert (started.returncode, err) == (0, b"")
    told = [json.loads(line) for line in out.splitlines()]
    assert [one["event"] for one in told] == ["planned", "answer"]
    assert (told[-1]["text"], told[-1]["usage"]) == ("Grüße.", USAGE_JSON)
    assert (spawner.asked["context"], spawner.asked["visitor"]) == ("local", "operator")
    assert spawner.asked["definition"] == spawner.digest
    assert json.loads(spawner.asked["prompt"])["text"] == "Größe?"


async def test_sigterm_ends_the_turn_at_the_spawner_and_is_exit_130(root: Path) -> None:
    spawner = Spawner(root)
    spawner.holds = True
    async with process(root, spawner) as started:
        await spawner.holding.wait()
        started.send_signal(signal.SIGTERM)
        out, err = await started.communicate()
        assert (started.returncode, err) == (130, b"")
    assert spawner.deleted.is_set()
    assert [json.loads(line)["event"] for line in out.splitlines()] == ["planned"]


async def test_a_spawner_that_is_not_there_is_exit_8_and_a_sentence(root: Path) -> None:
    async with process(root, None) as started:
        out, err = await started.communicate()
        assert (started.returncode, out) == (8, b"")
    assert err.startswith(b"gatehouse: service-unreachable: the spawner did not describe agent test")


async def test_files_that_the_spawner_does_not_serve_yet_are_exit_8_and_name_the_reload(root: Path) -> None:
    spawner = Spawner(root)
    (root / "instances" / "test" / "system-prompt.md").write_text("You are changed.\n")
    async with process(root, spawner) as started:
        out, err = await started.communicate()
        assert (started.returncode, out) == (8, b"")
    assert err.startswith(b"gatehouse: definition-mismatch: ")
    assert b"./gatehouse reload" in err
    assert spawner.asked == {}


@pytest.mark.parametrize(
    ("stdin", "words", "code", "said"),
    [
        (b"", (), 2, "There is no text"),
        (b"\xff\xfe", (), 2, "not UTF-8"),
        (b"x" * 5000, (), 2, "visitors may send 4000"),
        (b"x" * 1_100_000, (), 2, "longer than 1048576 bytes"),
        (b"hi", ("--agent", "nobody"), 3, "instances/nobody/agent.yaml: does not exist"),
        (b"hi", ("--agen", "test"), 2, "unrecognized arguments"),
    ],
)
def test_bad_input_is_a_sentence_and_its_exit_code_and_asks_no_spawner(
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stdin: bytes,
    words: tuple[str, ...],
    code: int,
    said: str,
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    monkeypatch.setattr("runtime.log.configure", lambda _service: None)
    socket = str(root / "nowhere.sock")
    arguments = ["--agent", "test", "--root", str(root), "--spawn-socket", socket, *words]
    try:
        found = main(arguments, {})
    except SystemExit as exit_:
        found = int(exit_.code or 0)
    assert found == code
    told = capsys.readouterr()
    assert said in told.err
    assert told.out == ""


def test_a_set_claude_binary_is_wrong_usage_and_names_its_own_mend(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.log.configure", lambda _service: None)
    assert main(["--agent", "test", "--root", str(root)], {"CLAUDE_BINARY": "/opt/claude"}) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert "CLAUDE_BINARY is set" in told.err
    assert "unset it" in told.err
