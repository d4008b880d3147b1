"""docs/reference/json.md has every key that `--json` prints, and the commands print every key of the page."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from runtime import layout
from runtime.cli.ask_view import Begun, Doing, Ended, JsonView, Partial
from runtime.cli.failures import INTERRUPTION, told
from runtime.cli.log_lines import Line, as_json
from runtime.cli.main import main
from runtime.errors import ServiceUnreachable
from runtime.turn.events import Answer, Cause, Failed, Snapshot, Step, Usage
from runtime.turn.once import run_once
from tests.harness.fake_docker import FakeDocker, container

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.unit.cli.conftest import Checkout

REPO = Path(__file__).resolve().parents[3]
PAGE = (REPO / "docs/reference/json.md").read_text()
SECTIONS = {part.split("\n", 1)[0]: part for part in PAGE.split("\n## ")}
ROW = re.compile(r"^\| `([^`]+)` \| (.+?) \|$", re.MULTILINE)
INTRODUCTION = PAGE.split("\n## ", maxsplit=1)[0]
ERROR, PROBLEM = (
    {key for key, _ in ROW.findall(part)}
    for part in (INTRODUCTION.split("A problem, in")[0], INTRODUCTION.split("A problem, in")[1])
)
READY = {"service": "x", "reason": None, "running": 0, "loaded_at": 1.0}


def keys(command: str) -> set[str]:
    """Return the dotted keys of a command's one object."""
    return {key for key, _ in ROW.findall(SECTIONS[command])}


def event_keys(command: str) -> dict[str, set[str]]:
    """Return the keys of each of a command's lines."""
    return {
        event: set(re.findall("`([^`]+)`", words))
        for event, words in ROW.findall(SECTIONS[command])
        if words.startswith("`")
    }


def usage_keys() -> set[str]:
    return {key for key, words in ROW.findall(SECTIONS["turn"]) if not words.startswith("`")}


def compare(value: dict[str, Any], page: set[str], prefix: str = "") -> None:
    """Compare the keys of an object, and of those in it that the page has keys of, exactly."""
    here = {key.removeprefix(prefix) for key in page if key.startswith(prefix)}
    assert set(value) == {key for key in here if not re.search(r"[.\[]", key)}, prefix
    for key, inner in value.items():
        place = f"{prefix}{key}"
        if key == "error":
            assert inner is None or set(inner) == ERROR
        elif key in {"problems", "warnings"}:
            assert all(set(one) == PROBLEM for one in inner)
        elif isinstance(inner, dict) and any(name.startswith(f"{place}.") for name in page):
            compare(inner, page, f"{place}.")
        elif isinstance(inner, list) and any(name.startswith(f"{place}[].") for name in page):
            for one in inner:
                compare(one, page, f"{place}[].")


def printed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def docker(tmp_path: Path) -> FakeDocker:
    """A client of a stack that is well, with ada's files in `tmp_path`."""
    shutil.copytree(REPO / "instances/ada", tmp_path / "instances/ada")
    fake = FakeDocker(tmp_path / "host")
    fake.stack(
        container("modelproxy"),
        container("spawner", mounts={str(layout.INSTANCES): str(tmp_path / "instances")}),
        container("front", environ={"GATEHOUSE_AGENT": "ada"}),
        container("ingress", port=9),
    )
    served = {"digest": "d", "pack": "p", "changed": True}
    for name in ("front", "modelproxy"):
        fake.answer(f"runtime.health {name} status", stdout=json.dumps(READY))
    fake.answer("runtime.health spawner", stdout=json.dumps({**READY, "agents": {"ada": served}}))
    fake.answer("runtime.health front reload", stdout=json.dumps({"agent": "ada", "changed": True}))
    fake.answer("logs", "id-of-front", stderr='2026-05-01T12:00:03Z {"event": "turn"}\n')
    return fake


def run(docker: FakeDocker, *words: str, **environ: str) -> int:
    return main(words, {**docker.environ, "GATEHOUSE_ROOT": str(docker.folder.parent), **environ})


