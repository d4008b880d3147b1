"""What the compose files repeat of runtime/layout.py, because YAML cannot import it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from runtime import layout
from tests.contract.stack_table import AGENT_SETTINGS, MODEL_SETTINGS, TABLE, VOLUME_OPTIONS

REPO = Path(__file__).resolve().parents[2]
LOCK_LINE = re.compile(r"^(?:[a-z0-9._-]+==\S+(?: ; .*)? \\|    --hash=sha256:[0-9a-f]{64}(?: \\)?|    #.*)$")


@pytest.fixture(scope="module")
def config() -> dict[str, Any]:
    """The stack as compose reads it, with every profile and no setting."""
    assert shutil.which("docker"), "the docker client with its compose plugin reads the files"
    kept = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}
    done = subprocess.run(
        ["docker", "compose", "--env-file", "/dev/null", "--profile", "*", "config", "--format", "json"],
        cwd=REPO,
        env=kept,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return dict(json.loads(done.stdout))


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
    assert [secret["source"] for secret in holders["modelproxy"]] == ["model_api_key"]
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
    assert targets(config, "tunnel") == {"/run/gatehouse/front": "front"}
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
    assert front == spawner
    assert set(front) == AGENT_SETTINGS
    assert {name for name, value in front.items() if value is not None} == {"GATEHOUSE_AGENT"}
    assert set(config["services"]["modelproxy"]["environment"]) == MODEL_SETTINGS


def test_the_tmpfs_of_no_service_can_run_a_program(config: dict[str, Any]) -> None:
    assert all(
        "noexec,nosuid,nodev" in tmpfs for one in config["services"].values() for tmpfs in one["tmpfs"]
    )


def test_no_dockerfile_needs_a_registry_for_its_syntax() -> None:
    for file in ("compose/Dockerfile", "sandbox/Dockerfile.turn"):
        assert not (REPO / file).read_text().lower().startswith("# syntax")


@pytest.mark.parametrize("name", ["front", "spawner", "modelproxy", "dev"])
def test_a_lock_holds_versions_and_hashes_and_no_address(name: str) -> None:
    lines = (REPO / "requirements" / f"{name}.txt").read_text().splitlines()
    assert len(lines) > 50
    assert [line for line in lines if not LOCK_LINE.match(line)] == []
