"""The pages say what the code says: settings, errors, dependencies, a turn's path, links and commands."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from runtime.agents.fields import MESSAGES, OVERRIDES, PROVIDER, SETTINGS, SKILL
from runtime.agents.reference import settings_page
from runtime.cli.main import COMMANDS
from runtime.errors import GatehouseError
from tests.controls import CONTROLS

ROOT = Path(__file__).resolve().parents[2]
TURN_PATH = (
    "runtime/server.py",
    "runtime/front/admit.py",
    "runtime/front/executor.py",
    "runtime/turn/plan.py",
    "runtime/turn/runner.py",
    "runtime/spawner/server.py",
    "runtime/spawner/policy.py",
    "runtime/spawner/engine.py",
    "sandbox/turn_init.py",
    "runtime/modelproxy/app.py",
    "runtime/turn/stream.py",
    "runtime/turn/screen.py",
    "runtime/turn/receipt.py",
)
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "instances/**/*.md", "compose/**/*.md", "sandbox/**/*.md")
    for path in ROOT.glob(pattern)
)
SOURCES = sorted(
    path
    for folder in ("runtime", "sandbox", "instances", "compose")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".sh", ".yaml", ".json"} or path.name.startswith("Dockerfile")
)
UNFINISHED = re.compile(r"\b(TODO|FIXME|XXX|TBD|HACK|WIP)\b")
MARKETING = re.compile(
    r"\b(simply|seamless(ly)?|blazing(ly)?|cutting-edge|world-class|effortless(ly)?|robust(ly)?"
    r"|state-of-the-art|enterprise-grade|battle-tested|powerful)\b",
    re.IGNORECASE,
)
LINK = re.compile(r"(?<!\!)\[[^\]\n]*\]\(([^)\s]+)\)")
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def docstring_of(path: Path) -> str:
    return (path.suffix == ".py" and ast.get_docstring(ast.parse(path.read_text()))) or ""


def family(root: type[GatehouseError] = GatehouseError) -> list[type[GatehouseError]]:
    return [root, *(item for child in root.__subclasses__() for item in family(child))]


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as the usual renderers make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_settings_page_is_the_one_that_the_table_makes() -> None:
    assert (ROOT / "docs/reference/settings.md").read_text() == settings_page(), "run `just settings`"


def test_every_setting_and_every_variable_has_a_line_on_the_settings_page() -> None:
    page = settings_page()
    keys = [item.key for fields in (SETTINGS, PROVIDER, SKILL, MESSAGES) for item in fields]
    assert [key for key in keys if f"| `{key}` |" not in page] == []
    assert [name for name in (*OVERRIDES, "ENVIRONMENT") if f"| `{name}` |" not in page] == []


# What the scripts and programs read from the environment and an operator does not set.
NOT_SETTINGS = {
    "CLAUDE_CONFIG_DIR": "the CLI's own",
    "DOCKER_HOST": "the docker client's own",
    "ENGINE_PID": "a variable of engine.sh",
    "GATEHOUSE_HOST_FILES": "where a test's host has its files",
    "GATEHOUSE_LOCKED": "tells a command that another one runs it",
    "GATEHOUSE_ROOT": "from ./gatehouse to the program that it starts",
    "GATEHOUSE_SOCKETS": "the same as --sockets",
    "HOME": "every shell's",
    "PATH": "every shell's",
    "PIP_CERT": "pip's own",
    "PYTHONPATH": "Python's own",
    "STACK_STARTING": "a variable of stack.sh",
    "TERM": "every terminal's",
}
READ = {
    "compose/*.yaml": r"\$\{([A-Z][A-Z0-9_]+)",
    "compose/host/*.sh": r"\$\{([A-Z][A-Z0-9_]+):?[-+]",
    "runtime/**/*.py": r"environ(?:\.get\(|\[)\s*[\"']([A-Z][A-Z0-9_]+)",
}


def test_every_variable_that_is_read_is_documented() -> None:
    page = "\n".join(path.read_text() for path in PAGES if path.suffix == ".md")
    read = {
        name: named(path)
        for pattern, variable in READ.items()
        for path in ROOT.glob(pattern)
        for name in re.findall(variable, path.read_text())
    }
    assert len(read) > 20
    missing = [name for name in read if not re.search(rf"\b{name}\b", page)]
    assert sorted(set(missing) - set(NOT_SETTINGS)) == [], read


def test_the_page_of_commands_is_the_one_that_their_help_makes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "runtime.cli.reference"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    page = (ROOT / "docs/reference/cli.md").read_text()
    assert page == done.stdout, "run `just cli-reference`"
    assert [name for name in COMMANDS if f"gatehouse {name}" not in page] == []


def test_every_error_code_stands_beside_its_exit_code_on_the_exit_code_page() -> None:
    lines = (ROOT / "docs/reference/exit-codes.md").read_text().splitlines()
    missing = [
        f"{error.exit_code} {error.code}"
        for error in family()
        if not any(f"`{error.code}`" in line and re.search(rf"\b{error.exit_code}\b", line) for line in lines)
    ]
    assert missing == []


@pytest.mark.parametrize(("number", "name"), list(enumerate(TURN_PATH, 1)), ids=TURN_PATH)
def test_each_file_on_the_turn_path_says_its_place_first(number: int, name: str) -> None:
    assert docstring_of(ROOT / name).startswith(f"Turn path {number}/{len(TURN_PATH)}: ")


def test_no_other_file_claims_a_place_on_the_turn_path() -> None:
    assert {named(path) for path in SOURCES if docstring_of(path).startswith("Turn path ")} == set(TURN_PATH)


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_local_links_lead_to_a_file_and_a_heading(path: Path) -> None:
    broken = []
    for target in LINK.findall(CODE.sub("", path.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, anchor = target.partition("#")
        destination = (path.parent / file).resolve() if file else path
        if not destination.exists() or (anchor and anchor not in anchors(destination)):
            broken.append(target)
    assert broken == []


def test_every_page_of_the_docs_is_in_the_index() -> None:
    index = ROOT / "docs" / "README.md"
    linked = {
        (index.parent / target.partition("#")[0]).resolve() for target in LINK.findall(index.read_text())
    }
    assert [named(path) for path in PAGES if "docs" in path.parts and path not in {*linked, index}] == []


@pytest.mark.parametrize("path", [*PAGES, *SOURCES], ids=named)
def test_nothing_is_left_unfinished(path: Path) -> None:
    assert UNFINISHED.findall(path.read_text()) == []


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_pages_use_plain_words(path: Path) -> None:
    assert [match[0] for match in MARKETING.finditer(path.read_text())] == []


def test_every_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {
        re.split(r"[\[<>=! ]", line)[0]
        for lines in project["optional-dependencies"].values()
        for line in lines
        if not line.startswith("gatehouse[")
    }
    page = (ROOT / "docs/explanation/dependencies.md").read_text()
    assert (
        sorted(
            name
            for name in wanted
            if not re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", page, re.IGNORECASE)
        )
        == []
    )


def test_every_recipe_and_command_that_a_page_names_exists() -> None:
    recipes = set(
        re.findall(r"^([a-z][a-z0-9-]*)[^:\n]*:(?!=)", (ROOT / "Justfile").read_text(), re.MULTILINE)
    )
    commands = set(re.findall(r"^command_([a-z]+)\(\)", (ROOT / "gatehouse").read_text(), re.MULTILINE))
    commands |= {"help", *COMMANDS}
    for path in PAGES:
        text = path.read_text()
        assert set(re.findall(r"\./gatehouse just ([a-z][a-z0-9-]*)", text)) <= recipes, named(path)
        assert set(re.findall(r"\./gatehouse ([a-z]+)", text)) <= commands, named(path)


def test_the_readme_says_what_it_must() -> None:
    text = (ROOT / "README.md").read_text()
    for words in (
        "```mermaid",
        "./gatehouse up",
        "./gatehouse test",
        "<!-- transcript -->",
        "own-persona.md",
    ):
        assert words in text
    assert "MODEL_API_KEY_FILE" in text
    assert "## Limits, said plainly" in text


def test_every_control_that_a_page_names_exists() -> None:
    table = (ROOT / "tests" / "controls.py").read_text()
    known = set(re.findall(r'^        "([A-Z]+-\d\d)",$', table, re.MULTILINE))
    assert known
    for path in PAGES:
        named_ids = set(re.findall(r"\b[A-Z]{2,6}-\d\d\b", path.read_text()))
        assert named_ids <= known, f"{named(path)}: {sorted(named_ids - known)}"


def test_every_attack_that_a_control_names_has_its_sentence() -> None:
    page = (ROOT / "docs" / "reference" / "attacks.md").read_text()
    told = re.findall(r"^\| ([A-Z]\d\d) \| \S.*\. \|$", page, re.MULTILINE)
    named_ids = {attack for control in CONTROLS for attack in control.abuse}
    assert sorted(told) == sorted(named_ids)


def test_every_promise_stands_on_the_security_page_and_what_is_pending_says_so() -> None:
    rows = [line for line in (ROOT / "SECURITY.md").read_text().splitlines() if line.startswith("| ")]
    told = {id_: row for row in rows for id_ in re.findall(r"\b[A-Z]{2,6}-\d\d\b", row)}
    assert sorted(told) == sorted(control.id for control in CONTROLS)
    for control in CONTROLS:
        marked = f"{control.id} (pending)" in told[control.id]
        assert marked == bool(control.pending), control.id
