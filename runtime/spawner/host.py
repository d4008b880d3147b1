"""Finds out where the spawner itself runs: its own container, and so the volumes that turns must mount.

Why it looks instead of being told: Compose prefixes volume names with a project that differs from host to
host, and a wrong name would make the engine create an empty volume and turns without grounding. A container
id read from mountinfo is only believed when the engine confirms a container of a Compose project whose
mounts are where ours are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime import layout
from runtime.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Mapping

LABEL_PROJECT = "com.docker.compose.project"
LABEL_SERVICE = "com.docker.compose.service"
SERVICE = "spawner"

_OWN_ID = re.compile(r"/containers/([0-9a-f]{64})/(?:hostname|hosts|resolv\.conf) ")
_MEND = "run it from the project's compose files, or set PACKS_VOLUME and DOORS_VOLUME"


@dataclass(frozen=True, slots=True)
class Volumes:
    """Names of the volumes that turns mount parts of, and the Compose project ("" outside a container)."""

    packs: str
    doors: str
    project: str = ""


def own_container_id(mountinfo: str) -> str | None:
    """Return the 64-hex id in /proc/self/mountinfo, or None outside a container or when it is not one id."""
    found = set(_OWN_ID.findall(mountinfo))
    return found.pop() if len(found) == 1 else None


def volumes_of(container: Mapping[str, Any]) -> Volumes:
    """Return the volumes from the engine's description of the spawner's own container.

    Raises HostError when it is not the project's spawner, or when a folder of layout.py is no named volume
    in it.
    """
    config = container.get("Config") or {}
    labels = config.get("Labels") or {}
    project = labels.get(LABEL_PROJECT, "")
    image = str(config.get("Image", ""))
    if not project or labels.get(LABEL_SERVICE) != SERVICE or SERVICE not in image:
        raise HostError("the container that this process seems to run in is not a project's spawner", _MEND)
    mounts = {
        mount.get("Destination"): mount.get("Name")
        for mount in container.get("Mounts") or ()
        if mount.get("Type") == "volume"
    }
    packs, doors = mounts.get(str(layout.PACKS)), mounts.get(str(layout.DOORS))
    if not packs or not doors:
        raise HostError(f"{layout.PACKS} and {layout.DOORS} are not both named volumes", _MEND)
    return Volumes(packs, doors, project)
