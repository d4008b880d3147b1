"""N04: can a turn reach its host: gateways, docker0, the engine's names, link-local?"""

import errno
import json
import socket
import struct
import sys

PORTS = [22, 53, 80, 443, 2375, 2376, 8011, 8080, 8900]
ADDRESSES = [
    "172.17.0.1",
    "172.18.0.1",
    "172.19.0.1",
    "192.168.65.7",
    "192.168.65.254",
    "10.0.2.2",
    "127.0.0.11",
]
NAMES = [
    "host.docker.internal",
    "gateway.docker.internal",
    "front",
    "spawner",
    "modelproxy",
    "ingress",
    "metadata.google.internal",
]
METADATA = ["169.254.169.254", "100.100.100.200", "168.63.129.16", "fd00:ec2::254", "fe80::1"]


def attempt(host, port):
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.settimeout(1)
            sock.connect((host, port))
    except OSError as error:
        return errno.errorcode.get(error.errno, type(error).__name__)
    return "connected"


def lookup(name):
    try:
        return sorted({entry[4][0] for entry in socket.getaddrinfo(name, 80)})
    except OSError as error:
        return type(error).__name__


def gateways():
    """Default gateways of this network namespace, and its interfaces: there should be `lo` alone."""
    found = []
    try:
        for line in open("/proc/net/route").read().splitlines()[1:]:
            fields = line.split()
            if fields[1] == "00000000":
                found.append(socket.inet_ntoa(struct.pack("<L", int(fields[2], 16))))
    except OSError:
        pass
    return found


def interfaces():
    try:
        return sorted(line.split(":")[0].strip() for line in open("/proc/net/dev").read().splitlines()[2:])
    except OSError as error:
        return [type(error).__name__]


names = {name: lookup(name) for name in NAMES}
resolved = [address for answer in names.values() if isinstance(answer, list) for address in answer]
hosts = list(dict.fromkeys([*gateways(), *ADDRESSES, *METADATA, *resolved]))
attempts = {}
for host in hosts:
    for port in PORTS:
        attempts[f"{host} {port}"] = attempt(host, port)
        if attempts[f"{host} {port}"] == "ENETUNREACH":
            break  # no route: the other ports cannot differ
for target in sys.argv[1:]:
    host, _, port = target.rpartition(":")
    attempts[target] = attempt(host.strip("[]"), int(port))
reached = sorted(key for key, value in attempts.items() if value == "connected")
answered = sorted(
    key
    for key, value in attempts.items()
    if value in {"connected", "ECONNREFUSED"} and not key.startswith("127.")
)
print(
    json.dumps(
        {
            "probe": "N04",
            "outcome": "connected" if reached else "denied",
            "reached": reached,
            "answered": answered,
            "names": names,
            "interfaces": interfaces(),
            "gateways": gateways(),
            "attempts": attempts,
        }
    )
)
