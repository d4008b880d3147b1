"""The talking commands against a real stack: ask, turn, logs, status and reload, each as its own process.

The stack of these tests has its own copy of the instances, so that they can be changed under it; an overlay
of compose mounts the copy in the place of the checkout's.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runtime.agents.definition import Messages
from tests.harness.stack import REPO, Stack, answer_of, eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.engine

WORDS = "Office hours are as the file says."
NOTICE = f"\n\n{Messages().notice}"  # after the first answer of a conversation
SECONDS = 90


@dataclass
class OwnInstances(Stack):
    """A stack of another checkout, which has instances of its own and all else from this one."""

    checkout: Path = field(default_factory=Path)

    def compose(self, *arguments: str, check: bool = True, seconds: float = 180) -> str:
        here = ("--project-directory", str(self.checkout))
        return super().compose(*here, *arguments, check=check, seconds=seconds)

    @property
    def environ(self) -> dict[str, str]:
        return {
            **os.environ,
            "AGENT_PORT": str(self.port),
            "COMPOSE_PROJECT_NAME": self.project,
            "GATEHOUSE_ROOT": str(self.checkout),
            "PYTHONPATH": str(REPO),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "runtime.cli", *arguments],
            env=self.environ,
            cwd=self.checkout,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def cli(self, *arguments: str, stdin: str = "", code: int = 0) -> tuple[str, str]:
        """Run a command, check its exit code, and return its stdout and stderr."""
        process = self.start(*arguments)
        out, err = process.communicate(stdin, timeout=SECONDS)
        assert process.returncode == code, (process.returncode, out, err)
        assert "Traceback" not in err
        return out, err

    def is_ready(self) -> bool:
        process = self.start("status")
        process.communicate(timeout=SECONDS)
        return process.returncode == 0

    def status(self, *, code: int = 0) -> dict[str, Any]:
        return dict(json.loads(self.cli("status", "--json", code=code)[0]))


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnInstances]:
    checkout = tmp_path_factory.mktemp("checkout")
    shutil.copytree(REPO / "instances", checkout / "instances")
    for path in checkout.rglob("*"):
        path.chmod(0o755 if path.is_dir() else 0o644)
    for name in ("compose", "tests"):
        (checkout / name).symlink_to(REPO / name)
    with OwnInstances(checkout=checkout) as running:
        yield running


@pytest.fixture
def ada(own: OwnInstances) -> Iterator[Path]:
    """The folder of the stack's instance; afterwards it is as it was, and loaded so."""
    folder = own.checkout / "instances" / "ada"
    kept = own.checkout / "kept"
    shutil.copytree(folder, kept)
    yield folder
    for path in kept.rglob("*"):
        if path.is_file():
            shutil.copyfile(path, folder / path.relative_to(kept))
    shutil.rmtree(kept)
    own.cli("reload")
    own.nothing_left()


def test_a_question_is_answered_and_its_context_goes_on(own: OwnInstances) -> None:
    first = own.script({"text": "She was born in 1815."})
    out, err = own.cli("ask", f"When was she born? {first}")
    assert out == f"She was born in 1815.{NOTICE}\n"
    context = err.splitlines()[-1].split("--context ")[1].split()[0]
    second = own.script({"text": "As I said: 1815."})
    out, _ = own.cli("ask", "--context", context, "-", stdin=f"Say that again {second}\n")
    assert out == "As I said: 1815.\n"
    prompt = json.dumps(own.requests(second)[0]["body"]["messages"])
    assert "When was she born?" in prompt


def test_a_question_as_json_ends_with_the_whole_answer(own: OwnInstances) -> None:
    marker = own.script(
        {"tool_use": {"name": "Read", "input": {"file_path": "/grounding/faq.md"}}}, {"text": WORDS}
    )
    out, _ = own.cli("ask", "--json", f"When? {marker}")
    events = [json.loads(line) for line in out.splitlines()]
    assert events[0]["event"] == "task"
    assert "Reading faq.md" in [event.get("text") for event in events if event["event"] == "step"]
    last = events[-1]
    assert (last["event"], last["text"], last["context"]) == ("answer", WORDS + NOTICE, events[0]["context"])


