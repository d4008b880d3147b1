"""What asks a process that runs turns to end, and from when on it hears that.

SIGHUP and SIGQUIT are among them because the bare CLI has a session of its own: of a terminal that is closed,
or of its quit key, this process is told and nobody else. What they find half done they must not leave so:
`hold` keeps them waiting from before the first thing that would have to be undone, `hear` takes them from
there.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
import stat
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)


def hold() -> None:
    """Let the signals wait until `hear` or `release`. Start no thread and no process meanwhile."""
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)


def release() -> None:
    """Let the signals through again, those that waited first."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)


def hear(end: Callable[[], object]) -> None:
    """Have the running loop call `end` for each of the signals, for those that were held too.

    A SIGHUP that is ignored, as under nohup, stays so.
    """
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        if number is signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
            continue
        loop.add_signal_handler(number, end)
    release()


def hear_reader_leave(descriptor: int, end: Callable[[], object]) -> None:
    """Have the running loop call `end` when nobody can read any more what is written to a pipe.

    Whoever started this process may be killed without a word to it, and a turn that says nothing for a while
    would run on for nobody. Anything but a pipe's writing end is left alone.
    """
    writes_only = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY
    if not (stat.S_ISFIFO(os.fstat(descriptor).st_mode) and writes_only):
        return
    loop = asyncio.get_running_loop()

    def gone() -> None:
        loop.remove_reader(descriptor)
        end()

    loop.add_reader(descriptor, gone)  # nothing to read there ever: what comes is that the other end closed
