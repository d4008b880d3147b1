"""What of the settings the running stack has not taken over, because only a start of it can.

A service is given its overrides and its published port when it starts. In the stack AGENT_PORT is always set,
so no service ever sees the `port` of its own files: it is compared here, on the host.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from runtime import layout
from runtime.agents.fields import ENVIRONMENT, OVERRIDES
from runtime.agents.instance import load_instance
from runtime.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runtime.cli.containers import Container
    from runtime.cli.settings import Settings

# What the services read an instance with; a reload cannot change it.
FIXED: Final = (*OVERRIDES, ENVIRONMENT, "HOME")
PORT: Final = "AGENT_PORT"
NEVER: Final = "CLAUDE_BINARY"  # `up` refuses it, so no start would take it over


def overrides_waiting(here: Mapping[str, str], started: Mapping[str, str]) -> tuple[str, ...]:
    """Return the overrides that are set here and that a service was not started with, sorted."""
    return tuple(
        sorted(
            name
            for name in OVERRIDES
            if name != NEVER and here.get(name) and here[name] != started.get(name, "")
        )
    )


def port_waiting(
    settings: Settings, root: Path, agent: str, started: Mapping[str, str], published: int | None
) -> tuple[str, ...]:
    """Return `port` when the instance's files name another one than the stack is published on.

    Where the operator has set AGENT_PORT, the files do not decide.
    """
    if settings.environ.get(PORT, "").strip() or published is None:
        return ()
    port = port_of(root, agent, started)
    return () if port in {None, published} else ("port",)


def port_of(root: Path, agent: str, environ: Mapping[str, str]) -> int | None:
    """Return the port in an instance's files, or their default; None when the files cannot be served."""
    own = {name: environ[name] for name in FIXED if name in environ and name != PORT}
    try:
        return load_instance(root, agent, own, check_sources=False).network.port
    except ConfigError:
        return None


def instances_root(settings: Settings, spawner: Container | None) -> Path:
    """Return the folder whose `instances/` the stack reads: this checkout's, as a rule."""
    source = spawner.mounts.get(str(layout.INSTANCES)) if spawner is not None else None
    return Path(source).parent if source else settings.root


def published(containers: Iterable[Container]) -> int | None:
    """Return the port that the stack is published on, or None when it is not."""
    return next((one.port for one in containers if one.service == "ingress" and one.running), None)
