"""Says whether instances can be served, and everything that is wrong with them at once.

    python -m runtime.agents.check --root ROOT [NAME ...]

Without a name every instance is checked, the template as a template. Exit codes: 0 with one `ok` line each,
2 usage, 3 with every problem on stderr as `file:line:col: key: what is wrong (how to mend it)`. A `warning`
line on stderr has the same form and changes no exit code.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from runtime.agents.documents import shown
from runtime.agents.findings import examine
from runtime.agents.inline import inline_files
from runtime.agents.instance import instance_names, load_instance
from runtime.agents.placeholders import TEMPLATE
from runtime.agents.tool_grants import render_grants
from runtime.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from runtime.agents.definition import AgentDefinition


def describe(agent: AgentDefinition, root: Path) -> str:
    """Return an `ok` line with what visitors can reach."""
    directories = ", ".join(shown(path, root) for path in (agent.grounding.directory, *agent.grounding.extra))
    told = len(inline_files(agent.grounding).files)
    tools = render_grants(agent.tools)
    return (
        f"ok {agent.id}: model {agent.model}; tools {tools}; reads {directories}; {told} files told up front"
    )


def warnings(agent: AgentDefinition, root: Path) -> tuple[str, ...]:
    """Return a line for each thing that is odd about the agent's files and keeps it from nothing."""
    tools_dir = agent.tools_dir if agent.tools.granted else None
    return tuple(f"warning: {one}" for one in examine(agent.grounding, root, tools_dir).warnings)


def main(argv: list[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m runtime.agents.check", allow_abbrev=False)
    parser.add_argument("--root", type=Path, required=True, help="the repository's root")
    parser.add_argument("names", nargs="*", metavar="NAME", help="instances; default: all")
    arguments = parser.parse_args(argv)
    root = arguments.root.absolute()
    names = arguments.names or instance_names(root)
    if not names:
        sys.stderr.write(f"{arguments.root}/instances: holds no instance (copy instances/_template)\n")
        return ConfigError.exit_code
    code = 0
    for name in names:
        try:
            agent = load_instance(root, name, environ, template=not arguments.names and name == TEMPLATE)
        except ConfigError as error:
            sys.stderr.write(f"{error}\n")
            code = error.exit_code
            continue
        if name == TEMPLATE:
            sys.stdout.write(f"ok {name}: to be copied; it cannot be started\n")
            continue
        sys.stderr.write("".join(f"{line}\n" for line in warnings(agent, root)))
        sys.stdout.write(f"{describe(agent, root)}\n")
    return code


if __name__ == "__main__":
    raise SystemExit(main())
