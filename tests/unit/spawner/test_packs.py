from __future__ import annotations

import dataclasses
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runtime.agents import documents
from runtime.errors import ConfigError
from runtime.spawner import collect
from runtime.spawner.packs import build_pack, owner_id, pack_digest, prune

if TYPE_CHECKING:
    from runtime.agents.definition import AgentDefinition


@pytest.fixture
def packs(tmp_path: Path) -> Path:
    folder = tmp_path / "packs"
    folder.mkdir()
    return folder


def grounding(agent: AgentDefinition) -> Path:
    return agent.grounding.directory


def files_in(pack: Path) -> dict[str, str]:
    return {
        str(path.relative_to(pack)): path.read_text() for path in sorted(pack.rglob("*")) if path.is_file()
    }


def refusal(agent: AgentDefinition, packs: Path) -> str:
    with pytest.raises(ConfigError) as caught:
        build_pack(agent, packs)
    assert list(packs.iterdir()) == []
    return str(caught.value)


def test_a_pack_holds_grounding_extras_tools_and_the_rendered_persona(
    agent: AgentDefinition, packs: Path
) -> None:
    pack = build_pack(agent, packs)
    persona = "You are a test. Tools: /instance/tools. Home: /instance."
    assert files_in(packs / pack.digest) == {
        "extra/0/letters.md": "Dear all.\n",
        "grounding/deep/more.md": "It is high.\n",
        "grounding/facts.md": "The sky is blue.\n",
        "instance/system-prompt.md": persona,
        "instance/tools/opening_hours.py": '"""Say when."""\n',
    }
    assert pack.persona_bytes == len(persona)


def test_inline_grounding_is_appended_and_its_placeholders_stay(agent: AgentDefinition, packs: Path) -> None:
    (grounding(agent) / "facts.md").write_text("Not ${tools_dir}.\n")
    inline = dataclasses.replace(agent.grounding, inline=("facts.md", "none*.md"))
    pack = build_pack(dataclasses.replace(agent, grounding=inline), packs)
    persona = (packs / pack.digest / "instance" / "system-prompt.md").read_text()
    assert "Not ${tools_dir}." in persona
    assert len(persona.encode()) == pack.persona_bytes
    assert pack.not_inlined == ("none*.md: no file matches",)


def test_files_are_readable_for_a_turns_uid_and_writable_for_nobody(
    agent: AgentDefinition, packs: Path
) -> None:
    (grounding(agent) / "facts.md").chmod(0o600)
    before = os.umask(0o077)
    try:
        pack = packs / build_pack(agent, packs).digest
    finally:
        os.umask(before)
    for path in pack.rglob("*"):
        assert path.stat().st_mode & 0o777 == (0o755 if path.is_dir() else 0o444), path
    assert pack.stat().st_mode & 0o777 == 0o755


def test_the_same_content_gives_the_same_name_whenever_it_was_written(
    agent: AgentDefinition, packs: Path
) -> None:
    first = build_pack(agent, packs)
    source = grounding(agent)
    content = {path: path.read_text() for path in source.iterdir() if path.is_file()}
    for path in content:
        path.unlink()
    for path in reversed(list(content)):
        path.write_text(content[path])
        os.utime(path, (1, 1))
    assert build_pack(agent, packs).digest == first.digest
    assert [path.name for path in packs.iterdir()] == [first.digest]


@pytest.mark.parametrize("change", ["content", "name", "place"])
def test_other_content_gives_another_name(agent: AgentDefinition, packs: Path, change: str) -> None:
    first = build_pack(agent, packs)
    facts = grounding(agent) / "facts.md"
    if change == "content":
        facts.write_text("The sky is red.\n")
    elif change == "name":
        facts.rename(facts.with_name("fact.md"))
    else:
        facts.rename(grounding(agent) / "deep" / "facts.md")
    assert build_pack(agent, packs).digest != first.digest


def test_a_damaged_pack_is_replaced(agent: AgentDefinition, packs: Path) -> None:
    digest = build_pack(agent, packs).digest
    damaged = packs / digest / "grounding" / "facts.md"
    damaged.chmod(0o644)
    damaged.write_text("")
    assert pack_digest(packs / digest) != digest
    build_pack(agent, packs)
    assert pack_digest(packs / digest) == digest


def test_hidden_entries_are_left_out_and_named(agent: AgentDefinition, packs: Path) -> None:
    for name in (".git", ".claude"):
        (grounding(agent) / name).mkdir()
        (grounding(agent) / name / "config").write_text("secret")
    (grounding(agent) / ".mcp.json").write_text("{}")
    (grounding(agent) / "CLAUDE.md").write_text("A document.\n")
    pack = build_pack(agent, packs)
    names = files_in(packs / pack.digest)
    assert not [name for name in names if "/." in name]
    assert "grounding/CLAUDE.md" in names
    assert pack.hidden == ("grounding/.claude", "grounding/.git", "grounding/.mcp.json")


def test_of_the_tools_folder_only_scripts_are_taken(agent: AgentDefinition, packs: Path) -> None:
    (agent.tools_dir / "notes.txt").write_text("x")
    (agent.tools_dir / "folder").mkdir()
    pack = build_pack(agent, packs)
    assert [path.name for path in (packs / pack.digest / "instance" / "tools").iterdir()] == [
        "opening_hours.py"
    ]


