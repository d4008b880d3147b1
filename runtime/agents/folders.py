"""Knows the folders below `instances/`: which hold a persona, and what is wrong with one that does not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from runtime.agents.placeholders import TEMPLATE
from runtime.agents.quoting import shown
from runtime.errors import Problem

if TYPE_CHECKING:
    from pathlib import Path

AGENT_FILE = "agent.yaml"
NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,62}")
_LIKELY = ("agent.yml", "agent.yaml.txt", "Agent.yaml", "agent.YAML", "agent.json")
NEW = "`./gatehouse new NAME` makes one from the template"


def instance_names(root: Path) -> tuple[str, ...]:
    """Return the names of the folders under `root/instances` that hold an agent file, sorted."""
    return tuple(sorted(path.parent.name for path in (root / "instances").glob(f"*/{AGENT_FILE}")))


def folder_names(root: Path) -> tuple[str, ...]:
    """Return the names of all folders under `root/instances`, but for hidden ones and Python's, sorted."""
    paths = (root / "instances").glob("*/")
    return tuple(
        sorted(path.name for path in paths if not path.name.startswith((".", "__")) and path.is_dir())
    )


def refused_name(root: Path, name: str) -> Problem | None:
    """Return what is wrong with `name` as a folder's name, or None."""
    if name == TEMPLATE or NAME.fullmatch(name):
        return None
    mend = "use lower-case letters, digits, - and _, at most 63 characters"
    if name not in folder_names(root):
        return Problem("instances", 0, 0, "", f"has no instance named {name[:80]!r}", mend)
    better = re.sub(r"[^a-z0-9_-]", "-", name.lower()).lstrip("-")[:63]
    if better:
        mend = f"rename the folder to `{better}`: {mend}"
    message = f"has a folder {shown(name)!r}, which is no name of an instance"
    return Problem("instances", 0, 0, "", message, mend)


def refused_template() -> Problem:
    """Return why the template cannot be served."""
    message = "is what a persona is copied from, and is none itself"
    mend = "run `./gatehouse new NAME`, which copies and fills it, and set GATEHOUSE_AGENT=NAME"
    return Problem(f"instances/{TEMPLATE}", 0, 0, "", message, mend)


def missing_file(root: Path, name: str, why: str) -> Problem:
    """Return that the instance's agent file cannot be read (`why`), with the likely mend."""
    where = f"instances/{name}/{AGENT_FILE}"
    folder = root / "instances" / name
    for likely in _LIKELY:
        if (folder / likely).is_file() and not (folder / AGENT_FILE).exists():
            return Problem(where, 0, 0, "", why, f"rename {likely} to {AGENT_FILE}")
    if folder.is_dir():
        mend = f"write it, as instances/{TEMPLATE}/{AGENT_FILE} shows, or remove the folder"
        return Problem(where, 0, 0, "", why, mend)
    known = ", ".join(one for one in instance_names(root) if one != TEMPLATE) or "none yet"
    return Problem(where, 0, 0, "", why, f"there are: {known}; `./gatehouse new {name}` makes it")
