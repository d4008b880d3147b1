"""Visitors' turns end to end: the real CLI in real containers, the model played by a script."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import threading
import uuid
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import httpx2 as httpx
import pytest

from runtime import layout
from runtime.agents.instance import load_instance
from runtime.spawner.policy import Host, TurnFacts, create_body
from runtime.spawner.settings import read_settings
from tests.harness.bodies import differences, unexpected
from tests.harness.stack import REPO, Stack, answer_of, docker, eventually, message

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.engine

HANG = {"hang": True}
DEFAULTS = {
    "error": "Something went wrong on my side. Please try again in a moment.",
    "spawn_error": "I am briefly overloaded. Please try again in a moment.",
}


@pytest.fixture(autouse=True)
def _no_container_outlives_its_test(stack: Stack) -> Iterator[None]:
    yield
    stack.nothing_left()


def tool_results(request: dict[str, Any]) -> str:
    """Return what tools gave the model in one recorded request, as text."""
    return json.dumps(
        [
            block
            for turn in request["body"]["messages"]
            if isinstance(turn["content"], list)
            for block in turn["content"]
            if block.get("type") == "tool_result"
        ]
    )


def prompt_of(request: dict[str, Any]) -> str:
    return json.dumps(request["body"]["messages"], ensure_ascii=False)


def test_an_answer_comes_from_the_grounding_that_the_model_read(stack: Stack) -> None:
    marker = stack.script(
        {"tool_use": {"name": "Read", "input": {"file_path": "/grounding/office-hours.md"}}},
        {"text": "Office hours are as the file says."},
    )
    task = stack.ask(f"When are office hours? {marker}")
    assert task["status"]["state"] == "completed"
    assert answer_of(task).startswith("Office hours are as the file says.")
    first_lines = (REPO / "instances/ada/grounding/office-hours.md").read_text().splitlines()[0].lstrip("# ")
    assert first_lines in tool_results(stack.requests(marker)[-1])


def test_a_stream_shows_the_answer_building_up(stack: Stack) -> None:
    whole = "Ada wrote the notes on the Analytical Engine, and they are longer than the paper itself. " * 8
    marker = stack.script({"text": whole, "chunks": 12, "delay_seconds": 0.15})
    with stack.stream(f"Tell me about the notes {marker}") as events:
        seen = list(events)
    texts = [e["artifact"]["parts"][0]["text"] for e in seen if e["kind"] == "artifact-update"]
    assert len(texts) >= 3, seen
    assert all(later.startswith(earlier.rstrip()) for earlier, later in itertools.pairwise(texts))
    assert texts[-1].strip().startswith(whole.strip())
    assert [e["final"] for e in seen if e["kind"] == "status-update"][-1] is True
    assert seen[-1]["status"]["state"] == "completed"


def test_a_second_turn_of_a_context_knows_the_first(stack: Stack) -> None:
    context = str(uuid.uuid4())
    first = stack.script({"text": "She was born in 1815."})
    stack.ask(f"When was she born? {first}", context)
    second = stack.script({"text": "As I said: 1815."})
    task = stack.ask(f"Say that again {second}", context)
    assert task["contextId"] == context
    prompt = prompt_of(stack.requests(second)[0])
    assert "When was she born?" in prompt
    assert "She was born in 1815." in prompt


@pytest.mark.control("MEM-01")
def test_two_contexts_do_not_mix(stack: Stack) -> None:
    secret = f"blue-{uuid.uuid4().hex[:8]}"
    first, second = stack.script({"text": "Noted."}), stack.script({"text": "Nothing."})
    stack.ask(f"My word is {secret} {first}", str(uuid.uuid4()))
    stack.ask(f"What was my word? {second}", str(uuid.uuid4()))
    assert secret in prompt_of(stack.requests(first)[0])
    assert secret not in prompt_of(stack.requests(second)[0])


@pytest.mark.control("CLI-02")
def test_a_granted_tool_is_called_without_a_shell(stack: Stack) -> None:
    marker = stack.script(
        {"tool_use": {"name": "mcp__grants__opening_hours", "input": {"args": ["--day", "tuesday"]}}},
        {"text": "On Tuesday, as the tool says."},
    )
    task = stack.ask(f"Are you open on Tuesday? {marker}")
    assert answer_of(task).startswith("On Tuesday, as the tool says.")
    asked, answered = stack.requests(marker)
    assert "14:00" in tool_results(answered)
    offered = {tool["name"] for tool in asked["body"]["tools"]}
    assert offered == {"Read", "Glob", "Grep", "mcp__grants__opening_hours"}


@pytest.mark.control("LIFE-01")
def test_cancel_removes_the_container(stack: Stack) -> None:
    marker = stack.script(HANG)
    with stack.stream(f"Take your time {marker}") as events:
        task_id = next(events)["id"]
        container = eventually(stack.turn_containers, what="a turn container")[0]
        eventually(lambda: stack.requests(marker), what="the model being asked")
        reply = stack.rpc("tasks/cancel", {"id": task_id})
        assert reply["result"]["status"]["state"] == "canceled", reply
        assert list(events)[-1]["status"]["state"] == "canceled"
    stack.nothing_left()
    assert docker("ps", "-aq", "--filter", f"id={container}") == ""


@pytest.mark.control("LIFE-01", "ANS-01")
def test_a_cli_killed_in_mid_turn_still_gives_one_answer(stack: Stack) -> None:
    marker = stack.script(HANG)
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(stack.ask, f"Wait {marker}")
        container = eventually(stack.turn_containers, what="a turn container")[0]
        eventually(lambda: stack.requests(marker), what="the model being asked")
        rows = [row.split(None, 1) for row in docker("top", container, "-o", "pid,args").splitlines()[1:]]
        (cli,) = [pid for pid, arguments in rows if arguments.startswith("/usr/local/bin/claude")]
        os.kill(int(cli), signal.SIGKILL)
        task = asked.result(timeout=20)
    assert answer_of(task) == DEFAULTS["error"]


@pytest.mark.control("ANS-01", "DOOR-02")
def test_a_model_proxy_that_dies_in_mid_turn_is_answered_in_seconds(stack: Stack) -> None:
    marker = stack.script(HANG)
    try:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(stack.ask, f"Wait {marker}")
            eventually(lambda: stack.requests(marker), what="the model being asked")
            docker("kill", stack.service("modelproxy"))
            task = asked.result(timeout=5)
        assert answer_of(task) in DEFAULTS.values()
        task = stack.ask("And now?", seconds=5)
        assert answer_of(task) == DEFAULTS["spawn_error"]
    finally:
        stack.compose("up", "--detach", "--wait", "--no-build", "modelproxy")
    marker = stack.script({"text": "Back again."})
    assert answer_of(stack.ask(f"Hello {marker}")).startswith("Back again.")


@pytest.mark.control("LIFE-03", "ANS-01")
def test_a_spawner_killed_in_mid_turn_is_answered_and_clears_up_when_it_is_back(stack: Stack) -> None:
    marker = stack.script(HANG)
    try:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(stack.ask, f"Wait {marker}")
            eventually(lambda: stack.requests(marker), what="the model being asked")
            docker("kill", stack.service("spawner"))
            task = asked.result(timeout=10)
        assert answer_of(task) == DEFAULTS["spawn_error"]
        assert len(stack.turn_containers()) == 1, "the orphan is what the reaper must find"
    finally:
        stack.compose("up", "--detach", "--wait", "--no-build", "spawner")
    stack.nothing_left()
    marker = stack.script({"text": "Back again."})
    assert answer_of(stack.ask(f"Hello {marker}")).startswith("Back again.")


@pytest.mark.control("LIFE-01")
def test_a_visitor_who_hangs_up_on_a_blocking_call_leaves_nothing_running_for_ever(stack: Stack) -> None:
    marker = stack.script({"text": "Too late.", "delay_seconds": 1.0})
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {"message": message(f"Hi {marker}")},
    }
    with pytest.raises(httpx.TimeoutException):
        httpx.post(stack.url + "/", json=body, timeout=0.3)
    eventually(lambda: stack.requests(marker), what="the model being asked")
    stack.nothing_left()


def test_a_model_that_calls_tools_without_end_is_stopped(stack: Stack) -> None:
    step = {"tool_use": {"name": "Glob", "input": {"pattern": "*.md"}}}
    marker = stack.script(*([step] * 30), {"text": "never"})
    task = stack.ask(f"Loop {marker}")
    assert answer_of(task) == DEFAULTS["error"]
    assert len(stack.requests(marker)) == 8


@pytest.mark.control("BODY-01")
def test_a_live_turn_is_what_policy_says_in_every_key(stack: Stack) -> None:
    marker = stack.script(HANG)
    with stack.stream(f"Wait {marker}") as events:
        task_id = next(events)["id"]
        eventually(lambda: stack.requests(marker), what="the model being asked")
        (container,) = stack.turn_containers()
        found = stack.inspect(container)
        stack.rpc("tasks/cancel", {"id": task_id})
        list(events)
    labels = found["Config"]["Labels"]
    settings = read_settings({})
    host = Host(
        image_id=docker("inspect", "--format", "{{.Id}}", "gatehouse-turn:dev").strip(),
        packs_volume=f"{stack.project}_packs",
        doors_volume=f"{stack.project}_doors",
        owner=labels[layout.LABEL_OWNER],
        seccomp=(REPO / "sandbox" / "seccomp.json").read_text(),
        memory_bytes=settings.turn_memory_bytes,
        cpus=min(settings.turn_cpus, os.cpu_count() or 1),
        pids=settings.turn_pids,
    )
    facts = TurnFacts(
        turn=labels[layout.LABEL_TURN],
        uid=int(found["Config"]["User"].split(":")[0]),
        deadline=float(labels[layout.LABEL_DEADLINE]),
    )
    pack = pack_of(found)
    body = create_body(load_instance(REPO, "ada", {}), pack, host, facts)
    got = {**found, "HostConfig": {**found["HostConfig"], "SecurityOpt": compact(found["HostConfig"])}}
    body["HostConfig"]["SecurityOpt"] = compact(body["HostConfig"])
    assert differences(got, body) == {}
    assert unexpected(found, body) == {}
    image = json.loads(docker("image", "inspect", "gatehouse-turn:dev"))[0]["Config"]
    assert found["Config"]["Entrypoint"] == image["Entrypoint"]
    assert facts.uid in layout.TURN_UIDS
    assert re.fullmatch(r"[0-9a-f]{64}", pack)


def pack_of(found: dict[str, Any]) -> str:
    """Return the digest of the pack that a container's grounding is mounted from."""
    (mount,) = [m for m in found["HostConfig"]["Mounts"] if m["Target"] == "/grounding"]
    return str(mount["VolumeOptions"]["Subpath"]).split("/")[0]


