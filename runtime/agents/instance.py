"""Loads one instance folder into an AgentDefinition, or reports everything that is wrong with it at once.

A folder `instances/<name>/` holds `agent.yaml`, the prompt file and `tools/` (seed S1 §2). The YAML is read
with the place of every value, checked by the table in `fields.py`, overridden by the environment, and joined
with the prompt. The same call serves the spawner, the front (which has no grounding mounted:
`check_sources=False`) and the command line.
"""

from __future__ import annotations

import re
import stat
from typing import TYPE_CHECKING, Any

from runtime.agents.definition import (
    AgentDefinition,
    Card,
    Grounding,
    Limits,
    Messages,
    Network,
    Provider,
    Skill,
    Tools,
)
from runtime.agents.directories import MEND as DIRECTORY_MEND
from runtime.agents.directories import check_directory, refuse_directory, resolve_directory
from runtime.agents.documents import shown
from runtime.agents.fields import DEVELOPMENT, ENVIRONMENT, OVERRIDES, SETTINGS
from runtime.agents.findings import examine
from runtime.agents.placeholders import MEND as FILL_IN
from runtime.agents.placeholders import (
    TEMPLATE,
    unfilled,
    unfilled_settings,
    unknown_variables,
    variable_mend,
)
from runtime.agents.tool_grants import MEND as GRANT_MEND
from runtime.agents.tool_grants import missing_scripts, parse_grants
from runtime.agents.values import Place, Values, read_fields, read_text
from runtime.agents.yaml_source import Mapping as YamlMapping
from runtime.agents.yaml_source import Report, read_mapping
from runtime.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

AGENT_FILE = "agent.yaml"
TOOLS_FOLDER = "tools"
MAX_PROMPT_BYTES = 256 * 1024
_NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,62}")


def load_instance(
    root: Path, name: str, environ: Mapping[str, str], *, check_sources: bool = True, template: bool = False
) -> AgentDefinition:
    """Return the agent that `root/instances/<name>` defines, with the environment's overrides applied.

    `root` stands for the repository's root. With `check_sources` the grounding directories must exist on
    this host and every file in them is looked at; without it only their names are judged. An override that
    is set to nothing counts as not set. `template` lets the template itself load, placeholders and all; it
    can never be served.
    Raises ConfigError with every problem found, each with file (relative to `root`), line and column.
    """
    root = root.absolute()
    folder = root / "instances" / name
    report = Report(f"instances/{name}/{AGENT_FILE}")
    outside = Report("environment")
    if not _NAME.fullmatch(name):
        mend = "use lower-case letters, digits, - and _, at most 63 characters"
        raise ConfigError((Problem("instances", 0, 0, "", f"has no instance named {name[:80]!r}", mend),))
    template = template and name == TEMPLATE
    if name == TEMPLATE and not template:
        message = "is what a persona is copied from, and is none itself"
        mend = f"cp -r instances/{TEMPLATE} instances/NAME, fill it in, and set GATEHOUSE_AGENT=NAME"
        raise ConfigError((Problem(f"instances/{TEMPLATE}", 0, 0, "", message, mend),))
    source = _read_agent_file(root, folder, report)
    if source is None:
        raise ConfigError(tuple(report.problems))
    given = {key: value for key in OVERRIDES if (value := environ.get(key, "").strip())}
    values = read_fields(source, SETTINGS, report, given=frozenset(OVERRIDES[key].key for key in given))
    _apply_overrides(values, given, outside)
    grounding = _grounding(values, root, folder, environ, check_sources=check_sources)
    tools = _tools(values, folder / TOOLS_FOLDER)
    _check_skills(values)
    persona = _read_prompt(folder, values, report, template=template)
    for found in () if template else unfilled_settings(source):
        report.add(found.line, found.col, found.path, f"still holds the placeholder {found.text}", FILL_IN)
    if check_sources and grounding is not None:
        _examine(grounding, tools, root, folder, values, report, template=template)
    problems = (*sorted(report.problems, key=_place_of), *outside.problems)
    if problems or grounding is None or persona is None:
        raise ConfigError(problems)
    return _build(name, values.found, persona, grounding, tools, folder / TOOLS_FOLDER, environ)


