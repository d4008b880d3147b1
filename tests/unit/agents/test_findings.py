"""What a look at the files finds: every kind of thing that cannot enter a pack, and sizes that are slow."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from runtime.agents import sizes
from runtime.agents.documents import Walk
from runtime.agents.instance import Inspection, inspect_instance
from runtime.agents.regular import read_regular
from runtime.agents.sizes import Document, slow_documents, slow_folder, slow_persona

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.errors import Problem


NAMES = "say in the prompt which folder or name belongs to which subject"
LONG = "is a line of more than 500 bytes, which Grep finds and does not show"


def inspected(root: Path, settings: str = "") -> Inspection:
    (root / "instances/good/agent.yaml").write_text(f"grounding_dir: docs\n{settings}")
    return inspect_instance(root, "good", {})


def lines(problems: tuple[Problem, ...]) -> list[str]:
    return [str(problem).partition(" (")[0] for problem in problems]


@pytest.mark.control("PACK-01")
def test_whatever_cannot_enter_a_pack_is_reported_in_one_run_with_everything_else(root: Path) -> None:
    docs = root / "docs"
    (docs / "link.md").symlink_to("fact.md")
    (docs / "folder").symlink_to("/etc")
    os.mkfifo(docs / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(docs / "socket.md"))
        (docs / "twice.md").hardlink_to(docs / "fact.md")
        (docs / "shut").mkdir(mode=0o000)
        (docs / "bell\x07.md").write_text("x\n")
        (docs / os.fsdecode(b"caf\xe9.md")).write_text("x\n")
        (docs / "id_rsa").write_text("x\n")
        (root / "instances/good/system-prompt.md").write_text("I am <Name of the persona>. ${x}\n")
        seen = inspected(root, "port: x\nextra_read_dirs: [gone, /etc]\ninline_grounding: [nothing.md]\n")
    assert seen.agent is None
    assert lines(seen.problems) == [
        "instances/good/agent.yaml:2:7: port: must be a whole number, not 'x'",
        "instances/good/agent.yaml:3:19: extra_read_dirs[0]: 'gone' does not exist",
        "instances/good/agent.yaml:3:25: extra_read_dirs[1]: '/etc' belongs to the system",
        "instances/good/agent.yaml:4:20: inline_grounding[0]: 'nothing.md' is no file in docs",
        "docs/'bell\\x07.md': has control characters in its name",
        "docs/'caf\\udce9.md': has a name that is not UTF-8",
        "docs/fact.md: is a hard link, one of 2 names of its file",
        "docs/folder: is a symbolic link",
        "docs/id_rsa: has the name of a key or password store",
        "docs/link.md: is a symbolic link",
        "docs/pipe.md: is a FIFO",
        "docs/shut: is a directory that nobody may read",
        "docs/socket.md: is a socket",
        "docs/twice.md: is a hard link, one of 2 names of its file",
        "instances/good/system-prompt.md:1:6: still holds the placeholder <Name of the persona>",
        "instances/good/system-prompt.md:1:29: ${x} is filled in by nothing",
    ]


def test_a_file_that_this_user_may_not_read_is_reported(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    open_file = os.open

    def refusing(path: object, flags: int, *rest: int, dir_fd: int | None = None) -> int:
        if path == "fact.md":
            raise PermissionError(13, "Permission denied")
        return open_file(path, flags, *rest, dir_fd=dir_fd)  # type: ignore[arg-type]

    (root / "docs/more.md").write_text("x\n")
    monkeypatch.setattr(os, "open", refusing)  # root, who runs these tests, may read everything
    seen = inspected(root, "port: x\n")
    assert lines(seen.problems)[1:] == ["docs/fact.md: cannot be read: Permission denied"]


def test_a_name_that_would_move_the_cursor_is_printed_escaped(root: Path) -> None:
    (root / "docs" / "a\u202egnp.md").write_bytes(b"caf\xe9")
    (warning,) = inspected(root).warnings
    assert "\u202e" in warning.file
    assert str(warning).startswith("docs/a\\u202egnp.md:1:4: is not UTF-8")


def test_the_prompt_is_looked_at_even_where_the_settings_cannot_be_read(root: Path) -> None:
    (root / "instances/good/system-prompt.md").write_text("I am <Name of the persona>.\n")
    assert [(one.file, one.line) for one in inspected(root, "skills: [\n").problems] == [
        ("instances/good/agent.yaml", 3),
        ("instances/good/system-prompt.md", 1),
    ]


def test_sizes_that_are_slow_are_warnings_with_the_number_and_the_mend(root: Path) -> None:
    docs = root / "docs"
    (docs / "book.md").write_text(("word " * 50 + "\n") * 1100)
    (docs / "part.md").write_text(
        ("word " * 30 + "\n") * 500 + "x" * 600 + "\n" + ("word " * 30 + "\n") * 100
    )
    for number in range(99):
        (docs / f"f{number:02}.md").write_text("A fact.\n")
    seen = inspected(root, "inline_grounding: [part.md, 'f*.md']\n")
    assert seen.agent is not None
    split = "split it into files of one subject each, below 80,000 bytes"
    assert [str(warning).replace("answers slowly: ", "") for warning in seen.warnings] == [
        f"docs: holds 102 files; Glob shows 100 of them ({NAMES})",
        f"docs/book.md: has 276100 bytes; Read refuses a file above 262144 at the first try ({split})",
        f"docs/part.md: has 91201 bytes; Read gives about 80000 of them in one step ({split})",
        f"docs/part.md:501:1: {LONG} (break lines at sentences)",
    ]
    many = inspected(root, "inline_grounding: [part.md, 'f*.md', book.md]\n")
    (heavy,) = [warning for warning in many.warnings if warning.path]
    assert str(heavy).startswith("instances/good/agent.yaml:2:19: inline_grounding: prompt and documents")
    assert "are 368" in heavy.message
    assert "tokens in every request" in heavy.message


def test_small_sizes_are_no_warning() -> None:
    fine = [Document(f"a/{number}", sizes.READ_WHOLE_BYTES, long_line=3) for number in range(50)]
    assert list(slow_documents(fine)) == []
    assert list(slow_folder("a", sizes.GLOB_FILES)) == []
    assert slow_persona(50_000, 50_000) is None


def test_many_large_files_are_named_up_to_five_and_then_counted() -> None:
    large = [Document(f"a/{number}", 300_000) for number in range(12)]
    found = list(slow_documents(large))
    assert [one.where for one in found] == [*(f"a/{number}" for number in range(5)), "a"]
    assert found[-1].message == "7 more places like these"


def test_more_than_a_model_takes_is_said() -> None:
    slow = slow_persona(0, 700_000)
    assert slow is not None
    assert "175000 tokens" in slow[0]
    assert "leaves many models no room" in slow[0]


def test_a_huge_file_in_place_of_a_small_one_is_read_up_to_its_bound(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    with path.open("wb") as file:
        file.truncate(10 * 1024**3)  # sparse: it takes no disk
    raw = read_regular(path, 1000)
    assert isinstance(raw, bytes)
    assert len(raw) == 1001


def test_a_prompt_or_settings_of_ten_gigabytes_are_problems_and_nothing_more(root: Path) -> None:
    for name in ("agent.yaml", "system-prompt.md"):
        with (root / "instances/good" / name).open("wb") as file:
            file.truncate(10 * 1024**3)
    assert lines(inspect_instance(root, "good", {}).problems) == [
        "instances/good/agent.yaml: is larger than 262144 bytes",
        "instances/good/system-prompt.md: is larger than 262144 bytes",
    ]


def test_what_is_no_regular_file_is_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("/etc/passwd")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name in ("pipe", "folder", "link", "socket"):
            assert read_regular(tmp_path / name, 10) == "is not a regular file"
    assert read_regular(tmp_path / "gone", 10) == "does not exist"
    assert read_regular(tmp_path / "pipe" / "x", 10) == "does not exist"


def test_a_flood_of_findings_is_cut_and_the_rest_is_counted(root: Path) -> None:
    for number in range(60):
        (root / f"docs/{number:02}.md").write_text("password: hunter22\n<Name of the persona>\n")
    seen = inspected(root)
    for found in (seen.problems, seen.warnings):
        assert len(found) == 51
        assert str(found[0]) == "docs: 10 more findings than are shown (mend these and check again)"


def test_a_hidden_name_that_is_no_text_can_be_told_as_json(root: Path) -> None:
    (root / "docs" / os.fsdecode(b".\xff\xfe")).write_text("x")
    (root / "docs" / ".a\u202eb").write_text("x")
    walk = Walk(root=root)
    list(walk.below(root / "docs", "docs"))
    assert len(walk.hidden) == 2
    assert all(name.isprintable() and name.encode() for name in walk.hidden)


def test_a_name_that_is_swapped_between_the_look_and_the_open_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fact = root / "docs" / "fact.md"
    other = root / "other.md"
    other.write_text("not for visitors")
    look = os.lstat

    def swapped(path: str, *, dir_fd: int | None = None) -> os.stat_result:
        seen = look(path, dir_fd=dir_fd)
        if path == "fact.md":
            fact.unlink()
            other.rename(fact)
        return seen

    monkeypatch.setattr("runtime.agents.documents.os.lstat", swapped)
    walk = Walk(root=root)
    assert [entry.inside for entry in walk.below(root / "docs", "docs")] == ["facts"]
    assert [problem.message for problem in walk.problems] == ["became another file while it was read"]
