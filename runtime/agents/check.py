"""Says whether instances can be served, and everything that is wrong with them at once.

    python -m runtime.agents.check --root ROOT [NAME ...]

Without a name every instance is checked. Exit codes: 0 with one `ok` line each, 2 usage, 3 with every
problem on stderr as `file:line:col: key: what is wrong (how to mend it)`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.agents.inline import inline_files
from runtime.agents.instance import instance_names, load_instance
from runtime.agents.tool_grants import render_grants
from runtime.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.agents.definition import AgentDefinition


def describe(agent: AgentDefinition) -> tuple[str, ...]:
    """Return an `ok` line with what visitors can reach, and a `note` line for each file not told up front."""
    inline = inline_files(agent.grounding)
    directories = ", ".join(str(path) for path in (agent.grounding.directory, *agent.grounding.extra))
    tools = render_grants(agent.tools)
    count = len(inline.files)
    ok = (
        f"ok {agent.id}: model {agent.model}; tools {tools}; reads {directories}; {count} files told up front"
    )
    notes = [f"note {agent.id}: inline_grounding: {item.path}: {item.reason}" for item in inline.skipped]
    return (ok, *notes)


def main(argv: list[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m runtime.agents.check", allow_abbrev=False)
    parser.add_argument("--root", type=Path, required=True, help="the repository's root")
    parser.add_argument("names", nargs="*", metavar="NAME", help="instances; default: all")
    arguments = parser.parse_args(argv)
    names = arguments.names or instance_names(arguments.root)
    if not names:
        sys.stderr.write(f"{arguments.root}/instances: holds no instance (copy instances/_template)\n")
        return ConfigError.exit_code
    code = 0
    for name in names:
        try:
            agent = load_instance(arguments.root, name, environ)
        except ConfigError as error:
            sys.stderr.write(f"{error}\n")
            code = error.exit_code
            continue
        for line in describe(agent):
            sys.stdout.write(f"{line}\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
