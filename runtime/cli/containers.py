"""The stack's containers, as `docker inspect` describes them: which service, how it is, what it was given."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

PROJECT_LABEL: Final = "com.docker.compose.project"
SERVICE_LABEL: Final = "com.docker.compose.service"
FOLDER_LABEL: Final = "com.docker.compose.project.working_dir"
ONE_OFF_LABEL: Final = "com.docker.compose.oneoff"
SERVICE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")  # any image may bring labels of its own
# In the order of a request; what is not here comes after them by name.
SERVICES: Final = ("ingress", "front", "spawner", "modelproxy", "tunnel")
BUILDER: Final = "turn"  # builds an image and ends; not a service


@dataclass(frozen=True, slots=True)
class Container:
    """One service's container. `health` is "" where it has no check, `port` the one published on the host.

    `mounts` maps the path inside to the path on the host, for bind mounts alone.
    """

    id: str
    service: str
    state: str
    health: str = ""
    exit_code: int = 0
    restarts: int = 0
    port: int | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    mounts: Mapping[str, str] = field(default_factory=dict)

    @property
    def running(self) -> bool:
        """Whether it runs now."""
        return self.state == "running"

    @property
    def well(self) -> bool:
        """Whether it runs and its own check does not say otherwise."""
        return self.running and self.health in {"", "healthy"}

    def words(self) -> str:
        """Say how it is in a word or two."""
        if self.running:
            return self.health or "running"
        return f"{self.state} with {self.exit_code}" if self.state in {"exited", "dead"} else self.state


def container_of(described: Mapping[str, Any]) -> Container:
    """Return a container from what `docker inspect` says of it."""
    state = described["State"]
    settings = described["Config"]
    ports = (described.get("NetworkSettings") or {}).get("Ports") or {}
    published = [
        int(one["HostPort"]) for bound in ports.values() for one in bound or () if one.get("HostPort")
    ]
    return Container(
        id=described["Id"],
        service=labels_of(described).get(SERVICE_LABEL, ""),
        state=state.get("Status", "unknown"),
        health=_health(state),
        exit_code=int(state.get("ExitCode") or 0),
        restarts=int(described.get("RestartCount") or 0),
        port=published[0] if published else None,
        environ=dict(entry.split("=", 1) for entry in settings.get("Env") or () if "=" in entry),
        mounts={
            one["Destination"]: one["Source"]
            for one in described.get("Mounts") or ()
            if one.get("Type") == "bind"
        },
    )


def is_service(described: Mapping[str, Any]) -> bool:
    """Say whether a described container is one of the stack's services: no builder, no `compose run`."""
    labels = labels_of(described)
    name = labels.get(SERVICE_LABEL, "")
    return (
        labels.get(ONE_OFF_LABEL) != "True" and name != BUILDER and SERVICE_NAME.fullmatch(name) is not None
    )


def labels_of(described: Mapping[str, Any]) -> Mapping[str, str]:
    """Return a described container's labels."""
    return described["Config"].get("Labels") or {}


def place(container: Container) -> tuple[int, str]:
    """Return what sorts containers into the order of a request."""
    known = SERVICES.index(container.service) if container.service in SERVICES else len(SERVICES)
    return known, container.service


def _health(state: Mapping[str, Any]) -> str:
    word = (state.get("Health") or {}).get("Status", "")
    return "" if word == "none" else str(word)
