"""Serves granted scripts where there is no sandbox: sandbox/grants.py with places given by arguments.

    python3 -I -S grants.py TOOLS PYTHON CONTEXT_FILE HOME --tool NAME...

Why a file of its own: in a container no argument may move these places, so what moves them is in no image.
Started by path and isolated, because its working directory is the grounding: `python -m` would import
whatever stands there.

It ends with the CLI, however that ends, and a script that runs ends with it: there is no container that would
take both along. The kernel sends it SIGTERM when the CLI is gone (prctl(2), PR_SET_PDEATHSIG), and SIGTERM
raises SystemExit here, so that whoever waits for the script kills it.
"""

from __future__ import annotations

import signal
import sys

PLACES = 4
PR_SET_PDEATHSIG = 1

TYPE_CHECKING = False  # typing would be imported while the CLI waits
if TYPE_CHECKING:
    from types import FrameType


def end_with_the_cli() -> None:
    """Have SIGTERM end this process as sys.exit does, and the kernel send it when our parent is gone."""
    signal.signal(signal.SIGTERM, _leave)
    import ctypes  # noqa: PLC0415  (not before it is known that this process serves)

    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


def _leave(number: int, _frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # once: what it raises must get through
    raise SystemExit(128 + number)


def main(argv: list[str]) -> None:
    """Set the places and answer requests until stdin ends."""
    root = __file__.rsplit("/", 3)[0]
    sys.path.insert(0, root)
    from sandbox import grants  # noqa: PLC0415  (found only now: isolated mode adds no folder of ours)

    if len(argv) < PLACES:
        sys.exit("grants: usage: grants TOOLS PYTHON CONTEXT_FILE HOME --tool NAME ...")
    grants.TOOLS, grants.PYTHON, grants.CONTEXT_FILE, grants.HOME = argv[:PLACES]
    sys.argv[1:] = argv[PLACES:]
    end_with_the_cli()
    grants.main()


if __name__ == "__main__":
    main(sys.argv[1:])
