"""Copies what an owner gave as grounding or tools: regular files alone, everything else refused by name.

Why so strict: a pack is what hostile code inside a turn may read. A link could point it at the operator's
files (abuse tests F03, F04), a FIFO would hold the CLI or this process for ever (F05), and a million files
would fill the volume (R06). So nothing is opened that could block, nothing is followed, and every source has
bounds.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

MAX_ENTRIES = 20_000
MAX_BYTES = 512 * 1024 * 1024
MAX_DEPTH = 32
MAX_PROBLEMS = 50
CHUNK_BYTES = 1024 * 1024

DIRECTORY_MODE = 0o755
FILE_MODE = 0o444

_KINDS = (
    (stat.S_ISLNK, "a symbolic link", "replace it with a copy of the file that it means"),
    (stat.S_ISFIFO, "a FIFO", "remove it; a pack takes regular files"),
    (stat.S_ISSOCK, "a socket", "remove it; a pack takes regular files"),
    (stat.S_ISCHR, "a character device", "remove it; a pack takes regular files"),
    (stat.S_ISBLK, "a block device", "remove it; a pack takes regular files"),
)


class Full(Exception):
    """The bounds of a pack are reached, so that the walk stops."""


def content_digest(digests: Mapping[str, tuple[int, str]]) -> str:
    """Return SHA-256 (64 hex digits) over sorted paths, each with its file's size and SHA-256."""
    total = hashlib.sha256()
    for inside, (size, content) in sorted(digests.items()):
        total.update(f"{len(inside.encode())}:{inside}:{size}:{content}\n".encode())
    return total.hexdigest()


@dataclass(slots=True)
class Collector:
    """Copies directories into one pack; remembers each file's digest, each refusal and each hidden entry.

    `digests` maps the path inside the pack to (size, SHA-256). Bounds hold for the whole pack.
    """

    max_entries: int = MAX_ENTRIES
    max_bytes: int = MAX_BYTES
    digests: dict[str, tuple[int, str]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    entries: int = 0
    total_bytes: int = 0

    def copy(self, source: Path, target: Path, inside: str, *, suffix: str = "") -> None:
        """Copy the directory `source` to `target`, which is `inside` in the pack; only `*suffix` if given.

        A configured directory may itself be a link, because its owner wrote its name; nothing below it may.
        """
        target.mkdir(DIRECTORY_MODE, parents=True)
        try:
            descriptor = os.open(source, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            self._refuse(source, "", f"cannot be opened: {error.strerror}", "give a readable directory")
            return
        with _closing(descriptor), contextlib.suppress(Full):
            self._directory(descriptor, source, target, inside, suffix, 0)

    def add(self, target: Path, inside: str, content: bytes) -> None:
        """Write one file of our own making into the pack."""
        target.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        with target.open("xb") as out:
            out.write(content)
        target.chmod(FILE_MODE)
        self.digests[inside] = (len(content), hashlib.sha256(content).hexdigest())

    def _directory(
        self, descriptor: int, source: Path, target: Path, inside: str, suffix: str, depth: int
    ) -> None:
        for name in self._names(descriptor, source):
            if name.startswith("."):
                self.hidden.append(f"{inside}/{name}")
                continue
            try:
                name.encode()
            except UnicodeEncodeError:
                self._refuse(source, ascii(name), "has a name that is not UTF-8", "rename it")
                continue
            if any(ord(character) < 0x20 or ord(character) == 0x7F for character in name):
                self._refuse(source, ascii(name), "has control characters in its name", "rename it")
                continue
            self._entry(descriptor, name, source / name, target / name, f"{inside}/{name}", suffix, depth)

    def _entry(
        self, parent: int, name: str, source: Path, target: Path, inside: str, suffix: str, depth: int
    ) -> None:
        mode = os.lstat(name, dir_fd=parent).st_mode
        for is_kind, kind, mend in _KINDS:
            if is_kind(mode):
                self._refuse(source, "", f"is {kind}", mend)
                return
        if stat.S_ISDIR(mode):
            if suffix:
                return
            if not (mode & 0o444 and mode & 0o111):
                mend = "make it readable for the spawner"
                self._refuse(source, "", "is a directory that nobody may read", mend)
                return
            if depth >= MAX_DEPTH:
                self._refuse(source, "", f"is more than {MAX_DEPTH} directories deep", "flatten the tree")
                return
            with self._opened(parent, name, source, os.O_DIRECTORY) as descriptor:
                if descriptor is not None:
                    target.mkdir(DIRECTORY_MODE)
                    self._directory(descriptor, source, target, inside, suffix, depth + 1)
        elif name.endswith(suffix):
            with self._opened(parent, name, source, os.O_NONBLOCK) as descriptor:
                if descriptor is not None:
                    self._file(descriptor, source, target, inside)

    def _file(self, descriptor: int, source: Path, target: Path, inside: str) -> None:
        """Copy an open file after asking the open file itself what it is: the name may have changed since."""
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            self._refuse(source, "", "is not a regular file", "remove it; a pack takes regular files")
            return
        if facts.st_nlink != 1:
            mend = "replace it with a copy (cp --no-preserve=links)"
            self._refuse(source, "", f"is a hard link, one of {facts.st_nlink} names of its file", mend)
            return
        total = hashlib.sha256()
        size = 0
        with target.open("xb") as out:
            while chunk := os.read(descriptor, CHUNK_BYTES):
                size += len(chunk)
                self.total_bytes += len(chunk)
                if self.total_bytes > self.max_bytes:
                    self._refuse(
                        source, "", f"makes the pack larger than {self.max_bytes} bytes", "give less"
                    )
                    raise Full
                total.update(chunk)
                out.write(chunk)
        target.chmod(FILE_MODE)
        self.digests[inside] = (size, total.hexdigest())

    @contextlib.contextmanager
    def _opened(self, parent: int, name: str, source: Path, flag: int) -> Generator[int | None, None, None]:
        """Open without following or waiting; yields None, with the refusal noted, when that fails."""
        try:
            descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | flag, dir_fd=parent)
        except OSError as error:
            what = "became a link while it was read" if error.errno == errno.ELOOP else "cannot be read"
            self._refuse(source, "", f"{what}: {error.strerror}", "make it readable for the spawner")
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
                    message = f"makes the pack hold more than {self.max_entries} entries"
                    self._refuse(source, "", message, "give less")
                    raise Full
                names.append(entry.name)
        return sorted(names)

    def _refuse(self, source: Path, name: str, message: str, mend: str) -> None:
        if len(self.problems) < MAX_PROBLEMS:
            self.problems.append(
                Problem(f"{source}/{name}" if name else str(source), 0, 0, "", message, mend)
            )


@contextlib.contextmanager
def _closing(descriptor: int) -> Generator[None, None, None]:
    try:
        yield
    finally:
        os.close(descriptor)