@pytest.mark.control("PACK-01")
def test_a_link_to_a_file_outside_is_refused_by_name(agent: AgentDefinition, packs: Path) -> None:
    (grounding(agent) / "passwd").symlink_to("/etc/passwd")
    (grounding(agent) / "deep" / "up").symlink_to("../..")
    text = refusal(agent, packs)
    assert f"{grounding(agent)}/passwd: is a symbolic link" in text
    assert f"{grounding(agent)}/deep/up: is a symbolic link" in text


@pytest.mark.control("PACK-01")
def test_a_hard_link_to_a_file_outside_is_refused_by_name(
    agent: AgentDefinition, packs: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("secret")
    (grounding(agent) / "mine.md").hardlink_to(tmp_path / "secret")
    assert f"{grounding(agent)}/mine.md: is a hard link, one of 2 names" in refusal(agent, packs)


@pytest.mark.control("PACK-01")
def test_a_fifo_and_a_socket_are_refused_without_waiting(agent: AgentDefinition, packs: Path) -> None:
    os.mkfifo(grounding(agent) / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        here = Path.cwd()
        os.chdir(grounding(agent))  # a socket's path is limited to 108 bytes
        try:
            listener.bind("sock")
        finally:
            os.chdir(here)
        text = refusal(agent, packs)
    assert f"{grounding(agent)}/pipe: is a FIFO" in text
    assert f"{grounding(agent)}/sock: is a socket" in text


@pytest.mark.skipif(os.geteuid() != 0, reason="making a device node needs root")
def test_a_device_is_refused_by_name(agent: AgentDefinition, packs: Path) -> None:
    os.mknod(grounding(agent) / "null", 0o20666, os.makedev(1, 3))
    assert f"{grounding(agent)}/null: is a character device" in refusal(agent, packs)


def test_a_directory_that_nobody_may_read_is_refused_by_name(agent: AgentDefinition, packs: Path) -> None:
    closed = grounding(agent) / "closed"
    closed.mkdir(0o000)
    assert f"{closed}: is a directory that nobody may read" in refusal(agent, packs)


def test_names_that_are_not_text_are_refused(agent: AgentDefinition, packs: Path) -> None:
    (grounding(agent) / "two\nlines").write_text("x")
    Path(os.fsdecode(os.fsencode(grounding(agent)) + b"/\xff")).write_text("x")
    text = refusal(agent, packs)
    assert "has control characters in its name" in text
    assert "has a name that is not UTF-8" in text


def test_too_many_entries_too_many_bytes_and_too_deep_a_tree_are_refused(
    agent: AgentDefinition, tmp_path: Path
) -> None:
    wide = collect.Collector(max_entries=3)
    wide.copy(grounding(agent), tmp_path / "wide", "grounding")
    assert (wide.problems, wide.entries) == ([], 3)
    wide.copy(agent.tools_dir, tmp_path / "wide2", "tools")
    assert "more than 3 entries" in str(wide.problems[0])
    large = collect.Collector(max_bytes=20)
    large.copy(grounding(agent), tmp_path / "large", "grounding")
    assert "larger than 20 bytes" in str(large.problems[0])
    deep = grounding(agent)
    for _ in range(documents.MAX_DEPTH + 1):
        deep /= "d"
    deep.mkdir(parents=True)
    nested = collect.Collector()
    nested.copy(grounding(agent), tmp_path / "nested", "grounding")
    assert "directories deep" in str(nested.problems[0])


def test_all_refusals_come_together_and_a_missing_directory_is_one(
    agent: AgentDefinition, packs: Path
) -> None:
    (grounding(agent) / "link").symlink_to("facts.md")
    missing = dataclasses.replace(agent.grounding, extra=(packs / "nowhere",))
    text = refusal(dataclasses.replace(agent, grounding=missing), packs)
    assert "is a symbolic link" in text
    assert "nowhere: cannot be opened" in text


def test_a_refusal_below_the_root_is_named_as_the_owner_sees_it(
    agent: AgentDefinition, packs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.spawner.packs.layout.ROOT", grounding(agent).parents[1])
    (grounding(agent) / "passwd.md").symlink_to("/etc/passwd")
    (agent.tools_dir / "opening_hours.py").unlink()
    assert refusal(agent, packs).splitlines() == [
        "sources/grounding/passwd.md: is a symbolic link (replace it with a copy of the file that it means)",
        "sources/tools/opening_hours.py: is granted but not there (add it)",
    ]


def test_a_granted_script_that_is_missing_is_refused(agent: AgentDefinition, packs: Path) -> None:
    (agent.tools_dir / "opening_hours.py").unlink()
    assert "opening_hours.py: is granted but not there" in refusal(agent, packs)


def test_old_packs_and_unfinished_copies_are_pruned_and_nothing_else(
    agent: AgentDefinition, packs: Path
) -> None:
    keep = build_pack(agent, packs).digest
    (packs / ("0" * 64)).mkdir()
    (packs / ".new-left").mkdir()
    (packs / "lost+found").mkdir()
    owner = owner_id(packs)
    assert prune(packs, {keep}) == [".new-left", "0" * 64]
    assert {path.name for path in packs.iterdir()} == {keep, ".owner", "lost+found"}
    assert owner_id(packs) == owner


@pytest.mark.parametrize("text", ["", "x", "A" * 32, "0" * 33, "\xff"])
def test_an_owner_file_that_holds_no_id_is_replaced(packs: Path, text: str) -> None:
    (packs / ".owner").write_text(text, "latin-1")
    fresh = owner_id(packs)
    assert len(fresh) == 32
    assert owner_id(packs) == fresh
