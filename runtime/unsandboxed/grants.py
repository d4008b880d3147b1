"""Serves granted scripts where there is no sandbox: sandbox/grants.py with places given by arguments.

    python3 -I -S grants.py TOOLS PYTHON CONTEXT_FILE HOME --tool NAME...

Why a file of its own: in a container no argument may move these places, so what moves them is in no image.
Started by path and isolated, because its working directory is the grounding: `python -m` would import
whatever stands there.
"""

from __future__ import annotations

import sys

PLACES = 4


def main(argv: list[str]) -> None:
    """Set the places and answer requests until stdin ends."""
    root = __file__.rsplit("/", 3)[0]
    sys.path.insert(0, root)
    from sandbox import grants  # noqa: PLC0415  (found only now: isolated mode adds no folder of ours)

    if len(argv) < PLACES:
        sys.exit("grants: usage: grants TOOLS PYTHON CONTEXT_FILE HOME --tool NAME ...")
    grants.TOOLS, grants.PYTHON, grants.CONTEXT_FILE, grants.HOME = argv[:PLACES]
    sys.argv[1:] = argv[PLACES:]
    grants.main()


if __name__ == "__main__":
    main(sys.argv[1:])
