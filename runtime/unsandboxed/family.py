"""Ends a process and all that it started, as far as a plain user on Linux can.

A turn's container ends everything in it. Without one, the CLI is the leader of a session of its own: its
process group is killed, and with it every process of that session and every descendant of those, which finds
the granted scripts (each has a session of its own, so that its time limit can end it). What has left both, by
a double fork into another session, is not found.
"""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass
from pathlib import Path

ROUNDS = 8
PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the process table."""

    pid: int
    parent: int
    session: int


def parse_stat(text: str) -> Entry | None:
    """Return what /proc/PID/stat says (proc(5)); None for anything else. The name in it may hold anything."""
    pid = text.partition(" ")[0]
    fields = text.rpartition(")")[2].split()
    try:
        return Entry(int(pid), int(fields[1]), int(fields[3]))
    except (ValueError, IndexError):
        return None


def process_table(proc: Path = PROC) -> list[Entry]:
    """Return every process that can be seen; [] where there is no /proc."""
    found = []
    with contextlib.suppress(OSError):
        for folder in proc.iterdir():
            if folder.name.isdigit():
                with contextlib.suppress(OSError):
                    entry = parse_stat((folder / "stat").read_text("utf-8", "replace"))
                    found += [entry] if entry else []
    return found


def family(leader: int, table: list[Entry]) -> set[int]:
    """Return the processes of the session that `leader` leads, and all descendants of those. Pure."""
    found = {entry.pid for entry in table if leader in {entry.session, entry.pid}}
    while more := {entry.pid for entry in table if entry.parent in found} - found:
        found |= more
    return found


def kill_family(leader: int) -> None:
    """Kill the leader of a session, its group, and its family. The leader must not have been waited for yet.

    Stopped first, so that nobody forks while the rest is looked for.
    """
    known: set[int] = set()
    for _round in range(ROUNDS):
        new = family(leader, process_table()) - known
        if not new:
            break
        _signal(new, signal.SIGSTOP)
        known |= new
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)
    _signal(known, signal.SIGKILL)


def _signal(pids: set[int], number: signal.Signals) -> None:
    for pid in pids - {os.getpid()}:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
