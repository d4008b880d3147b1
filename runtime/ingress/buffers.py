"""How much of what one connection carries may lie in this process and in the kernel, and how that is held.

Why: when a client sends and reads nothing, every buffer on the way fills up, and stays full for as long as it
likes. What asyncio and Linux allow by themselves is about 1 MiB for such a connection: 60 of them were more
than the container's memory, and there are places for 512.

A connection is two sockets (the client's and the front's), so a reader and a writer for each direction:

- A reader stops once more than twice its limit lies in it, and may have taken one piece more by then. The
  piece is the transport's `max_size`, 256 KiB unless set; it has no public setter, and a test fails when
  setting it has no effect.
- A writer holds one chunk: `drain` waits until all of it has left (high-water mark 0), and who copies keeps
  no second reference meanwhile.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio

CHUNK_BYTES = 8 * 1024
READER_LIMIT_BYTES = 2 * 1024
READER_HELD_BYTES = 2 * READER_LIMIT_BYTES + CHUNK_BYTES
WRITER_HELD_BYTES = CHUNK_BYTES
CONNECTION_HELD_BYTES = 2 * (READER_HELD_BYTES + WRITER_HELD_BYTES)
# For each option of each socket; Linux doubles it. Below this, uploads over loopback fell from 32 to 14 MB/s.
KERNEL_BUFFER_BYTES = 16 * 1024
# What the kernel accounts to both sockets of a stalled connection (SO_MEMINFO, 40 and 200 of them): received
# 25 KiB, unsent at most 68. A container's limit counts it with cgroup v2; with v1 mostly not.
KERNEL_HELD_BYTES = 96 * 1024


def bound_kernel(sock: socket.socket) -> None:
    """Give a socket small buffers; what a listening one has, its connections inherit."""
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, KERNEL_BUFFER_BYTES)


def bound(writer: asyncio.StreamWriter) -> None:
    """Hold a connection's transport to these bounds, both what it reads and what it has yet to write."""
    transport = writer.transport
    transport.set_write_buffer_limits(high=0)
    transport.max_size = CHUNK_BYTES  # type: ignore[attr-defined]
    bound_kernel(writer.get_extra_info("socket"))
