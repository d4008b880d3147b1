"""The front's TCP listener, where one is asked for in place of the deployment's sockets."""

from __future__ import annotations

import contextlib
import socket

import pytest

from runtime.errors import HostError, PortInUse
from runtime.server import listen_tcp


def test_a_connection_sends_each_write_at_once_and_does_not_wait_for_the_readers_acknowledgement() -> None:
    with listen_tcp("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_a_port_that_is_taken_and_an_address_of_another_host_are_named_failures() -> None:
    with listen_tcp("127.0.0.1", 0) as listener, pytest.raises(PortInUse, match="taken"):
        listen_tcp("127.0.0.1", listener.getsockname()[1])
    with pytest.raises(HostError, match=r"192\.0\.2\.1"), contextlib.closing(listen_tcp("192.0.2.1", 0)):
        pass
