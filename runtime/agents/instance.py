"""Loads one instance folder into an AgentDefinition, or reports everything that is wrong with it at once.

A folder `instances/<name>/` holds `agent.yaml`, the prompt file and `tools/` (seed S1 §2). The YAML is read
with the place of every value, checked by the table in `fields.py`, overridden by the environment, and joined
with the prompt. The same call serves the spawner, the front (which has no grounding mounted:
`check_sources=False`) and the command line.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.agents.addresses import questionable
from runtime.agents.assembly import assemble
from runtime.agents.definition import AgentDefinition, Grounding, Tools
from runtime.agents.directories import check_directory, given_twice, named_directories
from runtime.agents.documents import from_root
from runtime.agents.fields import OVERRIDES, SETTINGS
from runtime.agents.findings import GROUNDING, AtSetting, Findings, examine
from runtime.agents.folders import AGENT_FILE, missing_file, refused_name, refused_template
from runtime.agents.honesty import dishonest, unserved, words_of
from runtime.agents.placeholders import MEND as FILL_IN
from runtime.agents.placeholders import TEMPLATE, unfilled_settings
from runtime.agents.programs import are_certain, faults
from runtime.agents.prompt import Prompt, check_tools, read_prompt
from runtime.agents.regular import read_regular
from runtime.agents.scalars import Place, read_text
from runtime.agents.scripts import scripts_in
from runtime.agents.sizes import slow_persona
from runtime.agents.texts import secret_findings
from runtime.agents.tool_grants import MEND as GRANT_MEND
from runtime.agents.tool_grants import Granted, missing_scripts, parse_grants
from runtime.agents.values import Values, read_fields
from runtime.agents.yaml_source import MAX_BYTES, Report, read_mapping
from runtime.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from runtime.agents.tree import Mapping as YamlMapping

TOOLS_FOLDER = "tools"
PROMPT_FILE = "system-prompt.md"


@dataclass(frozen=True, slots=True)
class Inspection:
    """What a look at an instance gave: `agent` is None exactly when there are problems."""

    agent: AgentDefinition | None
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Look:
    """One instance while it is looked at; `outside` has the problems of the environment's variables."""

    root: Path
    name: str
    environ: Mapping[str, str]
    check_sources: bool
    template: bool
    report: Report
    outside: Report = field(default_factory=lambda: Report("environment"))
    warnings: list[Problem] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        return self.root / "instances" / self.name


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
    seen = inspect_instance(root, name, environ, check_sources=check_sources, template=template)
    if seen.agent is None:
        raise ConfigError(seen.problems)
    return seen.agent


def inspect_instance(
    root: Path, name: str, environ: Mapping[str, str], *, check_sources: bool = True, template: bool = False
) -> Inspection:
    """Return the agent, or its problems, and in both cases the warnings; parameters as in `load_instance`."""
    refused = refused_name(root, name)
    if refused is not None:
        return Inspection(None, (refused,))
    template = template and name == TEMPLATE
    if name == TEMPLATE and not template:
        return Inspection(None, (refused_template(),))
    report = Report(f"instances/{name}/{AGENT_FILE}")
    look = _Look(root.absolute(), name, environ, check_sources, template, report)
    raw = read_regular(look.folder / AGENT_FILE, MAX_BYTES)
    if isinstance(raw, str):
        return Inspection(None, (missing_file(look.root, name, raw),))
    _secrets(raw, look)
    source = read_mapping(raw, report)
    return _inspect_without_settings(look) if source is None else _inspect(source, look)


def _inspect_without_settings(look: _Look) -> Inspection:
    """Look at what can be looked at while the settings cannot be read: the prompt, and documents in place.

    The folder of documents is the template's, when it is there; what is granted is not known.
    """
    more = "; more may be found once the file can be read"
    if look.report.problems:
        last = look.report.problems[-1]
        look.report.problems[-1] = dataclasses.replace(last, mend=last.mend + more)
    prompt = _prompt(look, PROMPT_FILE)
    check_tools(prompt, Granted(Tools((), ()), None), scripts_in(look.folder / TOOLS_FOLDER))
    look.warnings += prompt.warnings
    problems: list[Problem] = []
    documents = look.folder / "grounding"
    if look.check_sources and not check_directory(documents, look.root, look.folder, look.environ):
        findings = examine([(GROUNDING, documents)], (), look.root, None, template=look.template)
        problems = findings.problems
        look.warnings += findings.warnings
    return Inspection(None, _together(look, prompt, problems), _sorted(look.warnings))


