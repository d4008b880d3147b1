"""Says whether instances can be served, and everything that is wrong with them at once.

    python -m runtime.agents.check --root ROOT [--json] [NAME ...]

Without a name every instance is checked, the template as a template. Exit codes: 0 with one `ok` line each,
2 usage, 3 with every problem on stderr as `file:line:col: key: what is wrong (how to mend it)`. A `warning`
line on stderr has the same form and changes no exit code. With `--json` all of it is one JSON object on
stdout. `gatehouse check` prints the same through the same functions.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runtime.agents.documents import from_root
from runtime.agents.folders import NEW, folder_names
from runtime.agents.inline import inline_files
from runtime.agents.instance import inspect_instance
from runtime.agents.placeholders import TEMPLATE
from runtime.agents.tool_grants import render_grants
from runtime.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from runtime.agents.definition import AgentDefinition


@dataclass(frozen=True, slots=True)
class Checked:
    """One instance and what a check of it gave; `summary` is one line for people, "" when it is not ok."""

    name: str
    ok: bool
    template: bool
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    summary: str

    def as_json(self) -> dict[str, Any]:
        """Return the part of the `--json` object that is about this instance."""
        return {
            "name": self.name,
            "ok": self.ok,
            "summary": self.summary,
            "problems": [problem.as_json() for problem in self.problems],
            "warnings": [warning.as_json() for warning in self.warnings],
        }


def check_instances(root: Path, names: Sequence[str], environ: Mapping[str, str]) -> tuple[Checked, ...]:
    """Check the named instances of the repository at `root`, or all of them, in the order given or by name.

    The template is checked as a template unless it is named: then it is refused, since it cannot be served.
    A folder without an agent file is checked like the others, so that its persona is not passed over.
    Without any instance there is one `Checked` about the folder.
    """
    root = root.absolute()
    wanted = tuple(names) or folder_names(root)
    if not wanted:
        problem = Problem("instances", 0, 0, "", "holds no instance", NEW)
        return (Checked("", ok=False, template=False, problems=(problem,), warnings=(), summary=""),)
    return tuple(_check(root, name, environ, template=not names and name == TEMPLATE) for name in wanted)


def as_json(checked: Sequence[Checked]) -> str:
    """Return what `--json` prints, one line with its line feed."""
    value = {"ok": all(one.ok for one in checked), "instances": [one.as_json() for one in checked]}
    return json.dumps(value) + "\n"


def describe(agent: AgentDefinition, root: Path) -> str:
    """Return an `ok` line with what visitors can reach."""
    directories = ", ".join(
        from_root(path, root) for path in (agent.grounding.directory, *agent.grounding.extra)
    )
    told = len(inline_files(agent.grounding).files)
    tools = render_grants(agent.tools)
    return (
        f"ok {agent.id}: model {agent.model}; tools {tools}; reads {directories}; {told} files told up front"
    )


def main(argv: list[str] | None = None, environ: Mapping[str, str] = os.environ) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m runtime.agents.check", allow_abbrev=False)
    parser.add_argument("--root", type=Path, required=True, help="the repository's root")
    parser.add_argument("--json", action="store_true", help="print one JSON object on stdout")
    parser.add_argument("names", nargs="*", metavar="NAME", help="instances; default: all")
    arguments = parser.parse_args(argv)
    checked = check_instances(arguments.root, arguments.names, environ)
    if arguments.json:
        sys.stdout.write(as_json(checked))
    else:
        for one in checked:
            sys.stderr.write("".join(f"{problem}\n" for problem in one.problems))
            sys.stderr.write("".join(f"warning: {warning}\n" for warning in one.warnings))
            sys.stdout.write(f"{one.summary}\n" if one.ok else "")
    return 0 if all(one.ok for one in checked) else ConfigError.exit_code


def _check(root: Path, name: str, environ: Mapping[str, str], *, template: bool) -> Checked:
    seen = inspect_instance(root, name, environ, template=template)
    summary = ""
    if seen.agent is not None:
        summary = describe(seen.agent, root)
        if template:
            summary = f"ok {name}: to be copied; it cannot be started"
    warnings = () if template else seen.warnings
    return Checked(name, seen.agent is not None, template, seen.problems, warnings, summary)


if __name__ == "__main__":
    raise SystemExit(main())
