"""The stack as `docker compose up` starts it from the root, compared with one table; and it answers."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from tests.contract.stack_table import TABLE, TMPFS, VOLUME_OPTIONS, Row
from tests.harness.stack import docker, message

if TYPE_CHECKING:
    from collections.abc import Iterator

import json

REPO = Path(__file__).resolve().parents[2]
KEPT_OUT = {"GATEHOUSE_AGENT", "COMPOSE_PROFILES", "COMPOSE_FILE", "BASE", "DOCKER_SOCKET"}
pytestmark = pytest.mark.engine


@dataclass(frozen=True, slots=True)
class Plain:
    """A stack that plain `docker compose up` started, without a setting but its port."""

    project: str
    port: int
    containers: dict[str, dict[str, Any]]


def compose(project: str, port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    settings = {*KEPT_OUT, *TABLE["front"].settings, *TABLE["modelproxy"].settings} - {"PATH"}
    kept = {
        name: value for name, value in os.environ.items() if name not in settings and "KEY_FILE" not in name
    }
    return subprocess.run(
        ["docker", "compose", "--project-name", project, *arguments],
        cwd=REPO,
        env={**kept, "AGENT_PORT": str(port)},
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


@pytest.fixture(scope="module")
def plain() -> Iterator[Plain]:
    project = f"gatehouse-plain-{secrets.token_hex(3)}"
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    try:
        done = compose(project, port, "up", "--detach", "--no-build", "--wait", "--wait-timeout", "100")
        logs = "" if done.returncode == 0 else compose(project, port, "logs", "--tail", "30").stdout
        assert done.returncode == 0, done.stderr + logs
        ids = docker(
            "ps", "--all", "--quiet", "--filter", f"label=com.docker.compose.project={project}"
        ).split()
        inspected = json.loads(docker("inspect", *ids))
        named = {one["Config"]["Labels"]["com.docker.compose.service"]: one for one in inspected}
        yield Plain(project, port, named)
    finally:
        compose(project, port, "down", "--volumes", "--timeout", "5")


@pytest.fixture(params=sorted(TABLE))
def service(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def row(service: str) -> Row:
    return TABLE[service]


@pytest.fixture
def found(plain: Plain, service: str) -> dict[str, Any]:
    return plain.containers[service]


def test_the_stack_is_the_services_of_the_table_and_no_other(plain: Plain) -> None:
    assert set(plain.containers) == set(TABLE)


@pytest.mark.control("STACK-01")
def test_a_service_has_the_user_and_the_groups_of_the_table(found: dict[str, Any], row: Row) -> None:
    assert found["Config"]["User"] == row.user
    assert tuple(found["HostConfig"]["GroupAdd"] or ()) == row.groups


@pytest.mark.control("STACK-01")
def test_a_service_has_the_networks_of_the_table(plain: Plain, found: dict[str, Any], row: Row) -> None:
    networks = set(found["NetworkSettings"]["Networks"])
    assert networks == ({f"{plain.project}_{name}" for name in row.networks} or {"none"})
    assert (found["HostConfig"]["NetworkMode"] == "none") is (not row.networks)
    assert not found["HostConfig"]["ExtraHosts"]
    assert not found["HostConfig"]["Links"]


@pytest.mark.control("STACK-01")
def test_a_service_has_the_mounts_of_the_table(plain: Plain, found: dict[str, Any], row: Row) -> None:
    volumes = {m["Name"]: m["Destination"] for m in found["Mounts"] if m["Type"] == "volume"}
    assert volumes == {f"{plain.project}_{name}": place for name, place in row.volumes.items()}
    assert all(m["RW"] for m in found["Mounts"] if m["Type"] == "volume")
    binds = {m["Destination"]: (m["Source"], m["RW"]) for m in found["Mounts"] if m["Type"] == "bind"}
    assert binds == {
        place: (str(REPO / source) if source.startswith("./") else source, writable)
        for place, (source, writable) in row.binds.items()
    }
    assert {m["Type"] for m in found["Mounts"]} <= {"volume", "bind"}
    assert found["HostConfig"]["Tmpfs"] == TMPFS
    assert not found["HostConfig"]["VolumesFrom"]


@pytest.mark.control("STACK-01")
def test_a_service_is_hardened_without_exception(found: dict[str, Any]) -> None:
    host = found["HostConfig"]
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert not host["CapAdd"]
    assert host["SecurityOpt"] == ["no-new-privileges:true"]
    assert host["Privileged"] is False
    assert not host["Devices"]
    assert not host["DeviceRequests"]
    assert not host["DeviceCgroupRules"]
    assert not host.get("Sysctls")
    assert (host["PidMode"], host["UTSMode"], host["UsernsMode"]) == ("", "", "")
    assert host["IpcMode"] == "private"
    assert host["CgroupnsMode"] in {"host", "private"}  # the engine's default: host on cgroup v1
    assert host["Runtime"] == "runc"
    assert host["LogConfig"] == {"Type": "json-file", "Config": {"max-file": "3", "max-size": "10m"}}


@pytest.mark.control("STACK-01")
def test_a_service_has_the_limits_of_the_table(found: dict[str, Any], row: Row) -> None:
    host = found["HostConfig"]
    assert host["PidsLimit"] == 64
    assert host["Memory"] == row.memory_bytes
    assert host["MemorySwap"] == row.memory_bytes
    assert host["RestartPolicy"]["Name"] == row.restart
    assert not host["OomKillDisable"]


@pytest.mark.control("STACK-01")
def test_only_the_ports_of_the_table_are_published_and_only_on_loopback(
    plain: Plain, found: dict[str, Any], row: Row
) -> None:
    published = tuple(
        f"{one['HostIp']}:{one['HostPort']}->{inside}"
        for inside, bindings in (found["HostConfig"]["PortBindings"] or {}).items()
        for one in bindings
    )
    assert published == tuple(port.replace("PORT", str(plain.port)) for port in row.ports)
    assert found["HostConfig"]["PublishAllPorts"] is False


@pytest.mark.control("STACK-01", "KEY-02")
def test_the_environment_holds_settings_by_name_and_no_secret(found: dict[str, Any], row: Row) -> None:
    # An entry without `=` is a setting that is not set: compose's way of saying so.
    environment = dict(entry.split("=", 1) for entry in found["Config"]["Env"] if "=" in entry)
    assert set(environment) <= row.settings
    assert not [value for value in environment.values() if value.startswith("sk-")]


@pytest.mark.control("STACK-01")
def test_only_the_spawner_holds_the_engine(plain: Plain) -> None:
    holders = [
        name
        for name, one in plain.containers.items()
        if any("docker.sock" in m["Source"] + m["Destination"] for m in one["Mounts"])
    ]
    assert holders == [name for name, row in TABLE.items() if row.holds_engine] == ["spawner"]


@pytest.mark.control("STACK-01")
def test_the_kernel_holds_every_running_service_to_it(plain: Plain, found: dict[str, Any], row: Row) -> None:
    if row.restart == "no":
        assert found["State"]["ExitCode"] == 0
        return
    status = docker("exec", found["Id"], "python3", "-c", "print(open('/proc/1/status').read())")
    fields = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    assert fields["Uid"].split() == [row.user.split(":")[0]] * 4
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(fields[name], 16) == 0, name
    assert fields["NoNewPrivs"].strip() == "1"
    assert fields["Seccomp"].strip() == "2"
    assert plain.project


@pytest.mark.control("STACK-01")
def test_the_volumes_are_those_of_the_table_with_its_modes(plain: Plain) -> None:
    names = docker(
        "volume", "ls", "--quiet", "--filter", f"label=com.docker.compose.project={plain.project}"
    ).split()
    options = {
        one["Name"].removeprefix(f"{plain.project}_"): (one["Options"] or {}).get("o")
        for one in json.loads(docker("volume", "inspect", *names))
    }
    assert options == VOLUME_OPTIONS


@pytest.mark.control("STACK-01")
def test_the_ingress_has_no_way_out(plain: Plain) -> None:
    edge = json.loads(docker("network", "inspect", f"{plain.project}_edge"))[0]
    assert edge["Options"]["com.docker.network.bridge.enable_ip_masquerade"] == "false"
    assert edge["Options"]["com.docker.network.bridge.enable_icc"] == "false"


def test_plain_compose_answers_a_question_from_the_grounding(plain: Plain) -> None:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "message/send",
        "params": {"message": message("When are office hours?")},
    }
    reply = httpx2.post(f"http://127.0.0.1:{plain.port}/", json=body, timeout=60).json()["result"]
    answer = reply["artifacts"][0]["parts"][0]["text"]
    assert reply["status"]["state"] == "completed"
    assert reply["status"]["message"]["parts"][0]["text"] == answer
    assert "14:00 to 16:00" in answer
    left = docker(
        "ps",
        "--all",
        "--quiet",
        "--filter",
        "label=gatehouse.turn",
        "--filter",
        f"volume={plain.project}_packs",
    )
    assert not left.split()
