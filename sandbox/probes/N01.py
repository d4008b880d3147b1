"""N01: can TCP reach a public address, over IPv4 or IPv6? Prints one JSON object (README.md)."""

import errno
import json
import socket
import sys

TARGETS = [
    "1.1.1.1:443",
    "8.8.8.8:53",
    "9.9.9.9:853",
    "140.82.112.3:22",
    "[2606:4700:4700::1111]:443",
    "[2001:4860:4860::8888]:53",
]


def attempt(target):
    host, _, port = target.rpartition(":")
    host = host.strip("[]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.settimeout(3)
            sock.connect((host, int(port)))
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    return "connected"


attempts = {target: attempt(target) for target in [*TARGETS, *sys.argv[1:]]}
outcome = "connected" if "connected" in attempts.values() else "denied"
print(json.dumps({"probe": "N01", "outcome": outcome, "attempts": attempts}))
