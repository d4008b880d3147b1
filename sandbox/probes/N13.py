"""N13: open many connections to the turn's own door, send nothing, hold them.

It first writes `{"holding": N}` to stderr, so that another turn can be measured meanwhile.
"""

import argparse
import errno
import json
import select
import socket
import sys
import time

parser = argparse.ArgumentParser()
parser.add_argument("--count", type=int, default=1000)
parser.add_argument("--seconds", type=float, default=5.0)
parser.add_argument("--door", default="/run/doors/model.sock")
options = parser.parse_args()

held, errors = [], {}
for _ in range(options.count):
    sock = socket.socket(socket.AF_UNIX)
    sock.setblocking(False)
    try:
        sock.connect(options.door)
    except OSError as error:
        name = errno.errorcode.get(error.errno, type(error).__name__)
        errors[name] = errors.get(name, 0) + 1
        sock.close()
        continue
    held.append(sock)
print(json.dumps({"holding": len(held)}), file=sys.stderr, flush=True)

# A door that bounds its connections closes what is too much, or leaves it in the backlog.
open_sockets, closed = set(held), 0
end = time.monotonic() + options.seconds
poller = select.poll()
for sock in held:
    poller.register(sock, select.POLLIN | select.POLLHUP)
by_number = {sock.fileno(): sock for sock in held}
while open_sockets and (left := end - time.monotonic()) > 0:
    for number, _events in poller.poll(left * 1000):
        poller.unregister(number)
        open_sockets.discard(by_number[number])
        closed += 1
        by_number[number].close()
kept = "unlimited" if len(open_sockets) == options.count else "capped"
outcome = kept if held else "no-door"
print(
    json.dumps(
        {
            "probe": "N13",
            "outcome": outcome,
            "asked": options.count,
            "connected": len(held),
            "closed_by_door": closed,
            "still_open": len(open_sockets),
            "errors": errors,
        }
    )
)
