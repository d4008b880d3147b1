"""Prints the directories of an instance that the services cannot see unless they are mounted, one a line.

    python -m runtime.agents.sources --root ROOT NAME            directories outside ROOT
    python -m runtime.agents.sources --root ROOT --mounts NAME   all mounts needed: SOURCE, a tab, TARGET

`./gatehouse up` mounts each of them read-only into the spawner; only `ROOT/instances` is there anyway. It
asks from a container in which they are not mounted yet, so only the spawner looks whether they exist. Exit
codes: 0, 2 usage, 3 when the instance's files are wrong (all problems on stderr).
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runtime import layout
from runtime.agents.instance import load_instance
from runtime.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.agents.definition import Grounding


def outside_directories(grounding: Grounding, root: Path) -> tuple[Path, ...]:
    """Return the directories outside `root`, each once, in the order of the settings.

    A directory is listed as it is named; one that is below `root` by name but is a link to the outside is
    listed as what it leads to.
    """
    root = root.absolute()
    real_root = root.resolve()
    found: list[Path] = []
    for directory in (grounding.directory, *grounding.extra):
        real = directory.resolve()
        if root not in directory.parents:
            found.append(directory)
        elif real_root not in real.parents:
            found.append(real)
    return tuple(dict.fromkeys(found))


def mounts(grounding: Grounding, root: Path) -> tuple[tuple[Path, Path], ...]:
    """Return (host directory, path in the spawner) for all it has to see besides `root/instances`.

    A directory below `root` appears twice: under its own path, for a setting that names it absolutely, and
    below `layout.ROOT`, for one that names it relative to the repository.
    """
    root = root.absolute()
    found = [(directory, directory) for directory in outside_directories(grounding, root)]
    for directory in (grounding.directory, *grounding.extra):
        if root in directory.parents and root / "instances" not in directory.parents:
            found += [(directory, directory), (directory, layout.ROOT / directory.relative_to(root))]
    return tuple(dict.fromkeys(found))


def main(argv: list[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m runtime.agents.sources", allow_abbrev=False)
    parser.add_argument("--root", type=Path, required=True, help="the repository's root")
    parser.add_argument("--mounts", action="store_true", help="print every mount as SOURCE, a tab, TARGET")
    parser.add_argument("name", help="the instance")
    arguments = parser.parse_args(argv)
    try:
        grounding = load_instance(arguments.root, arguments.name, environ, check_sources=False).grounding
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    if arguments.mounts:
        lines = [f"{source}\t{target}" for source, target in mounts(grounding, arguments.root)]
    else:
        lines = [str(directory) for directory in outside_directories(grounding, arguments.root)]
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
