"""What each image is made of: the program files that its service imports, and locks without an address."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.contract.stack_table import PROGRAMS

REPO = Path(__file__).resolve().parents[2]
LOCK_LINE = re.compile(r"^(?:[a-z0-9._-]+==\S+(?: ; .*)? \\|    --hash=sha256:[0-9a-f]{64}(?: \\)?|    #.*)$")


def file_of(module: str) -> Path | None:
    """Return the file of a module or package below `runtime`, or None when there is no such module."""
    place = REPO.joinpath(*module.split("."))
    return next((path for path in (place.with_suffix(".py"), place / "__init__.py") if path.is_file()), None)


def imported(path: Path) -> set[str]:
    """Return the modules below `runtime` that a file imports when it runs."""
    found: set[str] = set()
    waiting: list[ast.AST] = [ast.parse(path.read_text())]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "runtime":
            found |= {str(node.module), *(f"{node.module}.{one.name}" for one in node.names)}
        waiting.extend(ast.iter_child_nodes(node))
    return {module for module in found if file_of(module)}


def needed(entry: str) -> set[str]:
    """Return the modules and packages below `runtime` that `python -m runtime.ENTRY` can come to load."""
    program = f"runtime.{entry}"
    seen: set[str] = set()
    waiting = {program, f"{program}.__main__"} if file_of(f"{program}.__main__") else {program}
    while waiting:
        module = waiting.pop()
        seen.add(module)
        file = file_of(module)
        assert file is not None, module
        waiting |= imported(file) - seen
    return {module.split(".")[1] for module in seen if module != "runtime"}


@pytest.mark.parametrize(
    ("service", "entries"),
    [
        ("ingress", {"ingress"}),
        ("front", {"server", "health", "turn.once"}),
        ("spawner", {"spawner", "health"}),
        ("modelproxy", {"modelproxy", "health"}),
    ],
)
def test_an_image_gets_what_its_service_imports_and_nothing_else(service: str, entries: set[str]) -> None:
    wanted = set().union(*map(needed, entries))
    assert PROGRAMS[service] - {"__init__"} == wanted
    dockerfile = (REPO / "compose" / "Dockerfile").read_text().replace("\\\n", " ")
    stage = dockerfile.split(f"\nFROM python AS {service}\n")[1].split("\nFROM ")[0]
    copied = {
        word.split("/")[1].removesuffix(".py")
        for line in stage.splitlines()
        if line.startswith("COPY runtime/")
        for word in line.split()[1:-1]
    }
    assert copied == PROGRAMS[service]


def test_no_dockerfile_needs_a_registry_for_its_syntax() -> None:
    for file in ("compose/Dockerfile", "sandbox/Dockerfile.turn"):
        assert not (REPO / file).read_text().lower().startswith("# syntax")


@pytest.mark.parametrize("name", ["front", "spawner", "modelproxy", "dev"])
def test_a_lock_holds_versions_and_hashes_and_no_address(name: str) -> None:
    lines = (REPO / "requirements" / f"{name}.txt").read_text().splitlines()
    assert len(lines) > 50
    assert [line for line in lines if not LOCK_LINE.match(line)] == []
