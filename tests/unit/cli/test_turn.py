"""`turn` against a docker client that plays answers, and its process against real programs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runtime.cli.main import main
from runtime.cli.turn import STOPPER
from runtime.cli.turn_process import Program
from runtime.errors import EngineUnavailable, GatehouseError
from tests.harness.fake_docker import FakeDocker, container

if TYPE_CHECKING:
    from collections.abc import Iterator

REPO = Path(__file__).resolve().parents[3]
USAGE = {"requests": 3, "input_tokens": 12345, "output_tokens": 67, "refused": 0, "request_bytes": 84512}
LAST = {"text": "On Tuesdays.", "seconds": 1.02, "first_text_seconds": 0.8, "usage": USAGE}
EVENTS = (
    {"event": "planned", "prompt_bytes": 1312},
    {"event": "step", "tool": "Grep", "label": "Searching", "seconds": 0.45},
    {"event": "step", "tool": "Read", "label": "Reading \x1b[31mfaq.md", "seconds": 0.5},
    {"event": "snapshot", "text": "On", "seconds": 0.8},
    {"event": "snapshot", "text": "On Tues", "seconds": 0.9},
    {"event": "answer", **LAST},
)
ENOUGH_SECONDS = 30.0


def ndjson(*events: dict[str, Any]) -> str:
    return "".join(json.dumps(event) + "\n" for event in events)


@pytest.fixture
def docker(tmp_path: Path) -> FakeDocker:
    fake = FakeDocker(tmp_path / "host")
    fake.stack(container("front"), container("spawner"))
    return fake


def test_a_turn_is_shown_with_its_times_and_what_it_took(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer("runtime.turn.once", stdout=ndjson(*EVENTS))
    assert main(["turn", "ada", "When is it?"], docker.environ) == 0
    shown = capsys.readouterr()
    assert shown.out == "On Tuesdays.\n"
    assert shown.err.splitlines() == [
        "    0.00 s  asked with a prompt of 1,312 bytes",
        "    0.45 s  Searching (Grep)",
        "    0.50 s  Reading [31mfaq.md (Read)",
        "    0.80 s  first text",
        "    1.02 s  answer of 12 characters",
        "",
        "",
        "1.02 s in all, first text after 0.80 s",
        "3 requests to the model (0 refused), 12,345 tokens in, 67 out",
        "84,512 bytes of requests (82.5 KB)",
    ]


def test_the_text_goes_to_stdin_where_no_other_user_can_read_it(docker: FakeDocker) -> None:
    docker.answer("runtime.turn.once", stdout=ndjson(*EVENTS))
    assert main(["turn", "ada", "a", "private", "question"], docker.environ) == 0
    ((arguments, stdin),) = docker.calls("runtime.turn.once")
    assert stdin == "a private question"
    assert "private" not in " ".join(arguments)
    assert arguments[-3:] == ["runtime.turn.once", "--agent", "ada"]
    assert "id-of-front" in arguments


def test_json_passes_the_events_on_in_ascii(docker: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    docker.answer("runtime.turn.once", stdout=ndjson(*EVENTS))
    assert main(["turn", "ada", "--json", "When?"], docker.environ) == 0
    shown = capsys.readouterr()
    assert [json.loads(line) for line in shown.out.splitlines()] == list(EVENTS)
    assert all(line.isascii() and line.isprintable() for line in shown.out.splitlines())


@pytest.mark.parametrize(("code", "name"), [(1, "unexpected"), (8, "service-unreachable")])
def test_a_failed_turn_names_its_cause_its_detail_and_what_a_visitor_reads(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], code: int, name: str
) -> None:
    failed = {
        **LAST,
        "event": "failed",
        "cause": "model",
        "detail": "403 grammar\x1b[2J",
        "message": "Sorry.",
    }
    docker.answer("runtime.turn.once", stdout=ndjson(EVENTS[0], failed), code=code)
    assert main(["turn", "ada", "hi"], docker.environ) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[-1] == (
        f"gatehouse: {name}: the turn failed: model: 403 grammar[2J (a visitor reads: Sorry)"
    )
    assert "84,512 bytes of requests" in shown.err


@pytest.mark.parametrize("mend", [None, "give a number"])
def test_what_is_wrong_with_the_instance_is_said_by_the_program_itself(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], mend: str | None
) -> None:
    sentence = "instances/ada/agent.yaml:3:1: port: is no port"
    said = f"gatehouse: config-invalid: {sentence}" + (f" ({mend})\n" if mend else "\n")
    docker.answer("runtime.turn.once", stderr=said, code=3)
    assert main(["turn", "ada", "--json", "hi"], docker.environ) == 3
    shown = capsys.readouterr()
    assert shown.err == said
    told = json.loads(shown.out)
    assert told["error"] == {"code": "config-invalid", "message": sentence, "mend": mend}
    assert (told["cause"], told["detail"]) == (None, None)


def test_a_stack_that_is_older_than_the_checkout_is_named(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer("runtime.turn.once", stderr="python: No module named runtime.turn.once\n", code=1)
    assert main(["turn", "ada", "hi"], docker.environ) == 5
    assert "older than this checkout (./gatehouse up)" in capsys.readouterr().err


@pytest.mark.parametrize("printed", ["surprise\n", "[1]\n", '{"event": 5}\n', '{"no": "event"}\n'])
def test_a_program_that_prints_something_else_is_not_believed(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], printed: str
) -> None:
    docker.answer("runtime.turn.once", stdout=printed)
    assert main(["turn", "ada", "hi"], docker.environ) == 1
    assert "printed something that is no event" in capsys.readouterr().err


def test_a_program_that_ends_without_an_answer_is_a_failure(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer("runtime.turn.once", stdout=ndjson(EVENTS[0]))
    assert main(["turn", "ada", "--json", "hi"], docker.environ) == 1
    shown = capsys.readouterr()
    assert json.loads(shown.out.splitlines()[-1])["event"] == "failed"
    assert "ended with 0 without an answer" in shown.err


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["ada", "hi", "--model", "opus"], "--model needs --sandbox none"),
        (["ada", "hi", "--sandbox", "none", "--model", "--debug"], "--model"),
        (["ada", "hi", "--sandbox", "vm"], "vm"),
        (["../x", "hi"], "'../x' is no name of an instance (use lower-case"),
        (["-x", "hi"], "-x"),
        (["ada", " "], "empty"),
        (["ada"], "TEXT"),
    ],
)
def test_a_wrong_command_line_is_a_usage_error(
    arguments: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["turn", *arguments], {"PATH": ""}) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("gatehouse: usage: ")
    assert part in shown


def test_a_binary_of_this_host_is_refused_where_the_turn_would_not_run_it(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["turn", "ada", "hi"], {**docker.environ, "CLAUDE_BINARY": "/x"}) == 2
    assert capsys.readouterr().err.startswith(
        "gatehouse: usage: CLAUDE_BINARY is set, but a turn in the sandb"
    )
    assert docker.calls() == []


def test_an_override_that_the_stack_was_started_without_is_told(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.stack(container("front", environ={"CLAUDE_MODEL": "opus", "AGENT_HOST": "a.example"}))
    docker.answer("runtime.turn.once", stdout=ndjson(*EVENTS))
    here = {**docker.environ, "CLAUDE_MODEL": "haiku", "AGENT_HOST": "a.example"}
    assert main(["turn", "ada", "hi"], here) == 0
    assert capsys.readouterr().err.startswith("not taken over before ./gatehouse up: CLAUDE_MODEL\n")


def test_another_instance_than_the_stack_serves_is_named_with_the_mend(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.stack(container("front", environ={"GATEHOUSE_AGENT": "begona"}))
    assert main(["turn", "ada", "hi"], docker.environ) == 8
    words = "the stack serves begona, not ada (GATEHOUSE_AGENT=ada ./gatehouse up)"
    assert words in capsys.readouterr().err


def test_a_tool_that_failed_is_shown_and_its_numbers_may_be_broken(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    failed = {"event": "tool-failed", "tool": "hours", "detail": "no\x1b[2J file", "seconds": 0.5}
    broken = {"event": "answer", "text": "x", "seconds": 10**400, "usage": {"request_bytes": 10**400}}
    docker.answer("runtime.turn.once", stdout=ndjson(failed, broken))
    assert main(["turn", "ada", "hi"], docker.environ) == 0
    assert "    0.50 s  Using hours: failed: no[2J file\n" in capsys.readouterr().err
    assert main(["turn", "ada", "--json", "hi"], docker.environ) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0]) == failed


def test_a_failure_after_an_answer_is_the_last_line(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    docker.answer("runtime.turn.once", stdout=ndjson(EVENTS[-1]), code=9)
    assert main(["turn", "ada", "--json", "hi"], docker.environ) == 1
    shown = capsys.readouterr()
    assert [json.loads(line)["event"] for line in shown.out.splitlines()] == ["answer", "failed"]
    assert "ended with 9 after an answer" in shown.err


def test_without_a_stack_the_mend_is_up(docker: FakeDocker, capsys: pytest.CaptureFixture[str]) -> None:
    docker.stack()
    assert main(["turn", "ada", "hi"], docker.environ) == 8
    assert "no stack named gatehouse has a front (./gatehouse up)" in capsys.readouterr().err


def test_without_a_sandbox_the_program_of_this_host_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python = tmp_path / "python"
    python.write_text(
        f"#!{sys.executable}\nimport json, sys\n"
        "print(json.dumps({'event': 'answer', 'text': ' '.join(sys.argv[1:]) + sys.stdin.read()}))\n"
    )
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    environ = {"PATH": os.environ["PATH"], "GATEHOUSE_ROOT": str(tmp_path)}
    assert main(["turn", "ada", "hi", "--sandbox", "none", "--model", "haiku"], environ) == 0
    assert capsys.readouterr().out == (
        f"-m runtime.unsandboxed --agent ada --root {tmp_path} --model haikuhi\n"
    )


async def test_an_interrupt_ends_the_program_in_the_container_too(docker: FakeDocker) -> None:
    docker.answer("runtime.turn.once", stdout=ndjson(EVENTS[0]), hangs=True)
    docker.answer("import os, signal")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "runtime.cli", "turn", "ada", "hi",
        env={**docker.environ, "PYTHONPATH": str(REPO)}, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    assert process.stderr is not None
    assert b"asked with" in await asyncio.wait_for(process.stderr.readline(), ENOUGH_SECONDS)
    process.send_signal(signal.SIGINT)
    _, err = await asyncio.wait_for(process.communicate(), ENOUGH_SECONDS)
    assert process.returncode == 130
    assert b"interrupted; the turn was ended" in err
    assert b"Traceback" not in err
    ((started, _),) = docker.calls("runtime.turn.once")
    ((stopped, _),) = docker.calls("import os, signal")
    mark = started[started.index("--env") + 1]
    assert stopped[-1] == mark
    assert mark.startswith("GATEHOUSE_OPERATOR_TURN=")


@pytest.fixture
def sleepers() -> Iterator[dict[str, subprocess.Popen[bytes]]]:
    """Two programs that wait for a signal, marked with different words."""
    wait = "import signal, sys; print('up', flush=True); signal.pause()"
    started = {
        mark: subprocess.Popen([sys.executable, "-c", wait], env={"MARK": mark}, stdout=subprocess.PIPE)
        for mark in ("one", "another")
    }
    for process in started.values():
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
    yield started
    for process in started.values():
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.communicate()


def test_the_stopper_ends_the_marked_program_and_no_other(
    sleepers: dict[str, subprocess.Popen[bytes]],
) -> None:
    subprocess.run([sys.executable, "-c", STOPPER, "MARK=one"], check=True, env={"MARK": "one"}, timeout=30)
    assert sleepers["one"].wait(timeout=30) == -signal.SIGTERM
    assert sleepers["another"].poll() is None


# --- the process ----------------------------------------------------------------------------------------


def program(source: str, tmp_path: Path) -> Program:
    return Program([sys.executable, "-c", source], {"PATH": os.environ["PATH"]}, tmp_path)


async def events_of(run: Program, text: str = "hi") -> list[dict[str, Any]]:
    async with contextlib.aclosing(run.events(text)) as events:
        return [event async for event in events]


async def test_a_program_that_reads_no_stdin_is_no_failure(tmp_path: Path) -> None:
    run = program('print(\'{"event": "answer"}\')', tmp_path)
    assert await events_of(run, "x" * 900_000) == [{"event": "answer"}]
    assert run.code == 0


async def test_a_line_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.cli.turn_process.LINE_MAX_BYTES", 4096)
    run = program("import sys\nwhile True: sys.stdout.write('x' * 4096)", tmp_path)
    with pytest.raises(GatehouseError, match="a line over 4096 bytes"):
        await events_of(run)


async def test_what_it_says_on_stderr_is_passed_on_without_what_a_terminal_obeys(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = 'loud\x1b[2J banner\n{"event": "asked", "seconds": 0.1, "level": "info"}\n'
    run = program(f"import sys; sys.stderr.write({said!r})", tmp_path)
    assert await events_of(run) == []
    assert capsys.readouterr().err == "loud[2J banner\nlog: asked seconds=0.100\n"
    assert run.complaint == "loud[2J banner"


async def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    run = Program([str(tmp_path / "nothing")], {}, tmp_path)
    with pytest.raises(EngineUnavailable, match="nothing cannot be started"):
        await events_of(run)


async def test_whoever_stops_listening_ends_the_program(tmp_path: Path) -> None:
    stopped: list[bool] = []
    source = 'import signal\nprint(\'{"event": "planned"}\', flush=True)\nsignal.pause()'
    run = program(source, tmp_path)
    run.stop = lambda: stopped.append(True)
    events = run.events("hi")
    assert await anext(events) == {"event": "planned"}
    await events.aclose()
    assert stopped == [True]
