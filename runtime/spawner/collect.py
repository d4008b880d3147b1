"""Copies what an owner gave as grounding or tools into a pack, as `agents/documents.py` lets it in.

The walk opens regular files alone and follows nothing; here they are copied from the open file, with their
digest, under the bounds of one pack.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.agents.documents import Full, Walk

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from runtime.agents.documents import Entry

CHUNK_BYTES = 1024 * 1024
DIRECTORY_MODE = 0o755
FILE_MODE = 0o444


def content_digest(digests: Mapping[str, tuple[int, str]]) -> str:
    """Return SHA-256 (64 hex digits) over sorted paths, each with its file's size and SHA-256."""
    total = hashlib.sha256()
    for inside, (size, content) in sorted(digests.items()):
        total.update(f"{len(inside.encode())}:{inside}:{size}:{content}\n".encode())
    return total.hexdigest()


@dataclass(slots=True)
class Collector(Walk):
    """A walk that copies what it meets into one pack, and remembers each file's digest.

    `digests` maps the path inside the pack to (size, SHA-256).
    """

    digests: dict[str, tuple[int, str]] = field(default_factory=dict)

    def copy(self, source: Path, target: Path, inside: str, *, suffix: str = "") -> None:
        """Copy the directory `source` to `target`, which is `inside` in the pack; only `*suffix` if given."""
        target.mkdir(DIRECTORY_MODE, parents=True)
        with contextlib.suppress(Full), contextlib.closing(self.below(source, inside, suffix)) as found:
            for entry in found:
                if entry.descriptor is None:
                    (target / entry.inside).mkdir(DIRECTORY_MODE)
                else:
                    self._file(entry, entry.descriptor, target / entry.inside, f"{inside}/{entry.inside}")

    def add(self, target: Path, inside: str, content: bytes) -> None:
        """Write one file of our own making into the pack."""
        target.parent.mkdir(DIRECTORY_MODE, parents=True, exist_ok=True)
        with target.open("xb") as out:
            out.write(content)
        target.chmod(FILE_MODE)
        self.digests[inside] = (len(content), hashlib.sha256(content).hexdigest())

    def _file(self, entry: Entry, descriptor: int, target: Path, inside: str) -> None:
        total = hashlib.sha256()
        size = 0
        with target.open("xb") as out:
            while chunk := os.read(descriptor, CHUNK_BYTES):
                size += len(chunk)
                self.take(entry.path, len(chunk))
                total.update(chunk)
                out.write(chunk)
        target.chmod(FILE_MODE)
        self.digests[inside] = (size, total.hexdigest())