def test_an_answer_that_could_not_be_given_is_a_failure(own: OwnInstances) -> None:
    marker = own.script({"status": 500})
    out, err = own.cli("ask", f"Hello {marker}", code=1)
    assert out.startswith("Something went wrong on my side.")
    assert "the agent could not answer: model" in err


def test_an_interrupted_question_leaves_no_container(own: OwnInstances) -> None:
    marker = own.script({"hang": True})
    process = own.start("ask", f"Take your time {marker}")
    eventually(lambda: own.requests(marker), seconds=30, what="the model being asked")
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (130, "")
    assert "the agent has ended the task" in err
    own.nothing_left()


def test_a_turn_is_shown_with_its_steps_and_what_it_took(own: OwnInstances) -> None:
    marker = own.script(
        {"tool_use": {"name": "Read", "input": {"file_path": "/grounding/faq.md"}}}, {"text": WORDS}
    )
    out, err = own.cli("turn", "ada", f"When? {marker}")
    assert out == f"{WORDS}\n"
    assert "Reading faq.md (Read)" in err
    assert "2 requests to the model (0 refused)" in err
    last = json.loads(
        own.cli("turn", "ada", "--json", f"When? {own.script({'text': WORDS})}")[0].splitlines()[-1]
    )
    usage = last["usage"]
    assert (usage["requests"], usage["refused"]) == (1, 0)
    assert usage["request_bytes"] > 1000
    own.nothing_left()


def test_a_turn_that_fails_names_its_cause(own: OwnInstances) -> None:
    out, err = own.cli("turn", "ada", f"Hello {own.script({'status': 500})}", code=1)
    assert out == ""
    assert "the turn failed: model" in err
    assert "a visitor reads: Something went wrong on my side" in err


def test_an_interrupted_turn_leaves_no_container(own: OwnInstances) -> None:
    marker = own.script({"hang": True})
    process = own.start("turn", "ada", f"Take your time {marker}")
    eventually(lambda: own.requests(marker), seconds=30, what="the model being asked")
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert "interrupted; the turn was ended" in err
    own.nothing_left()


def test_the_log_shows_a_turn_at_a_glance_and_as_it_is(own: OwnInstances) -> None:
    own.cli("ask", f"Hello {own.script({'text': WORDS})}")

    def newest() -> str:
        shown = own.cli("logs", "front", "--tail", "1")[0]
        return shown if "turn answered in" in shown else ""

    line = eventually(newest, what="the turn's line")
    assert "1 request" in line
    raw = [json.loads(one) for one in own.cli("logs", "front", "--json", "--tail", "all")[0].splitlines()]
    assert raw[-1]["event"] == "turn"
    times = [one.split("  ")[0][:19] for one in own.cli("logs", "--tail", "all")[0].splitlines()]
    assert times == sorted(times)
    assert {"front", "spawner", "modelproxy", "ingress"} <= {
        one.split()[2] for one in own.cli("logs", "--tail", "all")[0].splitlines()
    }


def test_following_the_log_shows_the_next_turn(own: OwnInstances) -> None:
    process = own.start("logs", "front", "--follow", "--tail", "1")
    assert process.stdout is not None
    assert process.stdout.readline()
    own.cli("ask", f"Hello {own.script({'text': WORDS})}")
    assert "turn answered in" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=SECONDS)
    assert process.returncode == 130


