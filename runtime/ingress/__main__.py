"""`python -m runtime.ingress` forwards 0.0.0.0:8011 to the front; `--check` is its healthcheck."""

from __future__ import annotations

import argparse
import asyncio
import http.client
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runtime import layout
from runtime.errors import GatehouseError, HostError, PortInUse
from runtime.ingress.forward import Forwarder

if TYPE_CHECKING:
    from collections.abc import Sequence

PORT = 8011
CHECK_SECONDS = 3.0
EADDRINUSE = 98


async def forward(host: str, port: int, target: Path) -> None:
    """Forward until SIGTERM or SIGINT. Raises PortInUse or HostError when it cannot listen."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    forwarder = Forwarder(target)
    try:
        await forwarder.start(host, port)
    except OSError as error:
        if error.errno == EADDRINUSE:
            raise PortInUse(f"Port {port} on {host} is taken.", "stop what uses it") from error
        raise HostError(
            f"Cannot listen on {host}:{port}: {error.strerror or error}.", "use another"
        ) from error
    sys.stderr.write(f"ingress: {host}:{forwarder.port} -> {target}\n")
    await stop.wait()
    await forwarder.stop()


def check(host: str, port: int) -> int:
    """Ask the front's /health through the forwarder itself; 0 when it answers, else 1."""
    connection = http.client.HTTPConnection(host, port, timeout=CHECK_SECONDS)
    try:
        connection.request("GET", "/health")
        return 0 if connection.getresponse().status == http.client.OK else 1
    except (OSError, http.client.HTTPException):
        return 1
    finally:
        connection.close()


def main(argv: Sequence[str]) -> int:
    """Run the ingress and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m runtime.ingress")
    parser.add_argument("--host", default="0.0.0.0")  # noqa: S104  the container's own address; the host publishes 127.0.0.1
    parser.add_argument("--port", type=int, default=PORT)
    parser.add_argument("--target", type=Path, default=layout.FRONT_LOCAL_SOCKET)
    parser.add_argument("--check", action="store_true", help="ask a running ingress whether it forwards")
    options = parser.parse_args(argv)
    if options.check:
        return check("127.0.0.1", options.port)
    try:
        asyncio.run(forward(options.host, options.port, options.target))
    except GatehouseError as error:
        sys.stderr.write(error.report())
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
