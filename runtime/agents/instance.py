"""Loads one instance folder into an AgentDefinition, or reports everything that is wrong with it at once.

A folder `instances/<name>/` holds `agent.yaml`, the prompt file and `tools/` (seed S1 §2). The YAML is read
with the place of every value, checked by the table in `fields.py`, overridden by the environment, and joined
with the prompt. The same call serves the spawner, the front (which has no grounding mounted:
`check_sources=False`) and the command line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from runtime.agents.assembly import assemble
from runtime.agents.definition import AgentDefinition, Grounding, Tools
from runtime.agents.directories import named_directories
from runtime.agents.documents import shown
from runtime.agents.fields import OVERRIDES, SETTINGS, Kind
from runtime.agents.findings import GROUNDING, AtSetting, Findings, examine
from runtime.agents.honesty import dishonest, unserved, words_of
from runtime.agents.placeholders import MEND as FILL_IN
from runtime.agents.placeholders import TEMPLATE, unfilled_settings
from runtime.agents.prompt import Prompt, check_tools, read_prompt
from runtime.agents.regular import read_regular
from runtime.agents.scripts import scripts_in
from runtime.agents.sizes import slow_persona
from runtime.agents.texts import secret_findings
from runtime.agents.tool_grants import MEND as GRANT_MEND
from runtime.agents.tool_grants import missing_scripts, parse_grants
from runtime.agents.values import Place, Values, read_fields, read_text
from runtime.agents.yaml_source import MAX_BYTES, Report, read_mapping
from runtime.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from runtime.agents.yaml_source import Mapping as YamlMapping

AGENT_FILE = "agent.yaml"
TOOLS_FOLDER = "tools"
PROMPT_FILE = "system-prompt.md"
_NAME = re.compile(r"[a-z0-9_][a-z0-9_-]{0,62}")
_NOBODYS = re.compile(r"(?i)(?:.*\.)?(?:example(?:\.(?:org|com|net))?|invalid|test)")


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
    if not _NAME.fullmatch(name):
        mend = "use lower-case letters, digits, - and _, at most 63 characters"
        return Inspection(
            None, (Problem("instances", 0, 0, "", f"has no instance named {name[:80]!r}", mend),)
        )
    template = template and name == TEMPLATE
    if name == TEMPLATE and not template:
        message = "is what a persona is copied from, and is none itself"
        mend = f"cp -r instances/{TEMPLATE} instances/NAME, fill it in, and set GATEHOUSE_AGENT=NAME"
        return Inspection(None, (Problem(f"instances/{TEMPLATE}", 0, 0, "", message, mend),))
    report = Report(f"instances/{name}/{AGENT_FILE}")
    look = _Look(root.absolute(), name, environ, check_sources, template, report)
    raw = read_regular(look.folder / AGENT_FILE, MAX_BYTES)
    if isinstance(raw, str):
        known = ", ".join(instance_names(look.root)) or "none yet"
        report.add(0, 0, "", raw, f"copy instances/_template to instances/{name}; there are: {known}")
        return Inspection(None, report.all())
    _secrets(raw, look)
    source = read_mapping(raw, report)
    if source is None:
        prompt = _prompt(look, PROMPT_FILE)
        return Inspection(None, _together(look, prompt, []), _sorted(look.warnings))
    return _inspect(source, look)


def instance_names(root: Path) -> tuple[str, ...]:
    """Return the names of the folders under `root/instances` that hold an agent file, sorted."""
    return tuple(sorted(path.parent.name for path in (root / "instances").glob(f"*/{AGENT_FILE}")))


def _inspect(source: YamlMapping, look: _Look) -> Inspection:
    given = {key: value for key in OVERRIDES if (value := look.environ.get(key, "").strip())}
    overridden = frozenset(OVERRIDES[key].key for key in given)
    values = read_fields(source, SETTINGS, look.report, given=overridden)
    _apply_overrides(values, given, look.outside)
    directories = named_directories(
        values, look.root, look.folder, look.environ, check_sources=look.check_sources
    )
    tools = _tools(values, look.folder / TOOLS_FOLDER)
    _check_skills(values)
    prompt = _prompt(look, values.found.get("system_prompt_file"))
    scripts = scripts_in(look.folder / TOOLS_FOLDER)
    if "allowed_tools" in values.found:
        check_tools(prompt, tools, scripts)
        _report(dishonest(values.found, tools, scripts, prompt.text), values, look)
    for found in () if look.template else unfilled_settings(source):
        look.report.add(
            found.line, found.col, found.path, f"still holds the placeholder {found.text}", FILL_IN
        )
    _addresses(values, look)
    problems = _examine(directories, tools, values, prompt, look) if look.check_sources else []
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
    prompt = read_prompt(look.folder / name, where, template=look.template)
    look.warnings += prompt.warnings
    return prompt


def _secrets(raw: bytes, look: _Look) -> None:
    problems, warnings = secret_findings(raw.decode("utf-8-sig", "replace"), look.report.file)
    for problem in problems:
        look.report.add(problem.line, problem.col, "", problem.message, problem.mend)
    look.warnings += warnings


def _addresses(values: Values, look: _Look) -> None:
    """Warn about addresses that belong to nobody: a visitor reads them on the card."""
    if look.template:
        return
    urls = {item.key: values.found.get(item.key) for item in SETTINGS if item.kind is Kind.URL}
    urls["provider.url"] = (values.found.get("provider") or {}).get("url")
    message = "is at a name that is reserved for examples, and visitors read it"
    for key, url in urls.items():
        if url and _NOBODYS.fullmatch(urlsplit(url).hostname or ""):
            _report([AtSetting(key, message, "write an address of your own", certain=False)], values, look)


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
        _report(unserved(values.found, findings.words, prompt.text), values, look)
        slow = slow_persona(len(prompt.text.encode()), findings.inlined_bytes)
        if slow is not None:
            _report([AtSetting("inline_grounding", *slow, certain=False)], values, look)
    missing = {
        f"{shown(look.folder, look.root)}/{text.partition(' ')[0]}"
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
