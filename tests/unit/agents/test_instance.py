"""Loading an instance folder: defaults, overrides, and every mistake with its place and its mend."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

import pytest

from runtime.agents.definition import (
    AgentDefinition,
    Limits,
    Messages,
    Network,
    Provider,
    Security,
    Skill,
)
from runtime.agents.documents import Walk
from runtime.agents.fields import OVERRIDES, SETTINGS
from runtime.agents.folders import instance_names
from runtime.agents.instance import load_instance
from runtime.agents.prompt import MAX_PROMPT_BYTES
from runtime.errors import ConfigError, Problem

BROKEN = sorted((Path(__file__).parent / "broken").glob("*.yaml"))
EXPECTATION = re.compile(r"^# expect (\d+):(\d+) (\S* ?)\| (.+)$", re.MULTILINE)


def agent_file(root: Path, text: str) -> None:
    (root / "instances" / "good" / "agent.yaml").write_text(text)


def problems_of(root: Path, name: str = "good", environ: dict[str, str] | None = None) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as caught:
        load_instance(root, name, environ or {})
    return caught.value.problems


def load(root: Path, **environ: str) -> AgentDefinition:
    return load_instance(root, "good", environ)


@pytest.mark.parametrize("path", BROKEN, ids=lambda path: path.stem)
def test_a_broken_file_is_reported_with_every_place_and_nothing_else(root: Path, path: Path) -> None:
    folder = root / "instances" / "broken"
    folder.mkdir()
    folder.joinpath("system-prompt.md").write_text("You represent somebody.\n")
    folder.joinpath("agent.yaml").write_bytes(path.read_bytes())
    expected = [
        (int(line), int(col), where.strip(), words)
        for line, col, where, words in EXPECTATION.findall(path.read_text())
    ]
    problems = problems_of(root, "broken")
    assert expected
    assert [(problem.line, problem.col, problem.path) for problem in problems] == [
        (line, col, where) for line, col, where, _ in expected
    ]
    for problem, (*_, words) in zip(problems, expected, strict=True):
        assert words in str(problem)
        assert str(problem).startswith(f"instances/broken/agent.yaml:{problem.line}:{problem.col}: ")
        assert problem.mend


def test_a_file_with_nothing_but_grounding_gets_every_default(root: Path) -> None:
    agent = load(root)
    assert agent.id == "good"
    assert agent.card.name == "good"
    assert agent.card.description == ""
    assert agent.card.version == "1.0.0"
    assert agent.card.provider is None
    assert agent.card.public_url == "http://127.0.0.1:8011"
    assert agent.card.skills == ()
    assert agent.model == "sonnet"
    assert agent.binary == "claude"
    assert agent.tools.builtin == ("Read", "Glob", "Grep")
    assert agent.tools.granted == ()
    assert agent.grounding.directory == root / "docs"
    assert agent.grounding.extra == ()
    assert agent.grounding.inline == ()
    assert agent.limits == Limits()
    assert agent.messages == Messages()
    assert agent.network == Network()
    assert agent.tools_dir == root / "instances" / "good" / "tools"
    assert agent.persona == "You represent somebody. Tools: ${tools_dir}\n"


def test_every_key_reaches_the_definition(root: Path) -> None:
    root.joinpath("more").mkdir()
    root.joinpath("instances/good/persona.md").write_text("Another persona.\n")
    every_key = """\
name: Somebody
description: >
  Two lines that
  become one.
version: 1.10
provider: {organization: Example, url: "https://example.org"}
documentation_url: https://example.org/agent
icon_url: https://example.org/icon.png
skills:
  - id: facts
    tags: [a, b]
    examples: ["Who?"]
  - {id: more, name: More, description: D, tags: [c], input_modes: [text], output_modes: [text, data]}
