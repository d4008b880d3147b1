"""The spawner's process, `python -m runtime.spawner`: serves until SIGTERM, then ends every turn.

With `--check` it starts nothing: it says on stderr which of its settings would keep it from starting, with
the same exit code. The instances are checked by `python -m runtime.agents.check`.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from runtime.errors import GatehouseError
from runtime.spawner.settings import start_settings

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] = ()) -> int:
    """Run the process, or with `--check` look at its settings; returns its exit code.

    `./gatehouse up` asks for the check before it touches a stack that runs. The codes are in
    docs/reference/exit-codes.md.
    """
    parser = argparse.ArgumentParser(prog="python -m runtime.spawner", allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="say which setting would keep it from starting")
    if not parser.parse_args(argv).check:
        from runtime.spawner.process import run  # noqa: PLC0415  a check needs neither server nor engine

        return run()
    try:
        start_settings(os.environ)
    except GatehouseError as error:
        sys.stderr.write(error.report())
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
