"""Becomes the CLI, as a process that the kernel kills when the one that started it is gone.

    python3 -I -S launch.py PARENT REPORT PROGRAM ARGUMENT...

PARENT is the id of the process that started this one, REPORT the number of a pipe's end: it is closed when
PROGRAM has begun, and gets the number of the error when it cannot.

Why: whoever kills us with SIGKILL leaves no code of ours to end the CLI, which has a session of its own. What
`prctl(PR_SET_PDEATHSIG)` asks of the kernel outlasts exec (prctl(2)). Why a program in between and not a
function between fork and exec: a server has threads, and Python after a fork may wait for ever for a lock
that one of them held. The signal is bound to the thread that forked, which is the event loop's.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
AS_CHILD = (signal.SIGPIPE, signal.SIGXFSZ)  # ignored by every Python, which exec would hand on


def environment() -> dict[bytes, bytes]:
    """Return the environment as it was given: Python adds LC_CTYPE to its own where there is no locale."""
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123  (pathlib costs every turn milliseconds)
        entries = file.read().split(b"\0")
    return dict(entry.split(b"=", 1) for entry in entries if b"=" in entry)


def die_with_the_parent() -> None:
    """Ask the kernel for SIGKILL at the parent's end. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def main(argv: list[str]) -> None:
    """Become the program; ends without a word when the parent is gone already."""
    parent, report, program = int(argv[0]), int(argv[1]), argv[2]
    os.set_inheritable(report, False)  # noqa: FBT003  the only form it has
    try:
        die_with_the_parent()
        if os.getppid() != parent:
            os._exit(1)
        for number in AS_CHILD:
            signal.signal(number, signal.SIG_DFL)
        os.execve(program, argv[2:], environment())  # noqa: S606  an argv list: no shell
    except OSError as error:
        os.write(report, str(error.errno).encode())
    os._exit(1)


if __name__ == "__main__":
    main(sys.argv[1:])
