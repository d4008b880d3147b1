"""`python -m runtime.cli COMMAND …`, which is what `./gatehouse COMMAND …` runs."""

from __future__ import annotations

import sys

from runtime.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