def instance_names(root: Path) -> tuple[str, ...]:
    """Return the names of the folders under `root/instances` that hold an agent file, sorted."""
    return tuple(sorted(path.parent.name for path in (root / "instances").glob(f"*/{AGENT_FILE}")))


def _read_agent_file(root: Path, folder: Path, report: Report) -> YamlMapping | None:
    raw = _read_regular(folder / AGENT_FILE)
    if isinstance(raw, str):
        known = ", ".join(instance_names(root)) or "none yet"
        report.add(0, 0, "", raw, f"copy instances/_template to instances/{folder.name}; there are: {known}")
        return None
    return read_mapping(raw, report)


def _read_regular(path: Path) -> bytes | str:
    """Return the bytes of a regular file, or one sentence about why there are none; no link is followed."""
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            return "is not a regular file"
        return path.read_bytes()
    except FileNotFoundError:
        return "does not exist"
    except NotADirectoryError:
        return "does not exist"
    except OSError as error:
        return f"cannot be read ({error.strerror})"


def _apply_overrides(values: Values, given: Mapping[str, str], outside: Report) -> None:
    for variable, raw in given.items():
        item = OVERRIDES[variable]
        place = Place(outside, 0, 0, variable)
        values.places[item.key] = place
        values.found.pop(item.key, None)
        value = read_text(raw, item, place)
        if value is not None:
            values.found[item.key] = value
            if item.key == "cors_origins":
                values.found["cors_dev_origins"] = ()


def _grounding(
    values: Values, root: Path, folder: Path, environ: Mapping[str, str], *, check_sources: bool
) -> Grounding | None:
    named = [("grounding_dir", values.found["grounding_dir"])] if "grounding_dir" in values.found else []
    named += [
        (f"extra_read_dirs[{n}]", text) for n, text in enumerate(values.found.get("extra_read_dirs", ()))
    ]
    directories: list[Path] = []
    for key, text in named:
        path = resolve_directory(text, root, folder, environ)
        if isinstance(path, str):
            values.places[key].add(
                f"{text!r} {path}", "write an absolute path, or one below the repository's root"
            )
            continue
        message = refuse_directory(path, root, folder, environ)
        if not message and check_sources:
            message = check_directory(path, root, folder, environ)
        if message:
            mend = f"create it, or {DIRECTORY_MEND}" if message == "does not exist" else DIRECTORY_MEND
            values.places[key].add(f"{shown(path, root)!r} {message}", mend)
            continue
        directories.append(path)
    if len(directories) != len(named) or "grounding_dir" not in values.found:
        return None
    return Grounding(directories[0], tuple(directories[1:]), values.found.get("inline_grounding", ()))


def _examine(
    grounding: Grounding,
    tools: Tools,
    root: Path,
    folder: Path,
    values: Values,
    report: Report,
    *,
    template: bool,
) -> None:
    """Report what is wrong with the files themselves; a granted script that is none is reported already."""
    tools_dir = folder / TOOLS_FOLDER
    granted = bool(tools.granted) and tools_dir.is_dir()
    findings = examine(grounding, root, tools_dir if granted else None, template=template)
    for setting, message, mend in findings.unset:
        values.places[setting].add(message, mend)
    missing = {
        f"{shown(folder, root)}/{text.partition(' ')[0]}" for text in missing_scripts(tools, tools_dir)
    }
    report.problems.extend(problem for problem in findings.problems if problem.file not in missing)


def _tools(values: Values, tools_dir: Path) -> Tools:
    if "allowed_tools" not in values.found:
        return Tools()
    tools, wrong = parse_grants(values.found["allowed_tools"])
    place = values.places.get("allowed_tools")
    if place is not None:
        for message in wrong:
            place.add(message, GRANT_MEND)
        for message in missing_scripts(tools, tools_dir):
            place.add(f"grants a script, but {message}", "put the script there, or take the grant out")
    return tools


