"""D07: which Unix sockets can a turn see: an engine's, containerd's, D-Bus's? Prints one JSON object."""

import errno
import json
import os
import socket
import stat

KNOWN = [
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
    "/run/dbus/system_bus_socket",
    "/run/snapd.socket",
    "/run/systemd/private",
    "/run/systemd/notify",
    "/run/crio/crio.sock",
    "/run/gatehouse/spawn/spawn.sock",
    "/run/gatehouse/front-local/local.sock",
    "/run/gatehouse/ctl-model/control.sock",
    "/run/buildkit/buildkitd.sock",
    "/var/run/nscd/socket",
]


def connect(path):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(2)
        try:
            sock.connect(path)
        except OSError as error:
            return errno.errorcode.get(error.errno, type(error).__name__)
    return "connected"


seen = {}
for folder, names, leaves in os.walk("/"):
    names[:] = [name for name in names if os.path.join(folder, name) not in ("/proc", "/sys")]
    for leaf in leaves:
        path = os.path.join(folder, leaf)
        try:
            if stat.S_ISSOCK(os.lstat(path).st_mode):
                seen[path] = connect(path)
        except OSError:
            continue
for name in ("model.sock", "intake.sock", "tools.sock"):  # the doors' folder cannot be listed, only passed
    path = f"/run/doors/{name}"
    if (answer := connect(path)) != "ENOENT":
        seen[path] = answer
known = {path: connect(path) for path in KNOWN}
bound = []
try:
    bound = [
        line.split()[7] for line in open("/proc/net/unix").read().splitlines()[1:] if len(line.split()) > 7
    ]
except OSError:
    pass
abstract = [name for name in bound if name.startswith("@")]
doors = sorted(path for path in seen if path.startswith("/run/doors/"))
others = sorted(path for path in seen if path not in doors)
reached = sorted(path for path, answer in known.items() if answer not in {"ENOENT", "ENOTDIR"})
print(
    json.dumps(
        {
            "probe": "D07",
            "outcome": "found" if others or reached or abstract else "none",
            "doors": doors,
            "others": others,
            "known": reached,
            "abstract": abstract,
        }
    )
)
