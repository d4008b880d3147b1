"""The spawner's settings: the only place where it reads its environment.

One table gives name, default, unit and meaning; docs/reference/spawner-settings.md is written from it by
`python -m runtime.spawner.settings`, and a test compares them. What an agent is comes from its instance
folder.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime import layout
from runtime.errors import UsageError
from runtime.spawner.policy import RUNC, RUNTIMES
from runtime.turn.sandboxed import refuse_unsandboxed_settings

if TYPE_CHECKING:
    from collections.abc import Mapping

MIB = 1024 * 1024
MEND = "mend it or leave it unset; see docs/reference/spawner-settings.md"


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable: its name, default as text, unit ("" for none) and meaning in a sentence."""

    name: str
    default: str
    unit: str
    description: str


TABLE = (
    Setting(
        "GATEHOUSE_AGENT", "ada", "", "Names of the instances that this spawner runs, separated by commas."
    ),
    Setting(
        "TURN_IMAGE", "gatehouse-turn:dev", "", "The image that turns run in; resolved to its id at start."
    ),
    Setting("TURN_RUNTIME", RUNC, "", f"The engine's runtime for turns: {' or '.join(RUNTIMES)}."),
    Setting("TURN_MEMORY_MIB", "1024", "MiB", "Memory of one turn, tmpfs included; there is no swap."),
    Setting("TURN_CPUS", "2", "processors", "Processor time of one turn, at most what the host has."),
    Setting("TURN_PIDS", "256", "processes", "Processes and threads of one turn."),
    Setting("SPAWNER_MAX_RUNNING", "4", "turns", "Turns at the same time; the next is answered with 429."),
    Setting("SPAWNER_STARTS_PER_MINUTE", "120", "turns", "Turns started within any minute."),
    Setting("SPAWNER_MEMORY_MIB", "4096", "MiB", "Memory that all running turns may reserve together."),
    Setting("DOCKER_SOCKET_PATH", "/var/run/docker.sock", "", "The engine's socket as the spawner sees it."),
    Setting("PACKS_VOLUME", "", "", "Name of the packs volume; empty: found in the spawner's own mounts."),
    Setting("DOORS_VOLUME", "", "", "Name of the doors volume; empty: found in the spawner's own mounts."),
)


@dataclass(frozen=True, slots=True)
class Paths:
    """Where the spawner's files are: layout.py in a container, other folders in tests."""

    root: Path = layout.ROOT
    packs: Path = layout.PACKS
    doors: Path = layout.DOORS
    spawn_socket: Path = layout.SPAWN_SOCKET
    model_control_socket: Path = layout.MODEL_CONTROL_SOCKET
    ops: Path = layout.OPS
    seccomp: Path = layout.ROOT / "sandbox" / "seccomp.json"
    group: int = layout.GID_GATEHOUSE


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings, checked. Sizes in bytes; see TABLE for the meanings."""

    agents: tuple[str, ...]
    turn_image: str
    runtime: str
    turn_memory_bytes: int
    turn_cpus: float
    turn_pids: int
    max_running: int
    starts_per_minute: int
    memory_bytes: int
    docker_socket: Path
    packs_volume: str
    doors_volume: str


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings in `environ`; a variable set to nothing counts as not set. Raises UsageError."""
    values = {one.name: environ.get(one.name, "").strip() or one.default for one in TABLE}
    agents = tuple(name.strip() for name in values["GATEHOUSE_AGENT"].split(",") if name.strip())
    if not agents or len(set(agents)) != len(agents):
        raise UsageError("GATEHOUSE_AGENT names no instance, or one twice", "give names separated by commas")
    if values["TURN_RUNTIME"] not in RUNTIMES:
        raise UsageError(f"TURN_RUNTIME is none of {', '.join(RUNTIMES)}", MEND)
    return Settings(
        agents=agents,
        turn_image=values["TURN_IMAGE"],
        runtime=values["TURN_RUNTIME"],
        turn_memory_bytes=_number(values, "TURN_MEMORY_MIB", 256, 65_536) * MIB,
        turn_cpus=_cpus(values["TURN_CPUS"]),
        turn_pids=_number(values, "TURN_PIDS", 32, 4096),
        max_running=_number(values, "SPAWNER_MAX_RUNNING", 1, 64),
        starts_per_minute=_number(values, "SPAWNER_STARTS_PER_MINUTE", 1, 10_000),
        memory_bytes=_number(values, "SPAWNER_MEMORY_MIB", 256, 1_048_576) * MIB,
        docker_socket=Path(values["DOCKER_SOCKET_PATH"]),
        packs_volume=values["PACKS_VOLUME"],
        doors_volume=values["DOORS_VOLUME"],
    )


def start_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings of a start in `environ`. Raises UsageError, also for what has no effect here."""
    refuse_unsandboxed_settings(environ)
    return read_settings(environ)


def _number(values: Mapping[str, str], name: str, low: int, high: int) -> int:
    text = values[name]
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and low <= int(text) <= high):
        raise UsageError(f"{name} is not a whole number from {low} to {high}", MEND)
    return int(text)


def _cpus(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.1 <= value <= 256:
        raise UsageError("TURN_CPUS is not a number from 0.1 to 256", MEND)
    return value


def _shown(default: str) -> str:
    return f"`{default}`" if default else "empty"


def settings_page() -> str:
    """Return docs/reference/spawner-settings.md."""
    rows = [f"| `{one.name}` | {_shown(one.default)} | {one.unit} | {one.description} |" for one in TABLE]
    head = [
        "# Settings of the spawner",
        "",
        "Written by `python -m runtime.spawner.settings` from `runtime/spawner/settings.py`.",
        "They are environment variables of the `spawner` service.",
        "",
        "| variable | default | unit | meaning |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    sys.stdout.write(settings_page())
