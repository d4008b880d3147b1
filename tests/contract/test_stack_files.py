"""What the compose files repeat of runtime/layout.py, because YAML cannot import it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runtime import layout
from tests.contract.stack_table import (
    AGENT_SETTINGS,
    FRONT_SETTINGS,
    MODEL_SETTINGS,
    PROXY_SETTINGS,
    SPAWNER_SETTINGS,
    TABLE,
    VOLUME_OPTIONS,
)

pytestmark = pytest.mark.host_only("compose reads the files, and a container of Python has no docker client")
REPO = Path(__file__).resolve().parents[2]


def read(settings: dict[str, str]) -> dict[str, Any]:
    """Return the stack as compose reads it, with every profile and these settings alone."""
    assert shutil.which("docker"), "the docker client with its compose plugin reads the files"
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        ["docker", "compose", "--env-file", "/dev/null", "--profile", "*", "config", "--format", "json"],
        cwd=REPO,
        env={**kept, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    """The stack without a setting."""
    return read({})


def targets(config: dict[str, Any], service: str) -> dict[str, str]:
    return {mount["target"]: mount["source"] for mount in config["services"][service]["volumes"]}


def test_the_project_has_the_name_that_people_type(config: dict[str, Any]) -> None:
    assert config["name"] == "gatehouse"


@pytest.mark.parametrize(
    ("service", "uid"),
    [
        ("front", layout.UID_FRONT),
        ("modelproxy", layout.UID_MODELPROXY),
        ("ingress", layout.UID_INGRESS),
        ("tunnel", layout.UID_TUNNEL),
    ],
)
def test_a_service_runs_as_its_uid_in_the_shared_group(
    config: dict[str, Any], service: str, uid: int
) -> None:
    assert config["services"][service]["user"] == f"{uid}:{layout.GID_GATEHOUSE}"


def test_the_spawner_runs_as_root_without_a_capability_until_the_host_gives_it_its_uid(
    config: dict[str, Any],
) -> None:
    spawner = config["services"]["spawner"]
    assert spawner["user"] == "0:0"
    assert spawner["group_add"] == [str(layout.GID_GATEHOUSE)]
    script = (REPO / "compose/host/stack.sh").read_text()
    assert f'user: "{layout.UID_SPAWNER}:{layout.GID_GATEHOUSE}"' in script


@pytest.mark.parametrize(
    ("service", "place"),
    [
        ("ingress", layout.FRONT_LOCAL_SOCKET.parent),
        ("front", layout.FRONT_LOCAL_SOCKET.parent),
        ("front", layout.FRONT_TUNNEL_SOCKET.parent),
        ("front", layout.SPAWN_SOCKET.parent),
        ("front", layout.OPS),
        ("front", layout.INSTANCES),
        ("spawner", layout.SPAWN_SOCKET.parent),
        ("spawner", layout.MODEL_CONTROL_SOCKET.parent),
        ("spawner", layout.DOORS),
        ("spawner", layout.PACKS),
        ("spawner", layout.OPS),
        ("spawner", layout.INSTANCES),
        ("modelproxy", layout.MODEL_CONTROL_SOCKET.parent),
        ("modelproxy", layout.DOORS),
        ("modelproxy", layout.STATE),
        ("modelproxy", layout.OPS),
        ("tunnel", layout.FRONT_TUNNEL_SOCKET.parent),
    ],
)
def test_a_service_finds_its_places(config: dict[str, Any], service: str, place: Path) -> None:
    assert str(place) in targets(config, service)


def test_the_key_is_where_the_model_proxy_looks_and_nobody_else_gets_it(config: dict[str, Any]) -> None:
    holders = {name: one["secrets"] for name, one in config["services"].items() if one.get("secrets")}
    assert [secret["source"] for secret in holders["modelproxy"]] == ["model_api_key", "model_ca"]
    assert Path("/run/secrets/model_api_key") == layout.MODEL_KEY_FILE
    assert set(holders) == {"modelproxy", "tunnel"}
    assert config["secrets"]["model_api_key"]["file"] == "/dev/null"


def test_the_socket_volumes_are_in_memory_and_belong_to_the_group(config: dict[str, Any]) -> None:
    options = {name: (one.get("driver_opts") or {}).get("o") for name, one in config["volumes"].items()}
    assert options == VOLUME_OPTIONS
    assert {one["driver_opts"]["type"] for one in config["volumes"].values() if one.get("driver_opts")} == {
        "tmpfs"
    }
    assert all(f"gid={layout.GID_GATEHOUSE}" in option for option in options.values() if option)


def test_the_tunnel_reaches_the_fronts_socket_and_nothing_else_of_the_stack(config: dict[str, Any]) -> None:
    tunnel = config["services"]["tunnel"]
    assert targets(config, "tunnel") == {str(layout.FRONT_TUNNEL_SOCKET.parent): "front-tunnel"}
    assert list(tunnel["networks"]) == ["tunnel"]
    assert tunnel["profiles"] == ["tunnel"]
    assert [name for name, one in config["services"].items() if "tunnel" in (one.get("networks") or {})] == [
        "tunnel"
    ]


def test_every_service_is_hardened_by_the_same_anchor(config: dict[str, Any]) -> None:
    assert set(config["services"]) == {*TABLE, "tunnel"}
    for name, one in config["services"].items():
        assert one["read_only"] is True, name
        assert one["cap_drop"] == ["ALL"], name
        assert one["security_opt"] == ["no-new-privileges:true"], name
        assert one["pids_limit"] == 64, name
        assert one["mem_limit"] == one["memswap_limit"], name
        assert "cap_add" not in one, name
        assert "privileged" not in one, name
        assert "container_name" not in one, name


def test_front_and_spawner_get_the_same_overrides(config: dict[str, Any]) -> None:
    front, spawner = (config["services"][name]["environment"] for name in ("front", "spawner"))
    for name in AGENT_SETTINGS:
        assert front[name] == spawner[name]


@pytest.mark.parametrize(
    ("service", "settings"),
    [("front", FRONT_SETTINGS), ("spawner", SPAWNER_SETTINGS), ("modelproxy", MODEL_SETTINGS)],
)
def test_every_setting_of_a_service_can_be_set_and_is_passed_only_when_it_is(
    config: dict[str, Any], service: str, settings: frozenset[str]
) -> None:
    environment = config["services"][service]["environment"]
    assert set(environment) == settings
    given = {name: value for name, value in environment.items() if value}
    agent = {"GATEHOUSE_AGENT": "ada", "AGENT_PORT": "8011"}
    assert given == ({} if service == "modelproxy" else agent)


@pytest.mark.parametrize(("settings", "port"), [({}, "8011"), ({"AGENT_PORT": "8123"}, "8123")])
def test_the_port_on_the_card_is_the_one_that_is_published(settings: dict[str, str], port: str) -> None:
    services = read(settings)["services"]
    (published,) = services["ingress"]["ports"]
    assert (published["host_ip"], published["published"]) == ("127.0.0.1", port)
    assert {services[name]["environment"]["AGENT_PORT"] for name in ("front", "spawner")} == {port}


def test_a_setting_arrives_as_it_was_given() -> None:
    values = {name: f"{name.lower()}-value" for name in FRONT_SETTINGS | SPAWNER_SETTINGS | MODEL_SETTINGS}
    values["AGENT_PORT"] = "8123"
    found = read(values)["services"]
    for service, settings in (("front", FRONT_SETTINGS), ("spawner", SPAWNER_SETTINGS)):
        assert found[service]["environment"] == {name: values[name] for name in settings}
    inside = {**{name: values[name] for name in MODEL_SETTINGS}, "MODEL_CA_FILE": "/run/secrets/model_ca"}
    assert found["modelproxy"]["environment"] == inside


def test_the_hosts_proxy_is_passed_on_only_when_it_is_to_be_obeyed() -> None:
    given = {"HTTPS_PROXY": "http://user:made-up@proxy.example:3128", "no_proxy": "internal.example"}
    silent = read(given)["services"]["modelproxy"]["environment"]
    assert not any(silent[name] for name in PROXY_SETTINGS)
    asked = read({**given, "MODEL_PROXY_FROM_ENVIRONMENT": "true"})["services"]["modelproxy"]["environment"]
    assert asked["HTTPS_PROXY"] == given["HTTPS_PROXY"]
    assert asked["NO_PROXY"] == "internal.example"


def test_certificates_of_the_hosts_reach_the_model_proxy_as_a_file_and_nobody_else(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    found = read({"MODEL_CA_FILE": str(file)})
    assert found["secrets"]["model_ca"]["file"] == str(file)
    holders = [
        name
        for name, one in found["services"].items()
        if any(secret["source"] == "model_ca" for secret in one.get("secrets", ()))
    ]
    assert holders == ["modelproxy"]
    assert found["services"]["modelproxy"]["labels"]["gatehouse.ca-file"] == str(file)


@pytest.mark.control("ADDR-01")
def test_nobody_but_front_and_tunnel_reaches_the_socket_whose_addresses_are_believed(
    config: dict[str, Any],
) -> None:
    holders = {
        name
        for name, one in config["services"].items()
        for mount in one.get("volumes", ())
        if mount["source"] == "front-tunnel" or Path(mount["target"]) == layout.FRONT_TUNNEL_SOCKET.parent
    }
    assert holders == {"front", "tunnel"}
    assert layout.FRONT_TUNNEL_SOCKET.parent != layout.FRONT_LOCAL_SOCKET.parent


def test_a_service_sees_no_ops_socket_but_its_own(config: dict[str, Any]) -> None:
    found = {
        name: targets(config, name).get(str(layout.OPS))
        for name, one in config["services"].items()
        if one.get("volumes")
    }
    assert {name: volume for name, volume in found.items() if volume} == {
        name: f"ops-{name}" for name in ("front", "spawner", "modelproxy")
    }


def test_who_answers_visitors_has_the_time_to_finish(config: dict[str, Any]) -> None:
    for name, row in TABLE.items():
        grace = config["services"][name].get("stop_grace_period")
        assert grace == (f"{row.stop_seconds}s" if row.stop_seconds else None), name


def test_the_tmpfs_of_no_service_can_run_a_program(config: dict[str, Any]) -> None:
    assert all(
        "noexec,nosuid,nodev" in tmpfs for one in config["services"].values() for tmpfs in one["tmpfs"]
    )