host: 0.0.0.0
port: 9000
public_url: https://agent.example.org/
model: claude-opus-4-20250514
binary: /opt/cli
timeout: 12.5
grounding_dir: ${instance_dir}/tools/../../../docs
extra_read_dirs: [more]
allowed_tools: Grep, Read, Bash(python3 ${tools_dir}/hours.py:*)
max_concurrency: 3
max_input_chars: 10
max_turns: 5
max_contexts: 6
on_disconnect: finish
disconnect_grace: 7.5
security_contact: mailto:security@example.org
security_policy: https://example.org/policy
inline_grounding: ["*.md"]
cors_origins: ["https://www.example.org"]
cors_dev_origins: ["http://localhost:3000"]
messages: {busy: Later., too_long: "{n} of {max}"}
system_prompt_file: persona.md
"""
    assert set(re.findall(r"^(\w+):", every_key, re.MULTILINE)) == {setting.key for setting in SETTINGS}
    agent_file(root, every_key)
    agent = load(root)
    assert agent.card.name == "Somebody"
    assert agent.card.description == "Two lines that become one."
    assert agent.card.version == "1.10"
    assert agent.card.provider == Provider("Example", "https://example.org")
    assert agent.card.documentation_url == "https://example.org/agent"
    assert agent.card.icon_url == "https://example.org/icon.png"
    assert agent.card.public_url == "https://agent.example.org"
    assert agent.card.skills == (
        Skill("facts", "facts", "", ("a", "b"), ("Who?",)),
        Skill("more", "More", "D", ("c",), (), ("text",), ("text", "data")),
    )
    assert agent.network == Network("0.0.0.0", 9000, ("https://www.example.org",))  # noqa: S104  a value under test
    assert agent.model == "claude-opus-4-20250514"
    assert agent.binary == "/opt/cli"
    assert agent.limits == Limits(12.5, 3, 10, 5, 6, "finish", 7.5)
    assert agent.security == Security("mailto:security@example.org", "https://example.org/policy")
    assert agent.tools.builtin == ("Read", "Grep")
    assert agent.tools.granted == ("hours",)
    assert agent.grounding.directory == root / "docs"
    assert agent.grounding.extra == (root / "more",)
    assert agent.grounding.inline == ("*.md",)
    assert agent.messages == Messages(busy="Later.", too_long="{n} of {max}")
    assert agent.persona == "Another persona.\n"


def test_each_environment_variable_beats_the_file(root: Path) -> None:
    (root / "other").mkdir()
    (root / "other" / "fact.md").write_text("Another fact.\n")
    agent_file(root, "grounding_dir: docs\nhost: 10.0.0.1\nport: 1\nmodel: haiku\nbinary: one\n")
    agent = load(
        root,
        PUBLIC_AGENT_URL="https://agent.example.org",
        AGENT_HOST="::1",
        AGENT_PORT="8080",
        CLAUDE_MODEL="opus",
        GROUNDING_DIR="other",
        CLAUDE_BINARY="two",
        CORS_ALLOWED_ORIGINS=" https://a.example , ,https://b.example",
    )
    assert agent.card.public_url == "https://agent.example.org"
    assert agent.network == Network("::1", 8080, ("https://a.example", "https://b.example"))
    assert agent.model == "opus"
    assert agent.grounding.directory == root / "other"
    assert agent.binary == "two"
    assert len(OVERRIDES) == 7  # and ENVIRONMENT, the eighth


def test_the_default_public_url_follows_overridden_host_and_port(root: Path) -> None:
    assert load(root, AGENT_HOST="::1", AGENT_PORT="81").card.public_url == "http://[::1]:81"


def test_a_variable_set_to_nothing_counts_as_not_set(root: Path) -> None:
    assert load(root, **dict.fromkeys(OVERRIDES, " ")) == load(root)


def test_the_grounding_variable_stands_in_for_a_missing_key(root: Path) -> None:
    agent_file(root, "name: Somebody\n")
    assert load(root, GROUNDING_DIR="docs").grounding.directory == root / "docs"


def test_a_wrong_variable_is_reported_by_its_name_beside_the_file(root: Path) -> None:
    agent_file(root, "grounding_dir: docs\ncolour: red\n")
    problems = problems_of(root, environ={"AGENT_PORT": "eighty", "GROUNDING_DIR": "/etc"})
    assert {(problem.file, problem.path) for problem in problems} == {
        ("instances/good/agent.yaml", "colour"),
        ("environment", "AGENT_PORT"),
        ("environment", "GROUNDING_DIR"),
    }


@pytest.mark.parametrize("word", ["local", "dev", "Development", "TEST"])
def test_development_adds_the_development_origins(root: Path, word: str) -> None:
    agent_file(
        root, "grounding_dir: docs\ncors_origins: ['https://a.example']\ncors_dev_origins: ['http://b']\n"
    )
    assert load(root, ENVIRONMENT=word).network.cors_origins == ("https://a.example", "http://b")


@pytest.mark.parametrize("word", ["", "production", "staging"])
def test_anything_else_is_production(root: Path, word: str) -> None:
    agent_file(root, "grounding_dir: docs\ncors_dev_origins: ['http://localhost:3000']\n")
    assert load(root, ENVIRONMENT=word).network.cors_origins == ()


def test_the_origin_variable_replaces_development_origins_as_well(root: Path) -> None:
    agent_file(root, "grounding_dir: docs\ncors_dev_origins: ['http://localhost:3000']\n")
    agent = load(root, ENVIRONMENT="dev", CORS_ALLOWED_ORIGINS="https://a.example")
    assert agent.network.cors_origins == ("https://a.example",)


def test_a_home_relative_grounding_starts_at_home(root: Path, tmp_path: Path) -> None:
    (tmp_path / "home" / "public").mkdir(parents=True)
    (tmp_path / "home" / "public" / "fact.md").write_text("A fact.\n")
    agent_file(root, "grounding_dir: ~/public\n")
    assert load(root, HOME=str(tmp_path / "home")).grounding.directory == tmp_path / "home" / "public"


def test_home_itself_is_refused_as_grounding(root: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    agent_file(root, "grounding_dir: ~/\n")
    assert "holds your home directory" in str(problems_of(root, environ={"HOME": str(tmp_path / "home")})[0])


def test_a_link_to_the_repository_is_refused_as_grounding(root: Path) -> None:
    root.joinpath("public").symlink_to(root)
    agent_file(root, "grounding_dir: public\n")
    assert "holds the whole repository" in str(problems_of(root)[0])


def test_without_source_checks_a_missing_directory_loads_and_a_forbidden_one_does_not(root: Path) -> None:
    agent_file(root, "grounding_dir: /somewhere/public\nextra_read_dirs: [/elsewhere/public]\n")
    agent = load_instance(root, "good", {}, check_sources=False)
    assert agent.grounding.directory == Path("/somewhere/public")
    agent_file(root, "grounding_dir: /etc\n")
    with pytest.raises(ConfigError, match="belongs to the system"):
        load_instance(root, "good", {}, check_sources=False)


def test_front_and_spawner_get_the_same_digest_whatever_they_see(root: Path) -> None:
    agent_file(root, "grounding_dir: docs\n")
    assert (
        load_instance(root, "good", {}).digest == load_instance(root, "good", {}, check_sources=False).digest
    )


@pytest.mark.parametrize("name", ["../good", "", "Good", "good/", ".", "a" * 64, "good\n", "-x"])
def test_a_name_that_is_no_folder_name_is_refused_before_the_disk_is_read(root: Path, name: str) -> None:
    assert problems_of(root, name)[0].file == "instances"


def test_an_unknown_instance_names_the_path_and_those_that_exist(root: Path) -> None:
    (problem,) = problems_of(root, "other")
    assert str(problem).startswith("instances/other/agent.yaml: does not exist")
    assert "good" in problem.mend
    assert instance_names(root) == ("good",)


def test_a_missing_an_empty_and_an_oversized_prompt_are_reported_beside_the_yaml(root: Path) -> None:
    prompt = root / "instances" / "good" / "system-prompt.md"
    agent_file(root, "grounding_dir: docs\nport: x\n")
    for content, words in (
        (None, "does not exist"),
        (b" \n", "is empty"),
        (b"x" * (MAX_PROMPT_BYTES + 1), "is larger than"),
        (b"one\ntwo \xff\n", "is not UTF-8"),
        (b"a\x00b", "holds a NUL character"),
    ):
        prompt.unlink(missing_ok=True)
        if content is not None:
            prompt.write_bytes(content)
        yaml_problem, prompt_problem = problems_of(root)
        assert yaml_problem.path == "port"
        assert prompt_problem.file == "instances/good/system-prompt.md"
        assert words in prompt_problem.message


def test_what_a_prompt_leaves_open_is_reported_with_its_place_and_mend(root: Path) -> None:
    agent_file(root, "grounding_dir: docs\nport: x\n")
    (root / "instances" / "good" / "system-prompt.md").write_text(
        "You are <Name of the persona>, not <anybody else>.\nTools: ${tools_dir} ${tool_dir} ${NOPE} $5 ${\n"
    )
    file = "instances/good/system-prompt.md"
    variable = "is filled in by nothing"
    assert [str(problem) for problem in problems_of(root)][1:] == [
        f"{file}:1:9: still holds the placeholder <Name of the persona> (write your own words there)",
        f"{file}:2:21: ${{tool_dir}} {variable} (did you mean `${{tools_dir}}`?)",
        f"{file}:2:33: ${{NOPE}} {variable} (there are `${{tools_dir}}` and `${{instance_dir}}`)",
    ]
    with pytest.raises(ConfigError, match="still holds the placeholder"):
        load_instance(root, "good", {}, check_sources=False)


@pytest.mark.control("PACK-01")
def test_what_a_pack_would_refuse_is_refused_where_it_lies_beside_every_other_problem(root: Path) -> None:
    agent_file(
        root,
        "grounding_dir: docs\nextra_read_dirs: [more]\nport: x\n"
        "allowed_tools: Read,Bash(python3 ${tools_dir}/hours.py:*),Bash(python3 ${tools_dir}/gone.py:*)\n",
    )
    (root / "more").mkdir()
    (root / "more" / "secret.md").hardlink_to(root / "docs" / "fact.md")
    (root / "docs" / "facts" / "passwd.md").symlink_to("/etc/passwd")
    os.mkfifo(root / "docs" / "pipe.md")
    (root / "docs" / "about.md").write_text("# About\n\nI am <Name of the persona>.\n")
    tools = root / "instances" / "good" / "tools"
    (tools / "other.py").symlink_to("/etc/passwd")
    (tools / "gone.py").symlink_to("/etc/passwd")
    file = "instances/good/agent.yaml"
    assert [str(problem).partition(" (")[0] for problem in problems_of(root)] == [
        f"{file}:3:7: port: must be a whole number, not 'x'",
        f"{file}:4:16: allowed_tools: grants a script, but tools/gone.py is not a regular file",
        "docs/about.md:3:6: still holds the template's <Name of the persona>",
        "docs/fact.md: is a hard link, one of 2 names of its file",
        "docs/facts/passwd.md: is a symbolic link",
        "docs/pipe.md: is a FIFO",
        "instances/good/tools/other.py: is a symbolic link",
        "more/secret.md: is a hard link, one of 2 names of its file",
    ]
    agent_file(root, "grounding_dir: docs\nextra_read_dirs: [more]\n")
    assert load_instance(root, "good", {}, check_sources=False).grounding.extra == (root / "more",)


def test_a_file_that_no_pack_takes_is_no_file_to_tell_up_front(root: Path) -> None:
    agent_file(root, "grounding_dir: docs\ninline_grounding: [.hidden.md, fact.md]\n")
    (root / "docs" / ".hidden.md").write_text("A draft.\n")
    (problem,) = problems_of(root)
    assert str(problem) == (
        "instances/good/agent.yaml:2:20: inline_grounding[0]: '.hidden.md' is no file in docs"
        " (give the path of a document below grounding_dir)"
    )


def test_documents_past_the_bounds_of_a_pack_are_refused_without_a_second_complaint(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.agents.findings.Walk", functools.partial(Walk, max_bytes=5))
    agent_file(root, "grounding_dir: docs\ninline_grounding: [zzz.md]\n")
    (problem,) = problems_of(root)
    assert str(problem) == "docs/fact.md: makes the pack larger than 5 bytes (give less)"


def test_a_directory_in_a_message_is_named_from_the_root(root: Path) -> None:
    agent_file(root, "grounding_dir: ${instance_dir}/grounding\n")
    assert "'instances/good/grounding' does not exist" in str(problems_of(root)[0])


def test_bytes_that_are_not_text_are_reported_with_their_place(root: Path) -> None:
    (root / "instances/good/agent.yaml").write_bytes(b"grounding_dir: docs\nname: \xff\n")
    (problem,) = problems_of(root)
    assert (problem.line, problem.col, problem.message) == (2, 7, "is not UTF-8")
    (root / "instances/good/agent.yaml").write_bytes(b"grounding_dir: docs\nname: a\x07b\n")
    (problem,) = problems_of(root)
    assert (problem.line, problem.col) == (2, 8)


def test_an_oversized_agent_file_is_refused_before_it_is_parsed(root: Path) -> None:
    agent_file(root, "grounding_dir: docs\n" + "# x\n" * 70000)
    assert "is larger than 262144 bytes" in str(problems_of(root)[0])


def test_a_link_or_a_pipe_in_place_of_a_file_is_refused_and_never_opened(root: Path) -> None:
    folder = root / "instances" / "good"
    folder.joinpath("agent.yaml").rename(folder / "real.yaml")
    folder.joinpath("agent.yaml").symlink_to("real.yaml")
    assert "is not a regular file" in str(problems_of(root)[0])
    folder.joinpath("agent.yaml").unlink()
    os.mkfifo(folder / "agent.yaml")
    assert "is not a regular file" in str(problems_of(root)[0])


def test_a_granted_script_has_to_be_a_regular_file(root: Path) -> None:
    agent_file(root, "grounding_dir: docs\nallowed_tools: Bash(python3 ${tools_dir}/hours.py:*)\n")
    assert load(root).tools.granted == ("hours",)
    script = root / "instances/good/tools/hours.py"
    script.unlink()
    script.symlink_to("/bin/true")
    assert "tools/hours.py is not a regular file" in str(problems_of(root)[0])


def test_a_flood_of_mistakes_is_cut_at_fifty_and_the_rest_is_counted(root: Path) -> None:
    agent_file(root, "grounding_dir: docs\n" + "".join(f"key{n}: 1\n" for n in range(300)))
    problems = problems_of(root)
    assert len(problems) == 51
    assert [problem.message for problem in problems if not problem.line] == [
        "has 250 more mistakes than are shown"
    ]