def test_the_page_has_a_section_for_every_command_with_json_and_for_no_other() -> None:
    title = PAGE.split("\n", 1)[0]
    assert set(SECTIONS) - {title} == {"check", "ask", "turn", "logs", "status", "reload", "forget"}
    assert set(ERROR) == set(told(ServiceUnreachable("x"))) == set(INTERRUPTION)


def test_check_prints_the_keys_of_the_page(checkout: Checkout) -> None:
    (checkout.instances / "bob").mkdir()
    (checkout.instances / "bob/agent.yaml").write_text("name: Bob\n")
    done = checkout.run("check", "--json", "ada", "bob")
    value = json.loads(done.out)
    assert [one["ok"] for one in value["instances"]] == [True, False]
    assert value["instances"][1]["problems"]
    compare(value, keys("check"))


@pytest.mark.parametrize("command", ["status", "reload"])
def test_an_object_has_the_same_keys_in_success_and_in_failure(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    run(docker, command, "--json")
    (well,) = printed(capsys)
    compare(well, keys(command))
    assert well["agent"] == "ada"
    docker.stack()
    assert run(docker, command, "--json") == 8
    (gone,) = printed(capsys)
    compare(gone, keys(command))
    assert gone["error"]["code"] == "service-unreachable"
    assert run(docker, command, "--json", PATH="") == 4
    (unable,) = printed(capsys)
    compare(unable, keys(command))
    assert unable["error"]["code"] == "engine-unavailable"


def test_a_reload_of_wrong_files_has_the_same_keys_and_its_problems(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    with (docker.folder.parent / "instances/ada/agent.yaml").open("a") as file:
        file.write("\nnonsense: 1\n")
    assert run(docker, "reload", "--json") == 3
    (value,) = printed(capsys)
    compare(value, keys("reload"))
    assert (value["ok"], value["step"], value["error"]["code"]) == (False, "check", "config-invalid")
    assert value["problems"]


def test_forget_prints_the_same_keys_in_success_and_in_failure(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {"contexts": 1, "tasks": 2, "cancelled": 0}
    docker.answer("runtime.health front forget", stdout=json.dumps(counts))
    assert run(docker, "forget", "--all", "--yes", "--json") == 0
    assert run(docker, "forget", "--all", "--json") == 2
    docker.stack()
    assert run(docker, "forget", "--all", "--yes", "--json") == 8
    assert run(docker, "forget", "--all", "--yes", "--json", PATH="") == 4
    lines = printed(capsys)
    for line in lines:
        compare(line, keys("forget"))
    assert lines[0] == {"ok": True, **counts, "error": None}
    assert [one["error"]["code"] for one in lines[1:]] == [
        "usage",
        "service-unreachable",
        "engine-unavailable",
    ]
    assert {one[key] for one in lines[1:] for key in counts} == {None}


@pytest.mark.parametrize("command", ["status", "reload"])
def test_an_interrupted_look_has_the_same_keys(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("runtime.cli.engine.Engine.containers", interrupted)
    assert run(docker, command, "--json") == 130
    (value,) = printed(capsys)
    compare(value, keys(command))
    assert value["error"]["code"] == "interrupted"


def test_ask_prints_the_keys_of_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    ends = (Ended("completed", "Hello", "", "t", "c"), Ended("completed", "Busy.", "busy", "t", "c"))
    for end in ends:
        view = JsonView()
        for event in (Begun("t", "c"), Doing("Reading"), Partial("Hel"), end):
            view.show(event)
        view.failed(told(ServiceUnreachable("gone")))
    alone = JsonView()
    alone.show(Begun("t", "c"))
    alone.failed(INTERRUPTION)
    lines = printed(capsys)
    assert [one["event"] for one in lines if "error" in one] == ["answer", "failed", "failed"]
    page = event_keys("ask")
    assert {one["event"] for one in lines} == set(page)
    assert [one for one in lines if set(one) != page[one["event"]]] == []
    assert all(one["error"] is None or set(one["error"]) == ERROR for one in lines if "error" in one)
    assert (lines[-1]["text"], lines[-1]["task"], lines[-1]["context"]) == (None, "t", "c")


@pytest.mark.parametrize(
    ("words", "code", "name"),
    [
        (("--url", "http://127.0.0.1:9", "hi"), 8, "service-unreachable"),
        (("--context", "\x1b", "hi"), 2, "usage"),
        ((" ",), 2, "usage"),
    ],
)
def test_a_question_that_was_never_asked_is_a_failed_with_the_keys_of_the_page(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, name: str
) -> None:
    assert main(["ask", "--json", *words], {}) == code
    (value,) = printed(capsys)
    assert set(value) == event_keys("ask")["failed"]
    assert value["error"]["code"] == name


class Runner:
    """Runs a turn of given events."""

    def __init__(self, *events: Step | Snapshot | Answer | Failed) -> None:
        self.events = events

    async def run(self, _plan: Any) -> AsyncGenerator[Step | Snapshot | Answer | Failed]:
        for event in self.events:
            yield event


def ndjson(checkout_root: Path, *events: Step | Snapshot | Answer | Failed) -> str:
    """Return what `runtime.turn.once` prints of these events."""
    from runtime.agents.instance import load_instance

    agent = load_instance(checkout_root, "ada", {})
    lines: list[str] = []
    asyncio.run(run_once(agent, Runner(*events), "hi", lines.append))
    return "".join(lines)


@pytest.mark.parametrize(
    ("end", "code"), [(Answer("Hello", Usage()), 0), (Failed(Cause.MODEL, "403", Usage()), 1)]
)
def test_turn_prints_the_keys_of_the_page(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], end: Answer | Failed, code: int
) -> None:
    said = ndjson(docker.folder.parent, Step("Read", "Reading faq.md"), Snapshot("Hello there. " * 40), end)
    docker.answer("runtime.turn.once", stdout=said, code=code)
    assert run(docker, "turn", "--json", "ada", "hi") == code
    lines = printed(capsys)
    page = event_keys("turn")
    assert [one["event"] for one in lines[:-1]] == ["planned", "step", "snapshot"]
    assert [one for one in lines if set(one) != page[one["event"]]] == []
    assert set(lines[-1]["usage"]) == usage_keys()
    assert code == 0 or (lines[-1]["cause"], lines[-1]["error"]["code"]) == ("model", "unexpected")


def test_a_turn_without_a_stack_or_a_docker_is_a_failed_with_the_keys_of_the_page(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(docker, "turn", "--json", "ada", "hi", PATH="") == 4
    docker.stack()
    assert run(docker, "turn", "--json", "ada", "hi") == 8
    assert run(docker, "turn", "--json", "../ada", "hi") == 2
    lines = printed(capsys)
    assert [set(one) for one in lines] == [event_keys("turn")["failed"]] * 3
    assert [one["error"]["code"] for one in lines] == ["engine-unavailable", "service-unreachable", "usage"]
    assert {value for one in lines for key, value in one.items() if key not in {"event", "error"}} == {None}


def test_an_interrupted_turn_is_a_failed_with_the_keys_of_the_page(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("runtime.cli.turn._run", interrupted)
    assert run(docker, "turn", "--json", "ada", "hi") == 130
    (value,) = printed(capsys)
    assert (set(value), value["error"]["code"]) == (event_keys("turn")["failed"], "interrupted")


def test_logs_without_a_stack_is_a_failed_with_the_keys_of_the_page(
    docker: FakeDocker, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(docker, "logs", "--json", PATH=os.devnull) == 4
    assert run(docker, "logs", "--json", "nobody") == 2
    docker.stack()
    assert run(docker, "logs", "--json") == 8
    lines = printed(capsys)
    assert [set(one) for one in lines] == [event_keys("logs")["failed"]] * 3
    assert [one["error"]["code"] for one in lines] == ["engine-unavailable", "usage", "service-unreachable"]


def test_a_line_of_a_log_that_is_no_object_is_wrapped_in_the_keys_of_the_page() -> None:
    assert set(json.loads(as_json(Line(0, "front", "plain")))) == event_keys("logs")["wrapped"]