def test_the_status_of_a_stack_that_is_well_is_ready(own: OwnInstances, ada: Path) -> None:
    own.cli("ask", f"Hello {own.script({'text': WORDS})}")
    told = own.status()
    wanted = {"ready": True, "agent": "ada", "model": "live", "port": own.port, "stale": False, "running": 0}
    assert {key: told[key] for key in wanted} == wanted
    assert {one["state"] for one in told["services"]} == {"healthy"}
    assert told["newest_turn"]["outcome"] == "answered"
    assert told["daily_limit_usd"] > told["spent_today_usd"] > 0
    screen = own.cli("status")[0]
    assert f"http://127.0.0.1:{own.port}/" in screen
    assert "as loaded" in screen
    (ada / "grounding" / "faq.md").write_text("# Changed\n")
    assert own.status()["stale"] is True


def test_a_changed_document_is_answered_from_while_a_turn_runs_on_the_old_one(
    own: OwnInstances, ada: Path
) -> None:
    read = {"tool_use": {"name": "Read", "input": {"file_path": "/grounding/faq.md"}}}
    slow = own.script({"text": "First, ", "hold": True})
    before = own.status()["pack"]
    running = own.start("ask", f"Tell me {slow}")
    eventually(lambda: own.requests(slow), seconds=30, what="the model being asked")
    (ada / "grounding" / "faq.md").write_text("# The office moved to Mars in 2099.\n")
    out, _ = own.cli("reload")
    after = own.status()["pack"]
    assert out == f"ada: pack {before[:12]} -> {after[:12]}\n"
    assert running.poll() is None
    marker = own.script(read, {"text": WORDS})
    own.cli("ask", f"Where is it? {marker}")
    assert "moved to Mars" in json.dumps(own.requests(marker)[-1]["body"]["messages"])
    own.release(slow)
    first, _ = running.communicate(timeout=SECONDS)
    assert (running.returncode, first) == (0, f"First,{NOTICE}\n")
    assert own.cli("reload")[0] == f"ada: nothing changed (pack {after[:12]})\n"


def test_a_changed_card_is_served_and_a_conversation_goes_on(own: OwnInstances, ada: Path) -> None:
    marker = own.script({"text": "Noted."})
    task = own.ask(f"My word is blue {marker}")
    path = ada / "agent.yaml"
    lines = path.read_text().splitlines()
    path.write_text(
        "\n".join("name: Ada the Second" if one.startswith("name:") else one for one in lines) + "\n"
    )
    out, _ = own.cli("reload")
    assert "definition" in out
    assert own.cli("status")[0].startswith("Ada the Second (ada): ready")
    again = own.script({"text": "Blue."})
    assert answer_of(own.ask(f"Which word? {again}", task["contextId"])) == "Blue."
    assert "My word is blue" in json.dumps(own.requests(again)[0]["body"]["messages"])


def test_a_broken_file_leaves_the_old_one_serving(own: OwnInstances, ada: Path) -> None:
    before = own.status()
    path = ada / "agent.yaml"
    path.write_text(path.read_text() + "\nnonsense: 1\nmax_turns: many\n")
    out, err = own.cli("reload", code=3)
    assert out == ""
    assert "nonsense" in err
    assert "max_turns" in err
    told = own.status()
    assert told["ready"] is True
    assert told["stale"] is True
    assert (told["pack"], told["digest"]) == (before["pack"], before["digest"])
    assert "mistakes: ./gatehouse check ada" in own.cli("status")[0]
    own.cli("ask", f"Hello {own.script({'text': WORDS})}")


def test_a_spawner_that_is_stopped_is_named_and_nothing_is_reloaded(own: OwnInstances) -> None:
    own.compose("stop", "--timeout", "10", "spawner")
    try:
        told = own.status(code=8)
        assert told["reason"].startswith("spawner: its container is exited")
        assert "spawner of the stack" in own.cli("reload", code=8)[1]
        assert "the spawner did not describe" in own.cli("turn", "ada", "Hello", code=8)[1]
    finally:
        own.compose("up", "--detach", "--wait", "--no-build", "--wait-timeout", "90")
    eventually(own.is_ready, seconds=30, what="a ready stack")
