"""S01: is a needle (a key, or its first characters) anywhere a turn can read? The needles are the arguments.

Searches the environment, /proc/*/{environ,cmdline,maps,mountinfo}, every readable file, every tmpfs and,
where it may, the memory of other processes. Its own arguments and memory hold the needles and are left out.
"""

import json
import os
import stat
import sys

needles = [needle.encode() for needle in sys.argv[1:] if needle]
me = {str(os.getpid()), "self", "thread-self"}
found, searched, unreadable, processes = [], 0, 0, []
CHUNK = 1 << 20


def search(path, limit=1 << 30):
    global searched, unreadable
    overlap = max(map(len, needles)) - 1
    try:
        with open(path, "rb", buffering=0) as file:
            tail, total = b"", 0
            while total < limit and (chunk := file.read(CHUNK)):
                total += len(chunk)
                block = tail + chunk
                for needle in needles:
                    if needle in block:
                        found.append({"path": path, "needle": needles.index(needle)})
                        return
                tail = block[-overlap:] if overlap else b""
    except OSError:
        unreadable += 1
        return
    searched += 1


if not needles:
    print(json.dumps({"probe": "S01", "outcome": "no-needles"}))
    sys.exit()

for name, value in os.environ.items():
    if any(needle in f"{name}={value}".encode() for needle in needles):
        found.append({"path": f"environment {name}", "needle": -1})
for pid in filter(str.isdigit, os.listdir("/proc")):
    processes.append(pid)
    for leaf in ("environ", "cmdline", "maps", "mountinfo", "status", "cgroup", "limits"):
        if not (pid in me and leaf == "cmdline"):
            search(f"/proc/{pid}/{leaf}", 1 << 24)
    if pid not in me:
        try:
            regions = open(f"/proc/{pid}/maps").read().splitlines()
            with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
                for region in regions:
                    start, end = (int(part, 16) for part in region.split()[0].split("-"))
                    try:
                        memory.seek(start)
                        block = memory.read(min(end - start, 1 << 26)) or b""
                    except (OSError, ValueError, OverflowError):
                        continue
                    found.extend(
                        {"path": f"/proc/{pid}/mem", "needle": index}
                        for index, needle in enumerate(needles)
                        if needle in block
                    )
        except OSError:
            unreadable += 1
for folder, names, leaves in os.walk("/"):
    names[:] = [name for name in names if os.path.join(folder, name) not in ("/proc", "/sys")]
    for leaf in leaves:
        path = os.path.join(folder, leaf)
        try:
            if stat.S_ISREG(os.lstat(path).st_mode):
                search(path)
        except OSError:
            unreadable += 1
for path in ("/proc/cmdline", "/proc/keys", "/proc/mounts", "/proc/net/unix"):
    search(path, 1 << 24)
print(
    json.dumps(
        {
            "probe": "S01",
            "outcome": "found" if found else "clean",
            "found": found[:50],
            "searched": searched,
            "unreadable": unreadable,
            "processes": processes,
        }
    )
)