def compact(host_config: dict[str, Any]) -> list[str]:
    """Return the security options with the filter's JSON in one spelling: the spawner sends it compact."""
    return [
        "seccomp=" + json.dumps(json.loads(option.removeprefix("seccomp=")))
        if option.startswith("seccomp=")
        else option
        for option in host_config["SecurityOpt"]
    ]


def test_more_visitors_than_slots_are_told_that_the_agent_is_busy(stack: Stack) -> None:
    marker = stack.script({"text": "One of the lucky ones.", "delay_seconds": 1.5})
    start = threading.Barrier(5)

    def visitor(_: int) -> str:
        start.wait(timeout=5)
        return answer_of(stack.ask(f"Hello {marker}"))

    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(visitor, range(5)))
    assert sum(a.startswith("One of the lucky ones.") for a in answers) == 2
    assert sum(a.startswith("I am answering many requests") for a in answers) == 3


def test_health_and_ready_say_what_is_promised(stack: Stack) -> None:
    assert httpx.get(stack.url + "/health").json() == {"status": "ok", "agent": "ada"}
    assert httpx.get(stack.url + "/ready").json() == {"status": "ready"}


@pytest.mark.control("MODEL-02", "KEY-01")
def test_the_upstream_sees_the_key_and_nothing_a_turn_chose(stack: Stack) -> None:
    marker = stack.script({"text": "Fine."})
    stack.ask(f"Hello {marker}")
    (request,) = stack.requests(marker)
    headers = {name.lower(): value for name, value in request["headers"]}
    assert headers["x-api-key"] == "sk-ant-test-0000-not-a-real-key"
    assert "authorization" not in headers
    assert not [name for name in headers if name.startswith(("x-stainless", "x-claude", "cookie"))]
    assert request["body"]["max_tokens"] <= 4000
    assert re.fullmatch(r"[0-9a-f]{16,64}", request["body"]["metadata"]["user_id"])
