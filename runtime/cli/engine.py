"""The stack as its engine knows it: docker as a program, and containers by compose's labels.

Why no library: whoever imports `docker` holds the engine's socket, and that is the spawner alone
(architecture §2).
"""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runtime.cli.containers import FOLDER_LABEL, PROJECT_LABEL, container_of, is_service, labels_of, place
from runtime.cli.said import Said, is_engine_gone, last_line, line_of, unavailable
from runtime.errors import EngineUnavailable, ServiceUnreachable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from runtime.cli.containers import Container
    from runtime.cli.settings import Settings

AGENT: Final = "GATEHOUSE_AGENT"
ENGINE_SECONDS: Final = 20.0
RELOAD_SECONDS: Final = 310.0  # runtime/health.py waits for 300
FORGET_SECONDS: Final = 70.0  # and for 60
MISSING: Final = "install Docker, or on Debian as root let ./gatehouse up do it"


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
        kept = [one for one in described if is_service(one)]
        self._refuse_others(kept)
        containers = sorted(map(container_of, kept), key=place)
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

    def run_in(
        self,
        container: Container,
        *program: str,
        seconds: float = ENGINE_SECONDS,
        stdin: bytes | None = None,
    ) -> Said:
        """Run a program in a container and wait for its end; it reads `stdin`. Raises EngineUnavailable."""
        interactive = () if stdin is None else ("--interactive",)
        return self._call(["exec", *interactive, container.id, *program], seconds, stdin)

    def health(
        self,
        container: Container,
        question: str,
        seconds: float = ENGINE_SECONDS,
        stdin: bytes | None = None,
    ) -> Said:
        """Ask a service on its ops socket one of the questions of runtime/health.py; some send `stdin`."""
        program = ("python", "-m", "runtime.health", container.service, question)
        return self.run_in(container, *program, seconds=seconds, stdin=stdin)

    def command(self, *arguments: str) -> list[str]:
        """Return the command line of a docker client that its caller runs itself."""
        return ["docker", *arguments]

    def _refuse_others(self, described: Sequence[Mapping[str, Any]]) -> None:
        """Raise ServiceUnreachable when a container was started from another checkout than `root`."""
        if self.root is None:
            return
        here = os.path.realpath(self.root)
        for one in described:
            folder = labels_of(one).get(FOLDER_LABEL)
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

    def _call(self, arguments: Sequence[str], seconds: float, stdin: bytes | None = None) -> Said:
        try:
            done = subprocess.run(  # noqa: S603 -- a fixed program with a list of arguments, no shell
                self.command(*arguments),
                env=dict(self.environ),
                stdin=subprocess.DEVNULL if stdin is None else None,
                input=stdin,
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
