from __future__ import annotations

from typing import Any

import pytest

from runtime.errors import HostError
from runtime.spawner.host import Volumes, own_container_id, volumes_of

ID, OTHER = "ab" * 32, "cd" * 32
LINE = "620 600 254:0 /var/lib/docker/containers/{}/{} /etc/{} rw,relatime - ext4 /dev/sda1 rw\n"


def described(**changes: Any) -> dict[str, Any]:
    labels = {"com.docker.compose.project": "gatehouse", "com.docker.compose.service": "spawner"}
    return {
        "Config": {"Labels": labels, "Image": "gatehouse-spawner:dev"},
        "Mounts": [
            {"Type": "volume", "Name": "gatehouse_packs", "Destination": "/var/lib/gatehouse/packs"},
            {"Type": "volume", "Name": "gatehouse_doors", "Destination": "/run/gatehouse/doors"},
            {"Type": "bind", "Destination": "/var/run/docker.sock"},
        ],
    } | changes


def test_the_own_id_is_read_from_mountinfo() -> None:
    text = "".join(LINE.format(ID, name, name) for name in ("hostname", "hosts", "resolv.conf"))
    assert own_container_id(text) == ID


@pytest.mark.parametrize(
    "text",
    [
        "",
        LINE.format(ID, "hosts", "hosts") + LINE.format(OTHER, "hosts", "hosts"),
        LINE.format(ID[:12], "hosts", "hosts"),
    ],
)
def test_outside_a_container_or_with_two_ids_there_is_none(text: str) -> None:
    assert own_container_id(text) is None


def test_volumes_are_found_by_where_they_are_mounted() -> None:
    assert volumes_of(described()) == Volumes("gatehouse_packs", "gatehouse_doors", "gatehouse")


@pytest.mark.parametrize(
    "changes",
    [
        {"Config": {"Labels": {}, "Image": "gatehouse-spawner:dev"}},
        {"Config": {"Labels": None}},
        {"Config": described()["Config"] | {"Image": "postgres:17"}},
        {"Mounts": []},
        {"Mounts": [{"Type": "bind", "Destination": "/var/lib/gatehouse/packs"}]},
    ],
)
def test_a_container_that_is_not_the_projects_spawner_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(HostError, match="PACKS_VOLUME"):
        volumes_of(described(**changes))
