"""Looks whether a granted script could run in a turn: that it is Python, and imports what a turn has.

A turn has Python 3.13 with its standard library, and runs a script by itself (`python3 -I`), so that neither
a package nor a file beside it can be imported. A script that breaks this fails at every call, and a visitor's
answer merely lacks its part: the author would not notice. Nothing of the script is run.
"""

from __future__ import annotations

import ast
import sys
import warnings
from typing import TYPE_CHECKING

from runtime.agents.quoting import shown
from runtime.agents.regular import read_regular
from runtime.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_BYTES = 256 * 1024
TURN_PYTHON = (3, 13)
_CATCHES = frozenset({"ImportError", "ModuleNotFoundError", "Exception"})


def faults(path: Path, where: str) -> tuple[Problem, ...]:
    """Return why the script at `path`, named `where` in messages, would fail at every call.

    () too for a file that cannot be read or is larger than 256 KiB: others report that.
    """
    raw = read_regular(path, MAX_BYTES)
    if isinstance(raw, str) or len(raw) > MAX_BYTES:
        return ()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(raw)
    except SyntaxError as error:
        message = f"is not valid Python: {shown(error.msg)}"
        return (Problem(where, error.lineno or 0, error.offset or 1, "", message, "mend the script"),)
    except (ValueError, RecursionError, MemoryError):
        return (Problem(where, 0, 0, "", "cannot be read as Python", "mend the script"),)
    return tuple(
        Problem(where, line, col + 1, "", f"imports {shown(name)}, which no turn has", mend)
        for line, col, name, mend in _foreign(tree)
    )


def are_certain() -> bool:
    """Say whether this Python refuses what a turn's would: an older one does not know all of its syntax."""
    return sys.version_info[:2] >= TURN_PYTHON


def _foreign(tree: ast.Module) -> Iterator[tuple[int, int, str, str]]:
    """Yield the imports that fail in a turn: line, column from 0, the module, and the mend."""
    tried = {id(inner) for node in ast.walk(tree) if _is_attempt(node) for inner in ast.walk(node)}
    mend = "use the standard library alone, and one file for one tool"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = ["." * node.level + (node.module or "")]
        else:
            continue
        for name in names:
            if id(node) not in tried and name.partition(".")[0] not in sys.stdlib_module_names:
                yield node.lineno, node.col_offset, name, mend


def _is_attempt(node: ast.AST) -> bool:
    """Say whether a failing import is expected here."""
    if not isinstance(node, ast.Try):
        return False
    caught = {
        name.id
        for handler in node.handlers
        for name in (ast.walk(handler.type) if handler.type else ())
        if isinstance(name, ast.Name)
    }
    return bool(caught & _CATCHES) or any(handler.type is None for handler in node.handlers)