def _inspect(source: YamlMapping, look: _Look) -> Inspection:
    given = {key: value for key in OVERRIDES if (value := look.environ.get(key, "").strip())}
    overridden = frozenset(OVERRIDES[key].key for key in given)
    values = read_fields(source, SETTINGS, look.report, given=overridden)
    _apply_overrides(values, given, look.outside)
    directories = named_directories(
        values, look.root, look.folder, look.environ, check_sources=look.check_sources
    )
    if look.check_sources:
        _report(given_twice(directories, look.root), values, look)
    granted = _granted(source, values, look.folder / TOOLS_FOLDER)
    tools = granted.tools
    _check_skills(values)
    prompt = _prompt(look, values.found.get("system_prompt_file"))
    scripts = scripts_in(look.folder / TOOLS_FOLDER)
    check_tools(prompt, granted, scripts)
    look.warnings += prompt.warnings
    _report(dishonest(values.found, granted, scripts, prompt.text), values, look)
    for found in () if look.template else unfilled_settings(source):
        look.report.add(
            found.line, found.col, found.path, f"still holds the placeholder {found.text}", FILL_IN
        )
    _addresses(values, look)
    problems = _examine(directories, tools, values, prompt, look) if look.check_sources else []
    for name in tools.granted if look.check_sources else ():
        where = f"instances/{look.name}/{TOOLS_FOLDER}/{name}.py"
        faulty = faults(look.folder / TOOLS_FOLDER / f"{name}.py", where)
        (problems if are_certain() else look.warnings).extend(faulty)
    together = _together(look, prompt, problems)
    if together or prompt.text is None:
        return Inspection(None, together, _sorted(look.warnings))
    named = dict(directories)
    grounding = Grounding(
        named.pop(GROUNDING), tuple(named.values()), values.found.get("inline_grounding", ())
    )
    agent = assemble(
        look.name, values.found, prompt.text, grounding, tools, look.folder / TOOLS_FOLDER, look.environ
    )
    return Inspection(agent, (), _sorted(look.warnings))


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


def _granted(source: YamlMapping, values: Values, tools_dir: Path) -> Granted:
    if "allowed_tools" not in values.found:
        return Granted(Tools((), ()), source.words_of("allowed_tools") or None)
    text = values.found["allowed_tools"]
    tools, wrong = parse_grants(text)
    place = values.places.get("allowed_tools")
    if place is not None:
        for message in wrong:
            place.add(message, GRANT_MEND)
        for message in missing_scripts(tools, tools_dir):
            place.add(f"grants a script, but {message}", "put the script there, or take the grant out")
    return Granted(tools, text if wrong else "")


def _check_skills(values: Values) -> None:
    seen: set[str] = set()
    for number, skill in enumerate(values.found.get("skills", ())):
        name = skill.get("id", "")
        if name in seen:
            place = values.places[f"skills[{number}].id"]
            place.add(f"is the id {name!r} of another skill", "give each its own id")
        elif name:
            seen.add(name)


def _prompt(look: _Look, name: str | None) -> Prompt:
    """Read the prompt file `name`; None when its setting is wrong, which is reported already."""
    if name is None:
        return Prompt(None, Report(look.report.file))
    where = f"instances/{look.name}/{name}"
    return read_prompt(look.folder / name, where, template=look.template)


def _secrets(raw: bytes, look: _Look) -> None:
    problems, warnings = secret_findings(raw.decode("utf-8-sig", "replace"), look.report.file)
    for problem in problems:
        look.report.add(problem.line, problem.col, "", problem.message, problem.mend)
    look.warnings += warnings


def _addresses(values: Values, look: _Look) -> None:
    """Warn about addresses that belong to nobody, as far as a visitor reads them, and about a missing one."""
    if not look.template:
        _report(questionable(values.found), values, look)


def _report(found: Iterable[AtSetting], values: Values, look: _Look) -> None:
    """Give each finding about a setting the place of its value."""
    for one in found:
        at = values.places.get(one.setting) or Place(look.report, 0, 0, one.setting)
        if one.certain:
            at.add(one.message, one.mend)
        else:
            look.warnings.append(Problem(at.report.file, at.line, at.col, at.path, one.message, one.mend))


def _examine(
    directories: list[tuple[str, Path]], tools: Tools, values: Values, prompt: Prompt, look: _Look
) -> list[Problem]:
    """Look at the files themselves; a granted script that is none is reported already."""
    tools_dir = look.folder / TOOLS_FOLDER
    granted = bool(tools.granted) and tools_dir.is_dir()
    skills = values.found.get("skills", ())
    findings: Findings = examine(
        directories,
        values.found.get("inline_grounding", ()),
        look.root,
        tools_dir if granted else None,
        template=look.template,
        words=frozenset().union(*(words_of(skill) for skill in skills)),
    )
    look.warnings += findings.warnings
    _report(findings.settings, values, look)
    if prompt.text is not None and not look.template:
        if findings.whole and len(directories) == 1 + len(values.found.get("extra_read_dirs", [None])):
            _report(unserved(values.found, findings.words, prompt.text), values, look)
        slow = slow_persona(len(prompt.text.encode()), findings.inlined_bytes)
        if slow is not None:
            _report([AtSetting("inline_grounding", *slow, certain=False)], values, look)
    missing = {
        f"{from_root(look.folder, look.root)}/{text.partition(' ')[0]}"
        for text in missing_scripts(tools, tools_dir)
    }
    return [problem for problem in findings.problems if problem.file not in missing]


def _together(look: _Look, prompt: Prompt, problems: list[Problem]) -> tuple[Problem, ...]:
    return (*_sorted([*look.report.all(), *prompt.report.all(), *problems]), *look.outside.all())


def _sorted(problems: list[Problem]) -> tuple[Problem, ...]:
    """Order problems as a reader goes through the files; `agent.yaml` sorts before the prompt's `.md`."""
    return tuple(
        sorted(
            problems,
            key=lambda one: ("" if one.file.endswith(AGENT_FILE) else one.file, one.line, one.col, one.path),
        )
    )
