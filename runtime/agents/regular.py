"""Reads one small file of an instance: a regular one, in bounded time and memory, whatever lies there.

Opened without following a link or waiting for a writer, asked what it is while open, and read no further than
one byte past its bound: a 10 GB file of settings costs as much as one of 257 KiB.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

NOT_REGULAR = "is not a regular file"


def read_regular(path: Path, limit: int) -> bytes | str:
    """Return at most `limit` + 1 bytes of a regular file, or a few words about why there are none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return "does not exist"
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            return NOT_REGULAR
        return f"cannot be read ({error.strerror})"
    try:
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                return NOT_REGULAR
            return file.read(limit + 1)
    except OSError as error:
        return NOT_REGULAR if error.errno == errno.EISDIR else f"cannot be read ({error.strerror})"
