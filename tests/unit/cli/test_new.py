"""`gatehouse new` makes an instance that passes its check, from any answers it takes, or makes nothing."""

from __future__ import annotations

import os
import re
import shutil
import stat
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runtime.agents.check import check_instances
from runtime.agents.placeholders import PHRASES
from runtime.cli.answers import QUESTIONS, cleaned, described, refusal
from runtime.cli.filling import fill_document
from runtime.cli.folder import make_instance
from runtime.cli.main import main
from runtime.errors import ConfigError, HostError, UsageError

if TYPE_CHECKING:
    from tests.unit.cli.conftest import Checkout

REPO = Path(__file__).resolve().parents[3]
GIVEN = {
    "name": "Mira Okafor",
    "about": "a potter in Porto",
    "organization": "Okafor Ceramics",
    "url": "https://okafor-ceramics.pt/",
    "fact": "The studio opened in 2014.",
    "contact": "Write to studio@okafor-ceramics.pt.",
}


def flags(**answers: str) -> list[str]:
    words = []
    for key, text in (GIVEN | answers).items():
        words += [f"--{key.replace('_', '-')}", text]
    return words


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def settings_of(checkout: Checkout, name: str) -> dict[str, object]:
    loaded: dict[str, object] = yaml.safe_load((checkout.instances / name / "agent.yaml").read_text())
    return loaded


def test_a_persona_made_from_flags_passes_the_check_and_its_folder_is_the_result(checkout: Checkout) -> None:
    done = checkout.run("new", "mira", *flags())
    assert (done.code, done.out) == (0, "instances/mira\n")
    assert "ok mira: model sonnet" in done.err
    assert "./gatehouse check mira" in done.err
    assert "GATEHOUSE_AGENT=mira ./gatehouse up" in done.err
    again = checkout.run("check", "mira")
    assert (again.code, again.err) == (0, "no problem in 1 instance\n")


def test_every_answer_is_where_it_belongs(checkout: Checkout) -> None:
    checkout.run("new", "mira", *flags(model="opus", public_url="https://mira.okafor-ceramics.pt"))
    found = settings_of(checkout, "mira")
    assert found["name"] == "Mira Okafor (automated representative)"
    assert found["description"] == "An automated representative of Mira Okafor, a potter in Porto."
    assert found["provider"] == {"organization": "Okafor Ceramics", "url": "https://okafor-ceramics.pt/"}
    assert found["model"] == "opus"
    assert found["public_url"] == "https://mira.okafor-ceramics.pt"
    folder = checkout.instances / "mira"
    prompt = (folder / "system-prompt.md").read_text()
    assert "You are the automated representative of Mira Okafor, a potter in Porto.\n" in prompt
    document = (folder / "grounding/about.md").read_text()
    assert document.startswith(
        "# About Mira Okafor\n\nThe studio opened in 2014.\n\n## How to reach Mira Okafor"
    )
    assert document.endswith("\n\nWrite to studio@okafor-ceramics.pt.\n")


def test_the_comments_of_the_template_stay_but_for_the_one_that_says_how_to_copy_it(
    checkout: Checkout,
) -> None:
    checkout.run("new", "mira", *flags())
    text = (checkout.instances / "mira" / "agent.yaml").read_text()
    template = (checkout.instances / "_template" / "agent.yaml").read_text()
    assert text.count("#") == template.count("#") - 1
    assert "_template" not in text
    assert text.splitlines()[0] == template.splitlines()[0]


def test_no_placeholder_of_the_template_is_left_in_any_file(checkout: Checkout) -> None:
    checkout.run("new", "mira", *flags())
    files = [path for path in (checkout.instances / "mira").rglob("*") if path.is_file()]
    assert len(files) > 3
    assert [
        (path.name, phrase) for path in files for phrase in PHRASES.values() if phrase in path.read_text()
    ] == []


def test_the_services_can_read_what_was_made_whatever_the_umask(checkout: Checkout) -> None:
    before = os.umask(0o077)
    try:
        checkout.run("new", "mira", *flags())
    finally:
        os.umask(before)
    folder = checkout.instances / "mira"
    for path in (folder, *folder.rglob("*")):
        wanted = 0o755 if path.is_dir() else 0o644
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


def test_without_a_terminal_one_sentence_names_all_that_is_missing(checkout: Checkout) -> None:
    done = checkout.run("new", "--about", "a potter", "--url", "https://okafor-ceramics.pt/")
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "gatehouse: usage: missing: NAME, --name, --organization, --fact, --contact"
        " (give them all, or run this on a terminal and be asked)\n"
    )


