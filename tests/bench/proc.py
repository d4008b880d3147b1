"""What Linux says of a process: resident memory and CPU time, from /proc."""

from __future__ import annotations

import os
from pathlib import Path

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def resident_bytes(pid: int, proc: Path = PROC) -> int:
    """Return the memory of a process that is in RAM, shared pages included."""
    for line in (proc / str(pid) / "status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no memory: it has ended")


def cpu_seconds(pid: int, proc: Path = PROC) -> float:
    """Return the CPU time that a process has taken so far, its own and the kernel's for it."""
    # The name stands in brackets and may hold blanks and brackets: so what follows the last one counts.
    fields = (proc / str(pid) / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS
