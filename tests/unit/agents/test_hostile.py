"""Whatever bytes lie in an instance's files: an agent or problems, in bounded time, with places inside."""

from __future__ import annotations

import re
import tracemalloc
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from runtime.agents import forms
from runtime.agents.inline import matches
from runtime.agents.instance import inspect_instance
from runtime.agents.yaml_source import MAX_BYTES, MAX_VALUES, Report, read_mapping

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.errors import Problem

YAML = "instances/good/agent.yaml"
BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
VALID = b"""\
name: Somebody
description: >-
  Answers questions
  of fact.
skills:
  - {id: facts, tags: [fact], examples: ["Who?"]}
port: 8011
timeout: 90
grounding_dir: docs
inline_grounding: ["*.md"]
messages: {busy: Later., too_long: "{n} of {max}"}
"""
on_disk = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def problems_of(
    root: Path, raw: bytes, prompt: bytes = b"You answer questions of fact.\n"
) -> tuple[Problem, ...]:
    folder = root / "instances" / "good"
    (folder / "agent.yaml").write_bytes(raw)
    (folder / "system-prompt.md").write_bytes(prompt)
    return inspect_instance(root, "good", {}).problems


def assert_in_place(problem: Problem, raw: bytes) -> None:
    assert problem.file
    assert problem.mend
    assert problem.message
    for text in (problem.path, problem.message, problem.mend):
        assert len(text) <= 600
        assert text.isprintable()
    if problem.line:
        lines = BREAK.split(raw.decode("utf-8-sig", "replace"))
        assert 1 <= problem.line <= len(lines)
        assert 1 <= problem.col <= len(lines[problem.line - 1]) + 1


@pytest.mark.control("CFG-03")
@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"a: &a [x,x]\nb: &b [*a,*a]\nc: [*b,*b]\n", "uses an anchor"),
        (b"grounding_dir: docs\nmessages:\n  <<: *base\n", "uses an alias"),
        (b"grounding_dir: docs\n<<: {name: x}\n", "is not a known key"),
        (b"grounding_dir: !!python/object/apply:os.system [id]\n", "uses a tag"),
        (b"[" * MAX_BYTES, "is nested deeper than 16"),
        (b"".join(b" " * depth + b"a:\n" for depth in range(500)), "is nested deeper than 16"),
        (b"- " * 100_000, "is nested deeper than 16"),
        (b"? " * 100_000, "is nested deeper than 16"),
        (b"a: [" + b"1," * 100_000, f"holds more than {MAX_VALUES} values"),
        (b"".join(b"k%d: 1\n" % number for number in range(20_000)), f"holds more than {MAX_VALUES} values"),
        (b"a: '" + b"x" * 10_000_000 + b"'", "is larger than 262144 bytes"),
        (b"a: b\x00c\n", "holds a character that YAML does not allow"),
        ("grounding_dir: docs\nport: x\n".encode("utf-16"), "is not UTF-8"),
        ("grounding_dir: docs\nport: x\n".encode("utf-16-le"), "holds a character that YAML does not allow"),
        (b"grounding_dir: docs\nname: \xc3\x28\n", "is not UTF-8"),
        (b"", "holds no settings"),
        (b"\xef\xbb\xbf", "holds no settings"),
        (b"---\n...\n---\na: 1\n", "holds a second document"),
        (b"%YAML 9.9\n---\na: 1\n", "is not valid YAML"),
    ],
    ids=lambda value: value[:24] if isinstance(value, str) else "",
)
def test_what_no_settings_file_needs_is_refused_by_name(root: Path, raw: bytes, words: str) -> None:
    problems = problems_of(root, raw)
    assert [problem for problem in problems if words in problem.message]
    for problem in problems:
        assert_in_place(problem, raw)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_counted_whatever_ends_them(root: Path, end: str) -> None:
    text = "grounding_dir: docs\nname: x\nport: x\n".replace("\n", end)
    assert [(one.line, one.col) for one in problems_of(root, text.encode())] == [(3, 7)]
    (one,) = problems_of(root, VALID, f"You are it.{end}{end}I am <Name of the persona>.".encode())
    assert (one.line, one.col) == (3, 6)
    (one,) = problems_of(root, text.replace("port: x", "# \x07").encode())
    assert (one.line, one.col) == (3, 3)


def test_a_byte_order_mark_moves_no_place(root: Path) -> None:
    (one,) = problems_of(root, b"\xef\xbb\xbfport: x\ngrounding_dir: docs\n")
    assert (one.line, one.col) == (1, 7)


@pytest.mark.control("CFG-03")
@pytest.mark.parametrize(
    "piece",
    [
        *("- a\n", "1,", "a: {", "k: v\n", "'' ", '"\\x41', "? a\n", "[]\n", "#\n", " x\n", "!t ", "*a "),
        *("|\n ", "<a ", "${"),
    ],
)
@pytest.mark.parametrize("head", ["", "a: [", 'a: "'])
def test_the_worst_that_fits_is_read_to_an_end(head: str, piece: str) -> None:
    text = (head + piece * (MAX_BYTES // len(piece)))[: MAX_BYTES - 1]
    report = Report(YAML)
    source = read_mapping(text.encode(), report)
    assert source is not None or report.problems


def test_the_tree_of_the_most_values_that_are_read_takes_little_memory() -> None:
    tracemalloc.start()
    report = Report(YAML)
    assert read_mapping(b"a: [" + b"1," * (MAX_BYTES // 2 - 5), report) is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert report.problems
    assert peak < 32 * 1024**2


def test_twenty_thousand_wrong_keys_are_not_each_compared_with_the_known_ones(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def close_to(word: str, known: object, n: int) -> list[str]:
        del known, n
        asked.append(word)
        return []

    monkeypatch.setattr("runtime.agents.values.difflib.get_close_matches", close_to)
    raw = b"".join(b"%s%d: 1\n" % (b"k" * 30, number) for number in range(4000))
    assert "more mistakes than are shown" in problems_of(root, raw)[0].message
    assert len(asked) <= 50
    asked.clear()
    problems_of(root, b"k" * 900 + b": 1\n")
    assert [len(word) for word in asked] == [64]


@pytest.mark.control("CFG-03")
@on_disk
@given(raw=st.binary(max_size=400), prompt=st.binary(max_size=200))
@example(raw=b"\xff", prompt=b"")
@example(raw=b"a: \xed\xa0\x80", prompt=b"\xef\xbb\xbf")
@example(raw=b'"\\ud800": 1', prompt=b"\x00")
@example(raw=b"grounding_dir: 'a\\nb'", prompt=b"${\xc2\x85}")
def test_any_bytes_are_an_agent_or_problems_with_places_inside(root: Path, raw: bytes, prompt: bytes) -> None:
    for problem in problems_of(root, raw, prompt):
        assert_in_place(problem, raw if problem.file == YAML else prompt)


@on_disk
@given(data=st.data())
def test_a_good_file_with_anything_done_to_it_is_an_agent_or_problems_with_places_inside(
    root: Path, data: st.DataObject
) -> None:
    raw = bytearray(VALID)
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(raw)))
        end = min(len(raw), start + data.draw(st.integers(0, 12)))
        piece = data.draw(
            st.binary(max_size=6) | st.text(max_size=4).map(str.encode) | st.just(b"\n  - ") | st.just(b": ")
        )
        raw[start:end] = piece
    for problem in problems_of(root, bytes(raw)):
        assert_in_place(problem, bytes(raw))


MISTAKES = {
    "port": ("port: [1]", "port"),
    "timeout": ("timeout: 90s", "timeout"),
    "model": ("model: --x", "model"),
    "icon_url": ("icon_url: ftp://x", "icon_url"),
    "colour": ("colour: red", "colour"),
    "version": ("version: true", "version"),
    "provider": ("provider: {organization: A}", "provider.url"),
    "skills": ("skills: [{id: a}]", "skills[0].tags"),
    "cors_origins": ("cors_origins: ['*']", "cors_origins[0]"),
    "inline_grounding": ("inline_grounding: [none.md]", "inline_grounding[0]"),
    "extra_read_dirs": ("extra_read_dirs: [/etc]", "extra_read_dirs[0]"),
    "allowed_tools": ("allowed_tools: Bash", "allowed_tools"),
    "messages": ("messages: {busy: '{x}'}", "messages.busy"),
    "max_turns": ("max_turns: 0", "max_turns"),
    "name": ("name: <Name>", "name"),
    "description": ("description: !t x", ""),
    "host": ("host: 'a b'", "host"),
}
FILES = {
    "link.md": "is a symbolic link",
    "id_rsa": "has the name of a key",
    "draft.md": "still holds the template's",
    "key.md": "holds a model API key",
}


@on_disk
@given(
    wrong=st.lists(st.sampled_from(sorted(MISTAKES)), unique=True, max_size=len(MISTAKES)),
    files=st.sets(st.sampled_from(sorted(FILES))),
    prompt=st.sampled_from(["", "Use WebFetch.\n", "Run tools/hours.py.\n", "${x}\n"]),
    port=st.booleans(),
)
def test_every_planted_mistake_is_reported_in_one_run(
    root: Path, wrong: list[str], files: set[str], prompt: str, port: bool
) -> None:
    for old in (root / "docs").glob("*"):
        if old.name in FILES:
            old.unlink()
    for name in files:
        path = root / "docs" / name
        if name == "link.md":
            path.symlink_to("fact.md")
        else:
            path.write_text({"draft.md": "<Name of the persona>", "key.md": "sk-" + "a1" * 20}.get(name, "x"))
    folder = root / "instances" / "good"
    (folder / "agent.yaml").write_text(
        "grounding_dir: docs\n" + "".join(f"{MISTAKES[key][0]}\n" for key in wrong)
    )
    (folder / "system-prompt.md").write_text(f"You answer questions of fact.\n{prompt}")
    seen = inspect_instance(root, "good", {"AGENT_HOST": "a b"} if port else {})
    problems = seen.problems
    found = {(one.line, one.path) for one in problems if one.file == YAML}
    assert {(number, MISTAKES[key][1]) for number, key in enumerate(wrong, 2)} - found <= (
        {(wrong.index("host") + 2, "host")} if port and "host" in wrong else set()
    )
    for name in files:
        assert any(one.file == f"docs/{name}" and FILES[name] in one.message for one in problems)
    of_the_prompt = seen.warnings if "WebFetch" in prompt else problems
    assert any(one.file.endswith("system-prompt.md") and one.line == 2 for one in of_the_prompt) == bool(
        prompt
    )
    assert any(one.file == "environment" for one in problems) == port


BROKEN_ADDRESSES = ("http://[:::]/", "http://[1.2.3]/", "http://a℀b.org/", "http://[::1", "http://[v1.a]/")


@pytest.mark.control("CFG-03")
@pytest.mark.parametrize("url", BROKEN_ADDRESSES)
@pytest.mark.parametrize("line", ["documentation_url: '{}'", "public_url: '{}'", "cors_origins: ['{}']"])
def test_an_address_that_no_program_can_read_is_a_problem_in_its_place(
    root: Path, line: str, url: str
) -> None:
    raw = b"grounding_dir: docs\n" + line.format(url.rstrip("/")).encode()
    (problem,) = (one for one in problems_of(root, raw) if one.file == YAML)
    assert problem.line == 2


@on_disk
@given(st.from_regex(forms.URL, fullmatch=True))
def test_whatever_has_the_form_of_an_address_loads_or_is_a_problem(root: Path, url: str) -> None:
    quoted = url.replace("'", "''")
    for problem in problems_of(root, f"grounding_dir: docs\ndocumentation_url: '{quoted}'\n".encode()):
        assert problem.path in {"documentation_url", ""}


@pytest.mark.parametrize("url", ["https://deploy:Tr0ub4dor/3xq9@host", "https://tok3nAsUser0123@host"])
def test_an_address_with_somebody_s_name_in_it_is_never_quoted(root: Path, url: str) -> None:
    raw = f"grounding_dir: docs\ndocumentation_url: {url}\ncors_origins: ['{url}']\n".encode()
    told = "\n".join(map(str, problems_of(root, raw)))
    assert "documentation_url" in told
    assert "cors_origins" in told
    assert "Tr0ub4dor" not in told
    assert "tok3nAsUser" not in told


def test_many_doubled_stars_cost_no_more_than_few(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = 0

    def counted(name: str, pattern: str) -> bool:
        nonlocal compared
        compared += 1
        return fnmatchcase(name, pattern)

    monkeypatch.setattr("runtime.agents.inline.fnmatchcase", counted)
    assert not matches("/".join("a" * 30), "**/*/" * 12 + "**/zz")
    assert compared <= 30 * 13
