"""Builds and keeps packs: the read-only snapshot of one agent's files that its turns mount (architecture §4).

Why snapshots: nothing changes while a turn reads, no path of the operator shows in a turn's mountinfo, and
what is in a turn was checked file by file. A pack is named by its content, so the same files give the same
name on every host.

    packs/<sha256>/instance/system-prompt.md    the persona, placeholders filled in, inline grounding appended
    packs/<sha256>/instance/tools/NAME.py       the tools folder's scripts
    packs/<sha256>/grounding/                   mounted at /grounding, the turn's working directory
    packs/<sha256>/extra/N/                     mounted at /extra/N

docs/explanation/packs.md says what is taken, what is left out and what is refused.
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
import re
import secrets
import shutil
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from runtime import layout
from runtime.agents.documents import from_root
from runtime.agents.inline import inline_files, join_inline
from runtime.errors import ConfigError, HostError, Problem
from runtime.spawner.collect import DIRECTORY_MODE, Collector, content_digest

if TYPE_CHECKING:
    from collections.abc import Collection

    from runtime.agents.definition import AgentDefinition

PACK_NAME = re.compile(r"[0-9a-f]{64}")
UNFINISHED = ".new-"
OWNER_FILE = ".owner"
TOOLS_FOLDER = "tools"  # layout.TURN_TOOLS is this folder of layout.TURN_INSTANCE
OWNER_PATTERN = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Pack:
    """One pack on the volume: its name, the size of its persona in bytes, and what was left out of it."""

    digest: str
    persona_bytes: int
    hidden: tuple[str, ...] = ()
    not_inlined: tuple[str, ...] = ()


def build_pack(
    agent: AgentDefinition,
    folder: Path,
    *,
    root: Path | None = None,
    instance_dir: str = layout.TURN_INSTANCE,
    keep: bool = True,
) -> Pack:
    """Copy the agent's files into `folder`/<digest>/ and return the pack; an equal pack stays as it is.

    The copy is made under another name and renamed, so that a pack is whole or absent. `root` stands for the
    repository's root in what refusals name (layout.ROOT, unless given); `instance_dir` is where the persona
    will find its instance. Without `keep` nothing stays in `folder`: the answer says what the files would
    give. Raises ConfigError with every refusal, and HostError when the volume cannot be written.
    """
    unfinished = folder / f"{UNFINISHED}{secrets.token_hex(8)}"
    try:
        pack = _build(agent, unfinished, root or layout.ROOT, instance_dir)
        if keep:
            _place(unfinished, folder / pack.digest, pack.digest)
    except OSError as error:
        raise HostError(
            f"the pack of {agent.id} cannot be written: {error}", "free space on the volume and start again"
        ) from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return pack


def _build(agent: AgentDefinition, unfinished: Path, root: Path, instance_dir: str) -> Pack:
    unfinished.mkdir(DIRECTORY_MODE)
    collector = Collector(root=root)
    collector.copy(agent.grounding.directory, unfinished / "grounding", "grounding")
    for number, extra in enumerate(agent.grounding.extra):
        collector.copy(extra, unfinished / "extra" / str(number), f"extra/{number}")
    tools = unfinished / "instance" / "tools"
    if agent.tools.granted:
        collector.copy(agent.tools_dir, tools, "instance/tools", suffix=".py")
    else:
        tools.mkdir(DIRECTORY_MODE, parents=True)
    problems = [*collector.problems, *_missing_tools(agent, collector)]
    if problems:
        raise ConfigError(tuple(problems))
    persona = agent.render_persona(tools_dir=f"{instance_dir}/{TOOLS_FOLDER}", instance_dir=instance_dir)
    snapshot = dataclasses.replace(agent.grounding, directory=unfinished / "grounding")
    inline = inline_files(snapshot)
    prompt = join_inline(persona, inline).encode()
    collector.add(unfinished / "instance" / "system-prompt.md", "instance/system-prompt.md", prompt)
    digest = content_digest(collector.digests)
    skipped = tuple(f"{one.path}: {one.reason}" for one in inline.skipped)
    return Pack(digest, len(prompt), tuple(collector.hidden), skipped)


def _missing_tools(agent: AgentDefinition, collector: Collector) -> list[Problem]:
    return [
        Problem(
            from_root(agent.tools_dir / f"{name}.py", collector.root),
            0,
            0,
            "",
            "is granted but not there",
            "add it",
        )
        for name in agent.tools.granted
        if f"instance/tools/{name}.py" not in collector.digests
    ]


def _place(unfinished: Path, final: Path, digest: str) -> None:
    """Rename the copy to its name; a pack of that name that is not what it says is replaced."""
    for directory, _names, _files in os.walk(unfinished):
        os.chmod(directory, DIRECTORY_MODE)  # noqa: PTH101  the umask may have taken what a turn's uid needs
    if final.exists():
        if pack_digest(final) == digest:
            return
        shutil.rmtree(final)
    unfinished.rename(final)


def pack_digest(pack: Path) -> str:
    """Return the digest that the pack's content gives now; "" when it holds anything but regular files."""
    digests: dict[str, tuple[int, str]] = {}
    for directory, names, files in os.walk(pack):
        for name in (*names, *files):
            path = Path(directory, name)
            mode = path.lstat().st_mode
            if stat.S_ISREG(mode):
                with path.open("rb") as file:
                    content = hashlib.file_digest(file, "sha256").hexdigest()
                digests[str(path.relative_to(pack))] = (path.stat().st_size, content)
            elif not stat.S_ISDIR(mode):
                return ""
    return content_digest(digests)


def prune(folder: Path, keep: Collection[str]) -> list[str]:
    """Remove packs that are not in `keep` and copies that were never finished; returns the names removed.

    What cannot be removed stays: it is somebody else's, or an engine still holds it, and the next call tries
    again.
    """
    removed = []
    for path in sorted(folder.iterdir()):
        is_old = PACK_NAME.fullmatch(path.name) is not None and path.name not in keep
        if is_old or path.name.startswith(UNFINISHED):
            shutil.rmtree(path, ignore_errors=True)
            if not path.exists():
                removed.append(path.name)
    return removed


def owner_id(folder: Path) -> str:
    """Return the random id (32 hex digits) of this packs volume's spawner, made at the first call.

    It marks our containers, so that a restarted spawner finds its own and no other's (architecture §4,
    "Lifecycle").
    """
    path = folder / OWNER_FILE
    try:
        known = path.read_text("ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        known = ""
    if OWNER_PATTERN.fullmatch(known):
        return known
    fresh = secrets.token_hex(16)
    unfinished = folder / f"{OWNER_FILE}-{fresh}"
    unfinished.write_text(fresh, "ascii")
    unfinished.replace(path)
    return fresh