def test_a_bad_name_is_told_together_with_what_is_missing(checkout: Checkout) -> None:
    for name, words in (("Mira", "is no name of an instance"), ("ada", "instances/ada exists already")):
        done = checkout.run("new", name, "--about", "a potter", "--url", "htp:x")
        assert done.code == 2
        assert words in done.err
        assert "missing: --name, --organization, --fact, --contact" in done.err
        assert "--url" in done.err


def test_every_answer_that_cannot_be_taken_is_named_at_once(checkout: Checkout) -> None:
    done = checkout.run(
        "new",
        "mira",
        *flags(name="a\nb", url="htp:x", fact="${tools_dir}", contact="<Your address here>", about=""),
    )
    assert done.code == 2
    assert [line.split()[2] for line in done.err.splitlines()] == [
        "--name",
        "--about",
        "--url",
        "--fact",
        "--contact",
    ]
    assert not (checkout.instances / "mira").exists()


@pytest.mark.parametrize(
    "name", ["Mira", "../mira", "_template", "-x", "a/b", ".mira", "a" * 64, "mïra", "a b"]
)
def test_a_name_that_no_folder_of_ours_can_have_is_refused(checkout: Checkout, name: str) -> None:
    done = checkout.run("new", *flags(), "--", name)
    assert done.code == 2
    assert "is no name of an instance (" in done.err
    assert names(checkout.instances) == ["_template", "ada"]


@pytest.mark.parametrize("kind", ["folder", "file", "link to nowhere"])
def test_nothing_that_exists_is_overwritten(checkout: Checkout, kind: str) -> None:
    place = checkout.instances / "mira"
    if kind == "folder":
        place.mkdir()
    elif kind == "file":
        place.write_text("mine")
    else:
        place.symlink_to("nowhere")
    done = checkout.run("new", "mira", *flags())
    assert done.code == 2
    assert "instances/mira exists already (choose another name, or remove it first)" in done.err
    assert place.is_symlink() or place.is_dir() or place.read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_one_sentence(checkout: Checkout) -> None:
    shutil.rmtree(checkout.instances)
    done = checkout.run("new", "mira", *flags())
    assert done.code == 4
    assert done.err.startswith("gatehouse: host-not-ready: instances/mira cannot be made: ")
    assert len(done.err.splitlines()) == 1


def test_a_copy_that_fails_half_way_leaves_nothing(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "tool.py")

    (checkout.instances / "_template/tools/tool.py").write_text("")
    monkeypatch.setattr("shutil.copyfile", full)
    done = checkout.run("new", "mira", *flags())
    assert done.code == 4
    assert "tool.py: No space left on device" in done.err
    assert names(checkout.instances) == ["_template", "ada"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, ConfigError(())], ids=["^C", "a problem"])
def test_an_interruption_before_the_folder_is_whole_leaves_nothing(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, interruption: BaseException
) -> None:
    def stop(*_: object) -> None:
        raise interruption

    monkeypatch.setattr("runtime.cli.folder.check_instances", stop)
    done = checkout.run("new", "mira", *flags())
    assert done.code in {130, 3}
    assert names(checkout.instances) == ["_template", "ada"]


def test_what_the_check_refuses_is_not_made(checkout: Checkout) -> None:
    template = checkout.instances / "_template/agent.yaml"
    template.write_text(template.read_text() + "unknown_key: 1\n")
    done = checkout.run("new", "mira", *flags())
    assert done.code == 3
    assert "gatehouse: config-invalid: instances/_template/agent.yaml: unknown_key: " in done.err
    assert "unknown_key" in done.err
    assert "nothing was made" in done.err
    assert names(checkout.instances) == ["_template", "ada"]


@pytest.mark.parametrize(
    ("answers", "blamed"),
    [
        ({"about": "x" * 120}, "--about"),
        ({"name": "x" * 60, "about": "x" * 40}, "--name"),
        ({"name": "x" * 50, "about": "x" * 52}, "the answers together"),
    ],
)
def test_what_the_check_refuses_in_an_answer_names_the_answer_and_no_file(
    checkout: Checkout, answers: dict[str, str], blamed: str
) -> None:
    template = checkout.instances / "_template/agent.yaml"
    text = template.read_text()
    template.write_text(text.replace("(automated representative)", PHRASES["about"], 1))
    done = checkout.run("new", "mira", *flags(**answers))
    assert (done.code, done.out) == (3, "")
    (told,) = (line for line in done.err.splitlines() if line.startswith("gatehouse: "))
    assert re.fullmatch(rf"gatehouse: config-invalid: {blamed}: is \d+, outside the bounds \(.*\)", told)
    assert names(checkout.instances) == ["_template", "ada"]


