"""Turn containers to attack from, on the packs and doors of the run's stack."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import threading
from typing import TYPE_CHECKING

import pytest

from tests.harness.stack import docker
from tests.harness.turnbox import Boxes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.harness.stack import Stack


@pytest.fixture
def boxes(stack: Stack) -> Iterator[Boxes]:
    made = Boxes(stack)
    yield made
    made.close()


@pytest.fixture
def reachable(boxes: Boxes) -> Iterator[tuple[str, str]]:
    """Yield a network without a way out and `HOST:PORT` of a listener of ours on its gateway address.

    A container on that network connects to it: that is what a twin shows, without one packet to anybody else.
    """
    name = f"{boxes.stack.project}-twin-{secrets.token_hex(3)}"
    docker("network", "create", "--internal", name)
    try:
        (gateway,) = [
            c["Gateway"] for c in json.loads(docker("network", "inspect", name))[0]["IPAM"]["Config"]
        ]
        with socket.create_server((gateway, 0)) as listener:

            def accept() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        listener.accept()[0].close()

            thread = threading.Thread(target=accept, daemon=True)
            thread.start()
            yield name, f"{gateway}:{listener.getsockname()[1]}"
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(5)
    finally:
        docker("network", "rm", name)
