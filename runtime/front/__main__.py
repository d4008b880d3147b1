"""`python -m runtime.front --check` says which of the front's settings would keep it from starting.

`./gatehouse up` asks for it before it touches a stack that runs, as of the spawner and the model proxy.
The front itself is `python -m runtime.server`.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING

from runtime.errors import GatehouseError
from runtime.front.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] = ()) -> int:
    """Look at the settings and return the exit code that the front would end with (exit-codes.md)."""
    parser = argparse.ArgumentParser(prog="python -m runtime.front", allow_abbrev=False)
    parser.add_argument(
        "--check", action="store_true", required=True, help="say which setting would keep it from starting"
    )
    parser.parse_args(argv)
    try:
        read_settings(os.environ)
    except GatehouseError as error:
        sys.stderr.write(error.report())
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
