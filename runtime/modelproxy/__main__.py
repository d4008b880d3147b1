"""Run the model proxy: `python -m runtime.modelproxy`, configured by its environment (`settings.py`).

With `--check` it starts nothing: it says on stderr what would keep it from starting, with the same exit code.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from runtime.errors import GatehouseError
from runtime.modelproxy.preconditions import check

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] = ()) -> int:
    """Run, or with `--check` say whether a start would go through; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m runtime.modelproxy", allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="say what would keep it from starting")
    if not parser.parse_args(argv).check:
        from runtime.modelproxy.process import run  # noqa: PLC0415  a check needs neither server nor client

        return run()
    try:
        check(os.environ)
    except GatehouseError as error:
        sys.stderr.write(error.report())
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
