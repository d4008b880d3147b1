"""The stack as its engine knows it: docker as a program, and containers by compose's labels.

Why no library: whoever imports `docker` holds the engine's socket, and that is the spawner alone
(architecture §2). What a container or the engine says is text from elsewhere, so it is printed through
`output.printable`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from runtime.cli.output import printable
from runtime.errors import EngineUnavailable, ServiceUnreachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from runtime.cli.settings import Settings

PROJECT_LABEL: Final = "com.docker.compose.project"
SERVICE_LABEL: Final = "com.docker.compose.service"
FOLDER_LABEL: Final = "com.docker.compose.project.working_dir"
SERVICE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")  # any image may bring labels of its own
ONE_OFF_LABEL: Final = "com.docker.compose.oneoff"
# In the order of a request; what is not here comes after them by name.
SERVICES: Final = ("ingress", "front", "spawner", "modelproxy", "tunnel")
BUILDER: Final = "turn"  # builds an image and ends; not a service
AGENT: Final = "GATEHOUSE_AGENT"
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
    """The docker client, for one compose project. `environ` is the client's own environment.

    `root` is the checkout whose stack it is; None takes any.
    """

    project: str
    environ: Mapping[str, str]
    root: Path | None = None

    @classmethod
    def of(cls, settings: Settings) -> Engine:
        """Return the engine of a run's settings."""
        return cls(settings.project, settings.environ, settings.root)

    def containers(self, *, several: bool = False) -> tuple[Container, ...]:
        """Return the project's containers, running or not, in the order of a request.

        Raises EngineUnavailable; ServiceUnreachable for containers of another checkout, or (but for
        `several`, which a start may leave for a moment) more than one of a service: who could say which of
        them is asked?
        """
        found = self._docker(
            "ps", "--all", "--no-trunc", "--quiet", "--filter", f"label={PROJECT_LABEL}={self.project}"
        ).split()
        if not found:
            return ()
        described = json.loads(self._docker("inspect", "--type", "container", *found))
        kept = [one for one in described if not _is_one_off(one) and _is_service(one)]
        self._refuse_others(kept)
        containers = sorted(map(container_of, kept), key=_place)
        names = [one.service for one in containers]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None and not several:
            raise ServiceUnreachable(
                f"the stack {self.project} has {names.count(twice)} containers of {twice}",
                f"see docker ps --all --filter label={PROJECT_LABEL}={self.project}",
            )
        return tuple(containers)

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

    def _refuse_others(self, described: Sequence[Mapping[str, Any]]) -> None:
        """Raise ServiceUnreachable when a container was started from another checkout than `root`."""
        if self.root is None:
            return
        here = os.path.realpath(self.root)
        for one in described:
            folder = _labels(one).get(FOLDER_LABEL)
            if folder and os.path.realpath(folder) != here:
                raise ServiceUnreachable(
                    f"the stack {self.project} runs from {line_of(folder, 200)}, another checkout",
                    "run the command there, or set COMPOSE_PROJECT_NAME",
                )

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
        except (FileNotFoundError, NotADirectoryError) as error:
            raise EngineUnavailable("there is no docker on the PATH", MISSING) from error
        except PermissionError as error:
            raise EngineUnavailable("the docker on the PATH may not be run by this user") from error
        except OSError as error:
            raise EngineUnavailable(f"docker cannot be started: {error.strerror}", MISSING) from error
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


def own_stack(settings: Settings) -> tuple[str, str]:
    """Return the address of this checkout's stack, and the instance that it serves ("" where nobody tells).

    A stack that is named by COMPOSE_PROJECT_NAME is asked at the port that it has published, whatever
    AGENT_PORT says; else AGENT_PORT decides. An instance may have a port of its own (`port:` in agent.yaml),
    and where no engine tells, the instance's files do. Raises UsageError when AGENT_PORT is no port,
    ServiceUnreachable when no stack of the given name runs.
    """
    settings.refuse_port()
    named = bool(settings.environ.get("COMPOSE_PROJECT_NAME", "").strip())
    given = bool(settings.environ.get("AGENT_PORT", "").strip())
    try:
        containers = Engine.of(settings).containers()
    except EngineUnavailable:
        containers = None
    except ServiceUnreachable:
        if named or not given:
            raise
        containers = None
    port = next((one.port for one in containers or () if one.running and one.port), None)
    if named and containers is not None and port is None:
        raise ServiceUnreachable(f"no stack named {settings.project} is there", "./gatehouse up")
    if port is not None and (named or not given or port == settings.port):
        serves = next((one.environ.get(AGENT, "") for one in containers or () if one.service == "front"), "")
        return f"http://127.0.0.1:{port}", serves
    if given:
        return settings.url, ""
    from runtime.cli.waiting import port_of  # noqa: PLC0415 -- the loader is not needed where a stack runs

    port = port_of(settings.root, settings.agent, settings.environ)
    return (f"http://127.0.0.1:{port}" if port else settings.url), ""


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
        service=_labels(described).get(SERVICE_LABEL, ""),
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
    return _labels(described).get(ONE_OFF_LABEL) == "True"


def _is_service(described: Mapping[str, Any]) -> bool:
    name = _labels(described).get(SERVICE_LABEL, "")
    return name != BUILDER and SERVICE_NAME.fullmatch(name) is not None


def _labels(described: Mapping[str, Any]) -> Mapping[str, str]:
    return described["Config"].get("Labels") or {}


def _place(container: Container) -> tuple[int, str]:
    known = SERVICES.index(container.service) if container.service in SERVICES else len(SERVICES)
    return known, container.service
