"""Lists the scripts of a tools folder, for the checks that compare card and prompt with what is there."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from runtime.agents.forms import SCRIPT_NAME
from runtime.agents.regular import read_regular

if TYPE_CHECKING:
    from pathlib import Path

MAX_SCRIPTS = 200
BEGINNING_BYTES = 2000
_FILE = re.compile(rf"({SCRIPT_NAME})\.py")


def scripts_in(tools_dir: Path) -> dict[str, str]:
    """Return the beginning of each script's text by its name without `.py`; {} without a folder.

    A script that cannot be read, or is a link, has an empty text: its name is there all the same.
    """
    names: list[str] = []
    try:
        with os.scandir(tools_dir) as entries:
            for entry in entries:
                match = _FILE.fullmatch(entry.name)
                if match and len(names) < MAX_SCRIPTS:
                    names.append(match[1])
    except OSError:
        return {}
    found: dict[str, str] = {}
    for name in sorted(names):
        raw = read_regular(tools_dir / f"{name}.py", BEGINNING_BYTES)
        found[name] = "" if isinstance(raw, str) else raw.decode("utf-8", "replace")
    return found
