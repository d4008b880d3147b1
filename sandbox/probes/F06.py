"""F06: list every path that a turn can write to, by trying, and how it is mounted. Prints one JSON object."""

import json
import os
import stat

SKIP = ("/proc", "/sys")
folders, files, links = [], [], []


def try_folder(path):
    probe = os.path.join(path, ".f06")
    try:
        os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        os.unlink(probe)
    except OSError:
        return
    folders.append(path)


def try_file(path):
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
    except OSError:
        return
    files.append(path)


for folder, names, leaves in os.walk("/"):
    names[:] = [name for name in names if not os.path.join(folder, name).startswith(SKIP)]
    try_folder(folder)
    for leaf in leaves:
        path = os.path.join(folder, leaf)
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            continue
        if not stat.S_ISLNK(mode) and not stat.S_ISSOCK(mode):
            try_file(path)

# Under /proc and /sys: everything that opens for writing and does not belong to this process alone.
kernel = []
tops = ["/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/acpi", "/proc/scsi", "/sys"]
if os.getpid() != 1:
    tops.append("/proc/1")  # another process: PID 1 must be closed to the turn's own uid
for top in tops:
    paths = [top] if os.path.isfile(top) else [os.path.join(f, n) for f, _, ns in os.walk(top) for n in ns]
    for path in paths:
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        except OSError:
            continue
        kernel.append(path)

options = {}
for line in open("/proc/self/mounts").read().splitlines():
    _, where, kind, flags = line.split()[:4]
    if any(path == where for path in folders):
        options[where] = f"{kind} {flags}"
print(
    json.dumps(
        {
            "probe": "F06",
            "outcome": "listed",
            "writable": sorted(folders),
            "files": sorted(files),
            "kernel": sorted(kernel),
            "mounts": options,
        }
    )
)