def _check_skills(values: Values) -> None:
    seen: set[str] = set()
    for skill in values.found.get("skills", ()):
        if skill["id"] in seen:
            values.places["skills"].add(f"has two skills with the id {skill['id']!r}", "give each its own id")
        seen.add(skill["id"])


def _place_of(problem: Problem) -> tuple[str, int, int, str]:
    """Order problems as a reader goes through the files; `agent.yaml` sorts before the prompt's `.md`."""
    return (
        "" if problem.file.endswith(AGENT_FILE) else problem.file,
        problem.line,
        problem.col,
        problem.path,
    )


def _read_prompt(folder: Path, values: Values, report: Report, *, template: bool) -> str | None:
    """Return the persona, or None after a problem whose file is the prompt file itself."""
    if "system_prompt_file" not in values.found:
        return None
    name = values.found["system_prompt_file"]
    own = Report(f"{report.file.rsplit('/', 1)[0]}/{name}")
    raw = _read_regular(folder / name)
    text: str | None = None
    if isinstance(raw, str):
        own.add(0, 0, "", raw, "write the persona there; instances/_template/system-prompt.md is a start")
    elif len(raw) > MAX_PROMPT_BYTES:
        own.add(
            0, 0, "", f"is larger than {MAX_PROMPT_BYTES} bytes", "move facts into the grounding directory"
        )
    else:
        try:
            text = raw.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = raw[: error.start]
            own.add(
                before.count(b"\n") + 1,
                error.start - before.rfind(b"\n"),
                "",
                "is not UTF-8",
                "save the file as UTF-8",
            )
        else:
            if not text.strip():
                own.add(0, 0, "", "is empty", "write the persona there")
            elif "\x00" in text:
                own.add(0, 0, "", "holds a NUL character", "remove it")
            _check_filled_in(text, own, template=template)
    report.problems.extend(own.problems)
    return text


def _check_filled_in(text: str, own: Report, *, template: bool) -> None:
    for found in () if template else unfilled(text):
        own.add(found.line, found.col, "", f"still holds the placeholder {found.text}", FILL_IN)
    for found in unknown_variables(text):
        own.add(found.line, found.col, "", f"{found.text} is filled in by nothing", variable_mend(found.text))


def _build(
    name: str,
    found: Mapping[str, Any],
    persona: str,
    grounding: Grounding,
    tools: Tools,
    tools_dir: Path,
    environ: Mapping[str, str],
) -> AgentDefinition:
    development = environ.get(ENVIRONMENT, "").strip().lower() in DEVELOPMENT
    origins = found["cors_origins"] + (found["cors_dev_origins"] if development else ())
    host, port = found["host"], found["port"]
    authority = f"[{host}]" if ":" in host else host
    provider = found.get("provider")
    return AgentDefinition(
        id=name,
        card=Card(
            name=found.get("name", name),
            description=found["description"],
            version=found["version"],
            public_url=found.get("public_url", f"http://{authority}:{port}").rstrip("/"),
            provider=Provider(**provider) if provider else None,
            documentation_url=found.get("documentation_url", ""),
            icon_url=found.get("icon_url", ""),
            skills=tuple(Skill(**{"name": skill["id"], **skill}) for skill in found.get("skills", ())),
        ),
        persona=persona,
        grounding=grounding,
        tools=tools,
        tools_dir=tools_dir,
        model=found["model"],
        limits=Limits(
            timeout_seconds=found["timeout"],
            max_concurrency=found["max_concurrency"],
            max_input_chars=found["max_input_chars"],
            max_turns=found["max_turns"],
            max_contexts=found["max_contexts"],
        ),
        messages=Messages(**found.get("messages", {})),
        network=Network(host=host, port=port, cors_origins=tuple(dict.fromkeys(origins))),
        binary=found["binary"],
    )
