"""Read the model's key from its file, once, and keep it out of everything that is printed.

An empty file is the operator's way to say "demo". Anything else that is not a usable key ends the process
with exit code 7: a proxy that fell back to the demo on a mistyped path would look healthy and answer visitors
from a toy (architecture §5).
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Literal

from runtime.errors import SecretError

if TYPE_CHECKING:
    from pathlib import Path

MAX_KEY_BYTES = 4096
MIN_KEY_BYTES = 8
OTHERS_READ = stat.S_IRGRP | stat.S_IROTH
MEND = "put the key alone on one line, or leave the file empty for the demo model"


class Key:
    """A model API key. Only `header` and `occurs_in` ever look at it; it prints as `Key(hidden)`."""

    __slots__ = ("_value",)

    def __init__(self, value: bytes) -> None:
        self._value = value

    def __repr__(self) -> str:
        return "Key(hidden)"

    __str__ = __repr__

    def __reduce__(self) -> str | tuple[object, ...]:
        """Refuse to be pickled or copied, so that no other form of it exists."""
        raise TypeError("a key is not copied")

    def header(self, kind: Literal["x-api-key", "bearer"]) -> tuple[bytes, bytes]:
        """Return the request header that carries the key upstream."""
        if kind == "bearer":
            return b"authorization", b"Bearer " + self._value
        return b"x-api-key", self._value

    def occurs_in(self, data: bytes) -> bool:
        """Whether `data` holds the key's bytes."""
        return self._value in data


def read_key(path: Path) -> Key | None:
    """Return the key in `path`, or None when the file is empty (`/dev/null` is).

    Raises SecretError when the file is missing, unreadable, not a file, or holds anything but 8 to 4096
    printable ASCII characters without white space; one trailing newline is allowed. A key that group or
    others may read is used, with a warning: a secret that the engine mounts can have that mode and yet be in
    nobody else's reach.
    """
    content, mode = _content(path)
    if not content:
        return None
    value = content.removesuffix(b"\n").removesuffix(b"\r")
    if len(content) > MAX_KEY_BYTES:
        raise SecretError(f"{path} is longer than {MAX_KEY_BYTES} bytes: no model API key", MEND)
    if not value.strip():
        raise SecretError(f"{path} holds only white space", MEND)
    if not all(0x21 <= byte <= 0x7E for byte in value):
        raise SecretError(f"{path} holds white space, control or non-ASCII characters inside the key", MEND)
    if len(value) < MIN_KEY_BYTES:
        raise SecretError(f"{path} holds fewer than {MIN_KEY_BYTES} characters: no model API key", MEND)
    if mode & OTHERS_READ:
        import structlog  # noqa: PLC0415  a check, which `./gatehouse up` waits for, has mostly nothing to log

        structlog.get_logger("modelproxy").warning(
            "key_file_exposed",
            path=str(path),
            mode=f"{stat.S_IMODE(mode):04o}",
            mend=f"chmod 0400, owned by uid {os.geteuid()}",
        )
    return Key(value)


def _content(path: Path) -> tuple[bytes, int]:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise SecretError(f"the model key file {path} is missing", "create it; empty means demo") from None
    except OSError as error:
        raise SecretError(
            f"the model key file {path} cannot be opened: {error.strerror}",
            f"let the model proxy's user (uid {os.geteuid()}) read it",
        ) from None
    try:
        status = os.fstat(descriptor)
        null = stat.S_ISCHR(status.st_mode) and status.st_rdev == os.makedev(1, 3)
        if not (stat.S_ISREG(status.st_mode) or null):
            raise SecretError(f"the model key file {path} is not a regular file", "give a file, not a folder")
        return os.read(descriptor, MAX_KEY_BYTES + 1), status.st_mode
    except OSError as error:
        raise SecretError(f"the model key file {path} cannot be read: {error.strerror}", MEND) from None
    finally:
        os.close(descriptor)
