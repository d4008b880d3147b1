"""The pack that turns without a sandbox read: the same copy with the same refusals, in a folder of our own.

So a turn sees here what it will see in the stack, and nothing else by that way: no link, no special file, no
file that was changed half-way through a turn. The folder belongs to the user who started us (0700) and goes
with us.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runtime.errors import HostError
from runtime.spawner.packs import build_pack

if TYPE_CHECKING:
    from runtime.agents.definition import AgentDefinition

PREFIX: Final = "gatehouse-"
PACK: Final = "pack"
PRIVATE: Final = 0o700


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One instance as it was when we started, and room for its turns."""

    folder: Path
    digest: str
    persona_bytes: int
    hidden: tuple[str, ...]
    not_inlined: tuple[str, ...]

    @property
    def pack(self) -> Path:
        """The copy: `instance`, `grounding`, `extra`."""
        return self.folder / PACK

    @property
    def grounding(self) -> Path:
        """The working directory of every turn."""
        return self.pack / "grounding"

    @property
    def extra(self) -> Path:
        """The extra directories, named 0, 1 and so on."""
        return self.pack / "extra"

    @property
    def persona(self) -> Path:
        """The persona, placeholders filled in for this folder."""
        return self.pack / "instance" / "system-prompt.md"

    @property
    def tools(self) -> Path:
        """The granted scripts."""
        return self.pack / "instance" / "tools"

    def turn_folder(self, turn: str) -> Path:
        """Make the private folder of one turn: its context, its HOME for scripts, its door."""
        folder = self.folder / turn
        folder.mkdir(PRIVATE)
        return folder

    def remove(self) -> None:
        """Remove all of it."""
        shutil.rmtree(self.folder, ignore_errors=True)


def take(agent: AgentDefinition, root: Path, place: str = "") -> Snapshot:
    """Copy the agent's files into a new folder in `place`, or in the system's place for temporary ones.

    `root` stands for the repository's root in what refusals name. Raises ConfigError with every refusal, and
    HostError when nothing can be written there.
    """
    try:
        folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=place or None)).resolve()
    except OSError as error:
        raise HostError(f"no temporary folder can be made: {error.strerror}", "set TMPDIR") from error
    try:
        instance = str(folder / PACK / "instance")
        pack = build_pack(agent, folder, root=root, instance_dir=instance)
        (folder / pack.digest).rename(folder / PACK)
    except BaseException:  # cancellation too leaves no copy behind, and passes on
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return Snapshot(folder, pack.digest, pack.persona_bytes, pack.hidden, pack.not_inlined)


def find_program(name: str, search: str) -> str:
    """Return the absolute path of the program that `name` stands for, or "" where there is none.

    A name without a slash is looked for in `search`, a PATH, whose relative parts are left out: the CLI
    starts in a folder of documents. A name with one is a path from where we stand; `~` is the user's home.
    """
    if "\0" in name:
        return ""
    if "/" in name:
        path = os.path.abspath(os.path.expanduser(name))  # noqa: PTH100, PTH111  as a shell would, links kept
        return path if os.access(path, os.X_OK) and Path(path).is_file() else ""
    absolute = os.pathsep.join(part for part in search.split(os.pathsep) if part.startswith("/"))
    return shutil.which(name, path=absolute) or ""
