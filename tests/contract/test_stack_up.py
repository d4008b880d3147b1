"""`./gatehouse up` and `down` as a person runs them: one course of starts on a real engine beside others.

The course: the demo with documents outside the repository; Ada with her own; the same once more;
then with a key; then with settings that no service would take. Each start is looked at when it ends, and
the tests ask what was seen.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import certifi
import httpx2
import pytest

from runtime import layout
from runtime.agents.instance import load_instance
from tests.contract.stack_table import TABLE
from tests.harness.stack import REPO, docker, free_port, message

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.engine
KEY = "sk-ant-test-0000-made-up"
CLOSED = "http://127.0.0.1:9"  # inside the model proxy's own container, where nothing listens
FERRY = "# Ferries\n\nThe ferry to Thorsby leaves at 07:45 from the north pier.\n"


@dataclass
class Seen:
    """What one start left: its words, and every container of the stack by its service's name."""

    code: int
    out: str
    talk: str
    containers: dict[str, dict[str, Any]]
    answer: str = ""

    def started(self, service: str) -> str:
        return str(self.containers[service]["Id"] + self.containers[service]["State"]["StartedAt"])


@dataclass
class Course:
    """The stack that the commands are about. `seen` holds what each start left."""

    folder: Path
    project: str = field(default_factory=lambda: f"gatehouse-up-{secrets.token_hex(3)}")
    port: int = field(default_factory=free_port)
    seen: dict[str, Seen] = field(default_factory=dict)
    refused: dict[str, Seen] = field(default_factory=dict)

    def gatehouse(self, command: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run ./gatehouse with these settings alone. Under `./gatehouse test` the lock is its own already."""
        kept = {"PATH", "HOME", "GATEHOUSE_LOCKED", "EXTRA_CA_CERTS", "BASE", "DOCKER_HOST", "PIP_CERT"}
        environment = {name: value for name, value in os.environ.items() if name in kept}
        return subprocess.run(
            ["./gatehouse", command],
            cwd=REPO,
            env={
                **environment,
                "COMPOSE_PROJECT_NAME": self.project,
                "AGENT_PORT": str(self.port),
                "GATEHOUSE_AGENT": "ada",
                **settings,
            },
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def up(self, name: str, question: str = "", **settings: str) -> None:
        done = self.gatehouse("up", **settings)
        seen = Seen(done.returncode, done.stdout, done.stderr, self.containers())
        self.seen[name] = seen
        assert done.returncode == 0, done.stderr
        if question:
            seen.answer = self.ask(question)

    def refuse(self, name: str, **settings: str) -> None:
        done = self.gatehouse("up", **settings)
        self.refused[name] = Seen(done.returncode, done.stdout, done.stderr, self.containers())

    def ask(self, question: str) -> str:
        params = {"message": message(question)}
        body = {"jsonrpc": "2.0", "id": 1, "method": "message/send", "params": params}
        task = httpx2.post(f"http://127.0.0.1:{self.port}/", json=body, timeout=60).json()["result"]
        return str(task["artifacts"][0]["parts"][0]["text"])

    def containers(self) -> dict[str, dict[str, Any]]:
        ids = docker("ps", "--all", "--quiet", *self.filters()).split()
        found = json.loads(docker("inspect", *ids)) if ids else []
        return {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in found}

    def filters(self) -> tuple[str, str]:
        return "--filter", f"label=com.docker.compose.project={self.project}"

    def left(self) -> dict[str, list[str]]:
        """Return what is there of the stack: containers (turns too), networks, volumes and files."""
        turns = ("--filter", "label=gatehouse.turn", "--filter", f"volume={self.project}_packs")
        volumes = docker("volume", "ls", "--format", "{{.Name}}", *self.filters()).split()
        return {
            "containers": docker("ps", "--all", "--quiet", *self.filters()).split(),
            "turns": docker("ps", "--all", "--quiet", *turns).split(),
            "networks": docker("network", "ls", "--quiet", *self.filters()).split(),
            "volumes": sorted(name.removeprefix(f"{self.project}_") for name in volumes),
            "files": [str(path) for path in (REPO / ".gatehouse" / "stacks").glob(f"{self.project}*")],
        }


@pytest.fixture(scope="module")
def course() -> Iterator[Course]:
    """All starts, with what each left; the stack still runs."""
    folder = Path(tempfile.mkdtemp(prefix="gatehouse-outside-"))
    made = Course(folder)
    try:
        documents = folder / "public documents"
        documents.mkdir()
        (documents / "ferries.md").write_text(FERRY)
        (documents / "faq.md").write_text("# Questions\n\nThere are none yet.\n")  # Ada's files name it
        folder.chmod(0o755)
        key = folder / "key"
        key.write_text(KEY + "\n")
        key.chmod(0o600)
        made.up("outside", "When does the ferry to Thorsby leave?", GROUNDING_DIR=str(documents))
        made.up("ada", "When are office hours?")
        made.up("again")
        live = {"MODEL_API_KEY_FILE": str(key), "MODEL_UPSTREAM_URL": CLOSED}
        made.up("key", **live, MODEL_CA_FILE=certifi.where(), TURN_PIDS="300")
        made.refuse("settings", **live, MODEL_DAILY_USD="5,00", TURN_CPUS="many")
        made.refuse("instance", **live, CLAUDE_MODEL="no such model")
        made.refuse("no key")
        key.write_text("two words\n")
        made.refuse("key", **live)
        yield made
    finally:
        made.gatehouse("down")
        for volume in docker("volume", "ls", "--quiet", *made.filters()).split():
            docker("volume", "rm", volume, check=False)
        shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("name", "model"), [("outside", "demo "), ("ada", "demo "), ("again", "demo "), ("key", "live")]
)
def test_a_start_ends_with_the_address_the_agent_and_the_model_in_use(
    course: Course, name: str, model: str
) -> None:
    seen = course.seen[name]
    start = f"URL:    http://127.0.0.1:{course.port}/\nAgent:  ada\nModel:  {model}"
    assert seen.out.startswith(start)
    assert f"\ncurl -s http://127.0.0.1:{course.port}/ " in seen.out


@pytest.mark.parametrize("service", sorted(TABLE))
@pytest.mark.control("STACK-01")
def test_a_service_is_what_the_table_says_but_for_what_this_host_adds(course: Course, service: str) -> None:
    found, row = course.seen["ada"].containers[service], TABLE[service]
    host = found["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Memory"] == row.memory_bytes
    assert host["PidsLimit"] == 64
    assert tuple(host["Dns"] or ()) == row.resolvers
    assert found["Config"].get("StopTimeout") == row.stop_seconds
    networks = {name.removeprefix(f"{course.project}_") for name in found["NetworkSettings"]["Networks"]}
    assert networks == (row.networks or {"none"})
    volumes = {m["Name"]: m["Destination"] for m in found["Mounts"] if m["Type"] == "volume"}
    assert volumes == {f"{course.project}_{name}": place for name, place in row.volumes.items()}
    binds = {m["Destination"]: m["RW"] for m in found["Mounts"] if m["Type"] == "bind"}
    assert binds == {place: writable for place, (_, writable) in row.binds.items()}
    if service != "spawner":
        assert found["Config"]["User"] == row.user
        assert tuple(host["GroupAdd"] or ()) == row.groups


@pytest.mark.control("STACK-01")
def test_the_spawner_is_a_user_of_its_own_in_the_group_of_the_engines_socket(course: Course) -> None:
    spawner = course.seen["ada"].containers["spawner"]
    options = docker("info", "--format", "{{.SecurityOptions}}")
    if "rootless" in options or "userns" in options:  # there the group has another number inside
        assert spawner["Config"]["User"] == TABLE["spawner"].user
        return
    (socket,) = [m["Source"] for m in spawner["Mounts"] if m["Destination"] == "/var/run/docker.sock"]
    assert spawner["Config"]["User"] == f"{layout.UID_SPAWNER}:{layout.GID_GATEHOUSE}"
    groups = {str(Path(socket).stat().st_gid), str(layout.GID_GATEHOUSE)}
    assert set(spawner["HostConfig"]["GroupAdd"]) == groups
    status = docker("exec", course.containers()["spawner"]["Id"], "cat", "/proc/1/status")
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert fields["Uid"].split() == [str(layout.UID_SPAWNER)] * 4
    assert int(fields["CapBnd"], 16) == 0


def test_a_folder_outside_the_repository_is_mounted_read_only_and_answered_from(course: Course) -> None:
    seen = course.seen["outside"]
    documents = str(course.folder / "public documents")
    found = {m["Destination"]: m for m in seen.containers["spawner"]["Mounts"]}[documents]
    assert (found["Source"], found["RW"]) == (documents, False)
    assert "07:45 from the north pier" in seen.answer
    assert "ferries.md" in seen.answer
    for service in ("front", "ingress", "modelproxy"):
        assert documents not in {m["Source"] for m in seen.containers[service]["Mounts"]}


def test_up_prints_a_question_of_the_card_for_both_ways_to_ask_it(course: Course) -> None:
    lines = course.seen["ada"].out.splitlines()
    question = load_instance(REPO, "ada", {}).card.skills[0].examples[0]
    (asked,) = [line for line in lines if "./gatehouse ask " in line]
    (curl,) = [line for line in lines if line.startswith("curl ")]
    before = f"COMPOSE_PROJECT_NAME={course.project} AGENT_PORT={course.port}"
    assert asked == f'{before} ./gatehouse ask "{question}"'
    body = json.loads(curl.split(" -d '")[1].removesuffix("'"))
    assert body["params"]["message"]["parts"] == [{"kind": "text", "text": question}]
    task = httpx2.post(f"http://127.0.0.1:{course.port}/", json=body, timeout=60).json()["result"]
    assert task["status"]["state"] == "completed"


def test_the_documents_of_another_start_are_gone(course: Course) -> None:
    assert "14:00 to 16:00" in course.seen["ada"].answer
    assert "ferry" not in course.seen["ada"].answer


def test_a_second_start_changes_nothing(course: Course) -> None:
    first, second = course.seen["ada"], course.seen["again"]
    for service in set(TABLE) - {"turn"}:  # which ends at once, and is run again
        assert first.started(service) == second.started(service), service


@pytest.mark.control("KEY-02")
def test_a_key_makes_the_model_proxy_anew_and_is_a_file_of_its_own(course: Course) -> None:
    before, after = course.seen["again"], course.seen["key"]
    assert before.started("modelproxy") != after.started("modelproxy")
    mode = "import os; s = os.stat('/run/secrets/model_api_key'); print(oct(s.st_mode)[-3:], s.st_uid)"
    found = docker("exec", after.containers["modelproxy"]["Id"], "python", "-c", mode)
    assert found.split() == ["400", str(layout.UID_MODELPROXY)]
    assert KEY not in json.dumps(list(after.containers.values()))
    assert KEY not in after.out + after.talk


def test_settings_and_certificates_reach_the_services_that_they_are_for(course: Course) -> None:
    found = course.seen["key"].containers
    environment = {
        name: dict(entry.split("=", 1) for entry in one["Config"]["Env"] if "=" in entry)
        for name, one in found.items()
    }
    assert environment["spawner"]["TURN_PIDS"] == "300"
    assert environment["modelproxy"]["MODEL_UPSTREAM_URL"] == CLOSED
    assert environment["modelproxy"]["MODEL_CA_FILE"] == "/run/secrets/model_ca"
    program = "import hashlib; print(hashlib.sha256(open('/run/secrets/model_ca', 'rb').read()).hexdigest())"
    digest = docker("exec", found["modelproxy"]["Id"], "python", "-c", program).strip()
    assert digest == hashlib.sha256(Path(certifi.where()).read_bytes()).hexdigest()


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("settings", 3, "TURN_CPUS is not a number from 0.1 to 256"),
        ("settings", 3, "MODEL_DAILY_USD: Input should be a valid decimal (write 5.00; see docs/reference/"),
        ("instance", 3, "CLAUDE_MODEL"),
        ("no key", 7, "secret-unusable: the model key file MODEL_API_KEY_FILE is empty, but this stack has"),
        ("key", 7, "secret-unusable: MODEL_API_KEY_FILE holds white space"),
    ],
)
def test_a_start_that_no_service_would_take_leaves_the_stack_that_runs_as_it_is(
    course: Course, name: str, code: int, words: str
) -> None:
    before, refused = course.seen["key"], course.refused[name]
    assert (refused.code, refused.out) == (code, "")
    assert words in refused.talk
    for service in set(TABLE) - {"turn"}:
        assert before.started(service) == refused.started(service), service
        assert refused.containers[service]["State"]["Health"]["Status"] == "healthy"


def test_down_leaves_state_and_nothing_else(course: Course) -> None:
    before = course.left()
    assert len(before["containers"]) == len(TABLE)
    assert before["networks"]
    assert before["files"]
    done = course.gatehouse("down")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    nothing: list[str] = []
    kept = ["packs", "state-model"]
    assert course.left() == {
        "containers": nothing,
        "turns": nothing,
        "networks": nothing,
        "volumes": kept,
        "files": nothing,
    }
