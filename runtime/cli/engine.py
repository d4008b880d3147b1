"""The stack as its engine knows it: docker as a program, and containers by compose's labels.

Why no library: whoever imports `docker` holds the engine's socket, and that is the spawner alone
(architecture §2). What a container or the engine says is text from elsewhere, so it is printed through
`output.printable`.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from runtime.cli.output import printable
from runtime.errors import EngineUnavailable, GatehouseError, ServiceUnreachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.cli.settings import Settings

PROJECT_LABEL: Final = "com.docker.compose.project"
SERVICE_LABEL: Final = "com.docker.compose.service"
ONE_OFF_LABEL: Final = "com.docker.compose.oneoff"
# In the order of a request; what is not here comes after them by name.
SERVICES: Final = ("ingress", "front", "spawner", "modelproxy", "tunnel")
BUILDER: Final = "turn"  # builds an image and ends; not a service
ENGINE_SECONDS: Final = 20.0
RELOAD_SECONDS: Final = 310.0  # runtime/health.py waits for 300
SAID_MAX_CHARS: Final = 400
OUTDATED: Final = "its image is older than this checkout"
MISSING: Final = "install Docker, or on Debian as root let ./gatehouse up do it"


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


@dataclass(frozen=True, slots=True)
class Said:
    """What a program inside a container said: its exit code, its stdout, and the last line of its stderr."""

    code: int
    untrusted_text: str
    untrusted_complaint: str = ""

    @property
    def outdated(self) -> bool:
        """Whether the program in the container is older than this checkout and does not know the question."""
        return "usage: python -m runtime.health" in self.untrusted_complaint

    def json(self) -> dict[str, Any]:
        """Return the JSON object that it printed, or an empty one."""
        try:
            value = json.loads(self.untrusted_text)
        except (ValueError, RecursionError):
            return {}
        return value if isinstance(value, dict) else {}

    def reason(self) -> str:
        """Say in one line why it did not do what it was asked."""
        body = self.json()
        for key in ("reason", "detail", "error"):
            if isinstance(body.get(key), str) and body[key]:
                return line_of(body[key])
        return line_of(self.untrusted_complaint or self.untrusted_text) or f"exit code {self.code}"


@dataclass(frozen=True, slots=True)
class Engine:
    """The docker client, for one compose project. `environ` is the client's own environment."""

    project: str
    environ: Mapping[str, str]

    @classmethod
    def of(cls, settings: Settings) -> Engine:
        """Return the engine of a run's settings."""
        return cls(settings.project, settings.environ)

    def containers(self) -> tuple[Container, ...]:
        """Return the project's containers, running or not, in the order of a request.

        Raises EngineUnavailable.
        """
        found = self._docker(
            "ps", "--all", "--no-trunc", "--quiet", "--filter", f"label={PROJECT_LABEL}={self.project}"
        ).split()
        if not found:
            return ()
        described = json.loads(self._docker("inspect", "--type", "container", *found))
        containers = [container_of(one) for one in described if not _is_one_off(one)]
        return tuple(sorted((one for one in containers if one.service != BUILDER), key=_place))

    def service(self, name: str) -> Container:
        """Return a service's running container. Raises ServiceUnreachable, or EngineUnavailable."""
        for container in self.containers():
            if container.service != name:
                continue
            if container.running:
                return container
            raise ServiceUnreachable(
                f"{name} of the stack {self.project} is {container.words()}", f"./gatehouse logs {name}"
            )
        raise ServiceUnreachable(f"no stack named {self.project} has a {name}", "./gatehouse up")

    def run_in(self, container: Container, *program: str, seconds: float = ENGINE_SECONDS) -> Said:
        """Run a program in a container and wait for its end. Raises EngineUnavailable."""
        return self._call(["exec", container.id, *program], seconds)

    def health(self, container: Container, question: str, seconds: float = ENGINE_SECONDS) -> Said:
        """Ask a service on its ops socket: `health`, `status`, `metrics` or `reload`."""
        return self.run_in(
            container, "python", "-m", "runtime.health", container.service, question, seconds=seconds
        )

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a docker client that its caller runs itself."""
        return ["docker", *arguments]

    def _docker(self, *arguments: str) -> str:
        said = self._call(list(arguments), ENGINE_SECONDS)
        if said.code:
            raise unavailable(said)
        return said.untrusted_text

    def _call(self, arguments: Sequence[str], seconds: float) -> Said:
        try:
            done = subprocess.run(  # noqa: S603 -- a fixed program with a list of arguments, no shell
                self.command(*arguments),
                env=dict(self.environ),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=seconds,
                check=False,
            )
        except FileNotFoundError as error:
            raise EngineUnavailable("there is no docker on the PATH", MISSING) from error
        except PermissionError as error:
            raise EngineUnavailable("the docker on the PATH may not be run by this user") from error
        except subprocess.TimeoutExpired as error:
            raise EngineUnavailable(
                f"docker {arguments[0]} did not end within {seconds:.0f} s", "is the engine well? docker info"
            ) from error
        said = Said(
            done.returncode,
            done.stdout.decode("utf-8", "replace"),
            last_line(done.stderr.decode("utf-8", "replace")),
        )
        if said.code and is_engine_gone(said.untrusted_complaint):
            raise unavailable(said)
        return said


def own_address(settings: Settings) -> str:
    """Return the address of this checkout's stack: its published port, where AGENT_PORT does not say it.

    An instance may have a port of its own (`port:` in agent.yaml), and a second stack another than 8011. A
    host without an engine gets the default.
    """
    if settings.environ.get("AGENT_PORT", "").strip():
        return settings.url
    try:
        ports = [one.port for one in Engine.of(settings).containers() if one.running and one.port]
    except GatehouseError:
        ports = []
    return f"http://127.0.0.1:{ports[0]}" if ports else settings.url


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
        service=(settings.get("Labels") or {}).get(SERVICE_LABEL, ""),
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


def is_engine_gone(untrusted_complaint: str) -> bool:
    """Say whether the docker client speaks of the engine and not of what it was asked."""
    words = untrusted_complaint.lower()
    return any(
        part in words
        for part in (
            "cannot connect to the docker daemon",
            "permission denied while trying to connect",
            "error during connect",
            "failed to connect to the docker api",
        )
    )


def unavailable(said: Said) -> EngineUnavailable:
    """Return the error of an engine that did not answer."""
    complaint = line_of(said.untrusted_complaint) or f"docker ended with {said.code}"
    mend = (
        "use sudo, or join the group docker" if "permission denied" in complaint.lower() else "./gatehouse up"
    )
    return EngineUnavailable(f"the engine does not answer: {complaint}", mend)


def line_of(untrusted_text: str, most: int = SAID_MAX_CHARS) -> str:
    """Return a text as one printable line of at most `most` characters, without the full stop at its end."""
    line = " ".join(printable(untrusted_text[: most * 4]).split()).rstrip(".")
    return line if len(line) <= most else f"{line[: most - 1]}…"


def last_line(untrusted_text: str) -> str:
    """Return the last line that says anything."""
    lines = untrusted_text.split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _health(state: Mapping[str, Any]) -> str:
    word = (state.get("Health") or {}).get("Status", "")
    return "" if word == "none" else str(word)


def _is_one_off(described: Mapping[str, Any]) -> bool:
    return (described["Config"].get("Labels") or {}).get(ONE_OFF_LABEL) == "True"


def _place(container: Container) -> tuple[int, str]:
    known = SERVICES.index(container.service) if container.service in SERVICES else len(SERVICES)
    return known, container.service