def test_a_folder_that_came_while_the_answers_were_checked_is_not_overwritten(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def meanwhile(*arguments: Any) -> Any:
        (checkout.instances / "mira").mkdir()
        return check_instances(*arguments)

    monkeypatch.setattr("runtime.cli.folder.check_instances", meanwhile)
    done = checkout.run("new", "mira", *flags())
    assert (done.code, names(checkout.instances / "mira")) == (2, [])
    assert "instances/mira exists already" in done.err
    assert names(checkout.instances) == ["_template", "ada", "mira"]


def test_an_override_of_the_environment_that_is_wrong_is_said_and_keeps_nothing_from_being_made(
    checkout: Checkout,
) -> None:
    checkout.environment["AGENT_PORT"] = "http"
    done = checkout.run("new", "mira", *flags())
    assert done.code == 3
    assert done.out == "instances/mira\n"
    assert "environment: AGENT_PORT: must be a whole number" in done.err


def test_links_and_caches_of_the_template_are_not_copied(checkout: Checkout) -> None:
    tools = checkout.instances / "_template/tools"
    (tools / "__pycache__").mkdir()
    (tools / "__pycache__/x.pyc").write_bytes(b"x")
    (tools / "link").symlink_to("/etc/passwd")
    assert checkout.run("new", "mira", *flags()).code == 0
    assert names(checkout.instances / "mira/tools") == ["README.md"]


def test_an_address_that_is_reserved_for_examples_is_taken_and_the_check_warns(checkout: Checkout) -> None:
    done = checkout.run("new", "mira", *flags(url="https://example.org/"))
    assert done.code == 0
    assert "warning: instances/mira/agent.yaml:" in done.err


# --- on a terminal -----------------------------------------------------------------------------------------


def test_on_a_terminal_it_asks_until_each_answer_can_be_taken(checkout: Checkout) -> None:
    with checkout.terminal("new") as terminal:
        terminal.until("Folder below instances/").until("> ").type("ada\n")
        terminal.until("instances/ada exists already").until("> ").type("mira\n")
        for question in QUESTIONS:
            terminal.until(question.words).until("> ")
            if question.key == "url":
                terminal.type("nowhere\n").until("is no http or https address").until("> ")
            terminal.type(GIVEN.get(question.key, "") + "\n")
        assert terminal.end() == 0
    assert "GATEHOUSE_AGENT=mira" in terminal.text
    assert "Traceback" not in terminal.text
    assert settings_of(checkout, "mira")["model"] == "sonnet"


def test_on_a_terminal_what_flags_gave_is_not_asked(checkout: Checkout) -> None:
    with checkout.terminal("new", "mira", *flags()) as terminal:
        assert terminal.end() == 0
    assert "> " not in terminal.text


def test_the_end_of_input_leaves_nothing_behind(checkout: Checkout) -> None:
    with checkout.terminal("new", "mira") as terminal:
        terminal.until("Name of the persona").until("> ").type("Mira\n")
        terminal.until("One line").until("> ").type("\x04")
        assert terminal.end() == 130
    assert "Traceback" not in terminal.text
    assert names(checkout.instances) == ["_template", "ada"]


def test_an_interrupted_question_leaves_nothing_behind(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(_: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("click.termui.visible_prompt_func", interrupted)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    done = checkout.run("new", "mira")
    assert (done.code, done.out) == (130, "")
    assert done.err.endswith("\n\n")
    assert names(checkout.instances) == ["_template", "ada"]


# --- any answer --------------------------------------------------------------------------------------------

AWKWARD = (
    *(
        "yes",
        "null",
        "~",
        "1e3",
        "2014-01-01",
        "- x",
        "# x",
        "a: b",
        "a #b",
        "'",
        '"',
        "\\",
        "{a}",
        "[x]: http://x",
    ),
    *(
        "&a",
        "*a",
        "!t",
        "%Y",
        "@x",
        "`x`",
        "```",
        "> x",
        "1. x",
        "---",
        "|",
        "<b>",
        "Vec<T>",
        "<!-- x",
        "$HOME",
    ),
    *(
        "${tools_dir}",
        "<Name of the persona>",
        "مرحبا",
        "שלום",
        "日本",
        "👩\u200d🚀",
        "\u202e",
        "\u2028",
        "\x00",
    ),
    *("a\tb", "x" * 3000, "password: hunter2x", "Read(//etc)", "/tmp", "C:\\x", "tools/x.py", "~/x", "../x"),
    *("é", "@file", "/model", "Bash", "I can book a time", "python3 ${instance_dir}/x.py"),
)
TEXTS = st.one_of(
    st.sampled_from(AWKWARD),
    st.text(max_size=40),
    st.lists(st.one_of(st.sampled_from(AWKWARD), st.text(max_size=8)), max_size=4).map(" ".join),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("any")
    shutil.copytree(REPO / "instances/_template", folder / "instances/_template")
    return folder


def answered(answers: dict[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    words = {
        **{key: answers[key] for key in ("name", "about", "organization", "contact")},
        "facts": answers["fact"],
        "description": described(answers),
    }
    return words, {"provider.url": GIVEN["url"]}


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(texts=st.fixed_dictionaries({key: TEXTS for key in GIVEN if key != "url"}))
def test_any_answers_that_are_taken_make_an_instance_without_problem_or_other_warning_than_of_a_promise(
    root: Path, texts: dict[str, str]
) -> None:
    questions = {question.key: question for question in QUESTIONS}
    answers = dict(GIVEN)
    for key, text in texts.items():
        if not refusal(questions[key], cleaned(questions[key], text)):
            answers[key] = cleaned(questions[key], text)
    words, values = answered(answers)
    try:
        make_instance(root, "any", words, values, {})
    except ConfigError:
        assert names(root / "instances") == ["_template"]
        return
    try:
        (checked,) = check_instances(root, ("any",), {})
        assert (checked.ok, checked.problems) == (True, ())
        assert [odd for odd in checked.warnings if "seems to promise" not in odd.message] == []
        found = yaml.safe_load((root / "instances/any/agent.yaml").read_text())
        assert found["name"] == f"{answers['name']} (automated representative)"
        assert found["provider"]["organization"] == answers["organization"]
        assert answers["name"] in (root / "instances/any/system-prompt.md").read_text()
    finally:
        shutil.rmtree(root / "instances/any")


@settings(max_examples=40)
@given(texts=st.fixed_dictionaries(dict.fromkeys(GIVEN, TEXTS)))
def test_flags_of_any_text_end_in_a_whole_instance_or_in_sentences_and_nothing(
    root: Path, texts: dict[str, str]
) -> None:
    words = ["new", "any", *(word for key, text in texts.items() for word in (f"--{key}", text))]
    code = main(words, {"GATEHOUSE_ROOT": str(root)})
    made = (root / "instances/any").exists()
    shutil.rmtree(root / "instances/any", ignore_errors=True)
    assert (code, made) in {(0, True), (2, False), (3, False)}
    assert names(root / "instances") == ["_template"]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("# One", "\\# One"),
        ("- one", "\\- one"),
        ("12. one", "12\\. one"),
        ("> one", "\\> one"),
        ("```", "\\```"),
        ("---", "\\---"),
        ("[a]: https://x", "\\[a]: https://x"),
        ("<script>", "\\<script>"),
        ("*One* of them", "*One* of them"),
        ("#hash", "#hash"),
        ("1.5 metres", "1.5 metres"),
    ],
)
def test_an_answer_begins_no_block_of_the_document(answer: str, line: str) -> None:
    words = dict.fromkeys(PHRASES, "x") | {"facts": answer}
    assert fill_document(f"# Title\n\n{PHRASES['facts']}\n", words) == f"# Title\n\n{line}\n"


def test_an_answer_that_names_another_placeholder_is_not_filled_in_again() -> None:
    words = dict.fromkeys(PHRASES, "x") | {"name": PHRASES["about"]}
    assert fill_document(f"I am {PHRASES['name']}", words) == f"I am {PHRASES['about']}"


def test_the_example_of_each_question_can_be_given() -> None:
    assert [(question.key, refusal(question, question.example)) for question in QUESTIONS] == [
        (question.key, "") for question in QUESTIONS
    ]


def test_errors_of_making_are_those_that_the_command_documents(tmp_path: Path) -> None:
    with pytest.raises(HostError):
        make_instance(tmp_path, "x", *answered(GIVEN), {})
    (tmp_path / "instances/x").mkdir(parents=True)
    with pytest.raises(UsageError):
        make_instance(tmp_path, "x", *answered(GIVEN), {})
