"""Walks a directory of documents or tools: opens regular files alone and refuses everything else by name.

Why so strict: what is taken here is what hostile code inside a turn may read. A link could point it at the
operator's files (abuse tests F03, F04), a FIFO would hold the CLI or this process for ever (F05), and a
million files would fill the volume (R06). So nothing is opened that could block, nothing is followed, and
every source has bounds. `findings.py` walks to report, `spawner/collect.py` walks to copy: one set of rules,
so that `check` refuses what a pack would.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

MAX_ENTRIES = 20_000
MAX_BYTES = 512 * 1024 * 1024
MAX_DEPTH = 32
MAX_PROBLEMS = 50
STILL = "keep the folder still and start again"

_KINDS = (
    (stat.S_ISLNK, "a symbolic link", "replace it with a copy of the file that it means"),
    (stat.S_ISFIFO, "a FIFO", "remove it; a pack takes regular files"),
    (stat.S_ISSOCK, "a socket", "remove it; a pack takes regular files"),
    (stat.S_ISCHR, "a character device", "remove it; a pack takes regular files"),
    (stat.S_ISBLK, "a block device", "remove it; a pack takes regular files"),
)


class Full(Exception):
    """The bounds of a pack are reached, so that the walk stops."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that may enter a pack, while the walk stands at it.

    `inside` is its path below the walked directory, with slashes. `descriptor` is the open regular file, for
    as long as the walk stands here; None for a directory, which comes before what is in it.
    """

    path: Path
    inside: str
    descriptor: int | None = None


@dataclass(slots=True)
class Walk:
    """Walks directories under common bounds; remembers each refusal and each hidden entry.

    `root` is taken off the paths in messages, so that they read as the owner sees them. Bounds hold for all
    directories of one walk together.
    """

    max_entries: int = MAX_ENTRIES
    max_bytes: int = MAX_BYTES
    root: Path | None = None
    problems: list[Problem] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    entries: int = 0
    total_bytes: int = 0

    def below(self, source: Path, label: str, suffix: str = "") -> Generator[Entry, None, None]:
        """Yield what is below `source`, sorted, directories before their content; only `*suffix` if given.

        With a suffix, directories are left alone. `label` names `source` in `hidden`. A configured directory
        may itself be a link, because its owner wrote its name; nothing below it may. Raises Full.
        """
        try:
            descriptor = os.open(source, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            self.refuse(source, f"cannot be opened: {error.strerror}", "give a readable directory")
            return
        with _closing(descriptor):
            yield from self._directory(descriptor, source, "", label, suffix, 0)

    def take(self, path: Path, size: int) -> None:
        """Count `size` bytes of a file against the bounds. Raises Full, with the refusal noted."""
        self.total_bytes += size
        if self.total_bytes > self.max_bytes:
            self.refuse(path, f"makes the pack larger than {self.max_bytes} bytes", "give less")
            raise Full

    def refuse(self, path: Path, message: str, mend: str, name: str = "") -> None:
        """Note that `path`, or the entry `name` in it, cannot enter a pack."""
        if len(self.problems) < MAX_PROBLEMS:
            where = from_root(path, self.root)
            self.problems.append(Problem(f"{where}/{name}" if name else where, 0, 0, "", message, mend))

    def _directory(
        self, descriptor: int, source: Path, inside: str, label: str, suffix: str, depth: int
    ) -> Generator[Entry, None, None]:
        for name in self._names(descriptor, source):
            path = f"{inside}/{name}" if inside else name
            if name.startswith("."):
                self.hidden.append(_printable(f"{label}/{path}"))
                continue
            try:
                name.encode()
            except UnicodeEncodeError:
                self.refuse(source, "has a name that is not UTF-8", "rename it", ascii(name))
                continue
            if any(ord(character) < 0x20 or ord(character) == 0x7F for character in name):
                self.refuse(source, "has control characters in its name", "rename it", ascii(name))
                continue
            yield from self._entry(descriptor, source / name, path, label, suffix, depth)

    def _entry(
        self, parent: int, path: Path, inside: str, label: str, suffix: str, depth: int
    ) -> Generator[Entry, None, None]:
        try:
            named = os.lstat(path.name, dir_fd=parent)
        except OSError as error:
            self.refuse(path, f"cannot be read: {error.strerror}", STILL)
            return
        mode = named.st_mode
        for is_kind, kind, mend in _KINDS:
            if is_kind(mode):
                self.refuse(path, f"is {kind}", mend)
                return
        if stat.S_ISDIR(mode):
            if not suffix:
                yield from self._folder(parent, mode, path, inside, label, depth)
        elif path.name.endswith(suffix):
            with self._opened(parent, path, os.O_NONBLOCK) as descriptor:
                if descriptor is not None and self._is_plain(descriptor, named, path):
                    yield Entry(path, inside, descriptor)

    def _folder(
        self, parent: int, mode: int, path: Path, inside: str, label: str, depth: int
    ) -> Generator[Entry, None, None]:
        if not (mode & 0o444 and mode & 0o111):
            self.refuse(path, "is a directory that nobody may read", "make it readable for the spawner")
            return
        if depth >= MAX_DEPTH:
            self.refuse(path, f"is more than {MAX_DEPTH} directories deep", "flatten the tree")
            return
        with self._opened(parent, path, os.O_DIRECTORY) as descriptor:
            if descriptor is not None:
                yield Entry(path, inside)
                yield from self._directory(descriptor, path, inside, label, "", depth + 1)

    def _is_plain(self, descriptor: int, named: os.stat_result, path: Path) -> bool:
        """Ask the open file itself what it is: the name may have changed since.

        It must be the file that had the name before it was opened, too: a name that is swapped for a hard
        link and back leaves an open file of one name again.
        """
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            self.refuse(path, "is not a regular file", "remove it; a pack takes regular files")
            return False
        names = max(facts.st_nlink, named.st_nlink)
        if names != 1:
            mend = "replace it with a copy (cp --no-preserve=links)"
            self.refuse(path, f"is a hard link, one of {names} names of its file", mend)
            return False
        if (facts.st_dev, facts.st_ino) != (named.st_dev, named.st_ino):
            self.refuse(path, "became another file while it was read", STILL)
            return False
        return True

    @contextlib.contextmanager
    def _opened(self, parent: int, path: Path, flag: int) -> Generator[int | None, None, None]:
        """Open without following or waiting; yields None, with the refusal noted, when that fails."""
        try:
            descriptor = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flag, dir_fd=parent)
        except OSError as error:
            what = "became a link while it was read" if error.errno == errno.ELOOP else "cannot be read"
            self.refuse(path, f"{what}: {error.strerror}", "make it readable for the spawner")
            yield None
            return
        with _closing(descriptor):
            yield descriptor

    def _names(self, descriptor: int, source: Path) -> list[str]:
        """Return a directory's names, sorted, and count them before they are all held."""
        names: list[str] = []
        with os.scandir(descriptor) as found:
            for entry in found:
                self.entries += 1
                if self.entries > self.max_entries:
                    self.refuse(
                        source, f"makes the pack hold more than {self.max_entries} entries", "give less"
                    )
                    raise Full
                names.append(entry.name)
        return sorted(names)


def from_root(path: Path, root: Path | None) -> str:
    """Return a path for a message: relative to `root` where it lies below, so not as a container sees it."""
    return os.fspath(path.relative_to(root)) if root is not None and root in path.parents else os.fspath(path)


def _printable(name: str) -> str:
    """Return a file's name as it can be shown and written as JSON."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return ascii(name)
    return name if name.isprintable() else ascii(name)


@contextlib.contextmanager
def _closing(descriptor: int) -> Generator[None, None, None]:
    try:
        yield
    finally:
        os.close(descriptor)
