"""What the commands know of this checkout and its stack: the one place of the CLI that reads our settings.

`./gatehouse` has put the settings of `.env` into the environment already, so what is set there holds for
every command alike (compose/host/settings.sh).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

_CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class Settings:
    """One run's settings.

    `root` is the repository's root, `project` the compose project of the stack, `port` the one that the stack
    answers on (0 when AGENT_PORT is none, which only `url` minds), `agent` the instance that it serves, and
    `environ` the whole environment, for what a command passes on (the overrides of an instance, HOME, PATH,
    DOCKER_HOST).
    """

    root: Path
    project: str
    port: int
    agent: str
    environ: Mapping[str, str]

    @property
    def url(self) -> str:
        """The address of this checkout's own stack. Raises UsageError when AGENT_PORT is no port."""
        self.refuse_port()
        return f"http://127.0.0.1:{self.port}"

    def refuse_port(self) -> None:
        """Raise UsageError when AGENT_PORT is no port."""
        if not self.port:
            wrong = self.environ.get("AGENT_PORT", "")[:80]
            raise UsageError(f"AGENT_PORT is not a port: {wrong}", "give a number from 1 to 65535")


pass_settings = click.make_pass_decorator(Settings)


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings of an environment; one that is set to nothing counts as not set."""
    port = environ.get("AGENT_PORT", "").strip() or "8011"
    number = int(port) if port.isascii() and port.isdigit() and len(port) <= 5 else 0
    return Settings(
        root=Path(environ.get("GATEHOUSE_ROOT", "").strip() or _CHECKOUT),
        project=environ.get("COMPOSE_PROJECT_NAME", "").strip() or "gatehouse",
        port=number if number <= 65535 else 0,
        agent=environ.get("GATEHOUSE_AGENT", "").strip() or "ada",
        environ=environ,
    )
