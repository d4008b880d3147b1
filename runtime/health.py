"""A container's healthcheck: `python -m runtime.health SERVICE` asks `ops/<service>.sock` and exits 0 or 1.

Why the standard library alone: it is started every few seconds in every service image, so it must be small
and must not need anything that one of them lacks.
"""

from __future__ import annotations

import http.client
import socket
import sys

from runtime import layout

TIMEOUT_SECONDS = 4.0


class UnixConnection(http.client.HTTPConnection):
    """HTTP over the Unix socket at `path`."""

    def __init__(self, path: str, timeout: float = TIMEOUT_SECONDS) -> None:
        super().__init__("ops", timeout=timeout)
        self.path = path

    def connect(self) -> None:
        """Connect to the socket instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path: str) -> tuple[bool, str]:
    """Return whether the service behind the ops socket is healthy, and what it said (at most 2000 bytes)."""
    connection = UnixConnection(path)
    try:
        connection.request("GET", "/health")
        response = connection.getresponse()
        text = response.read(2000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return False, f"{path}: {error}"
    finally:
        connection.close()
    return response.status == http.client.OK, text


def main(arguments: list[str]) -> int:
    """Ask the named service; 0 healthy, 1 not, 2 wrong usage."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m runtime.health SERVICE\n")
        return 2
    healthy, text = ask(str(layout.OPS / f"{arguments[0]}.sock"))
    (sys.stdout if healthy else sys.stderr).write(text.rstrip() + "\n")
    return 0 if healthy else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
