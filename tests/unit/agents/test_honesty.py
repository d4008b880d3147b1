"""The honest card: what it claims is granted and in the prompt, and what it only seems to promise is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from runtime.agents.instance import Inspection, inspect_instance
from runtime.agents.promises import ACTIONS

ROOT = Path(__file__).resolve().parents[3]
FILE = "instances/good/agent.yaml"


def inspected(root: Path, settings: str, prompt: str = "You answer questions of fact.\n") -> Inspection:
    folder = root / "instances" / "good"
    (folder / "agent.yaml").write_text(f"grounding_dir: docs\n{settings}")
    (folder / "system-prompt.md").write_text(prompt)
    return inspect_instance(root, "good", {})


def lines(problems: tuple[object, ...]) -> list[str]:
    return [str(problem).partition(" (")[0] for problem in problems]


GRANT = "allowed_tools: Read,Bash(python3 ${tools_dir}/hours.py:*)\n"


@pytest.mark.control("CFG-04")
def test_a_skill_needs_scripts_that_are_granted_and_named_in_the_prompt(root: Path) -> None:
    skill = "skills:\n  - id: times\n    tags: [fact]\n    tools: [hours, gone]\n"
    assert lines(inspected(root, skill).problems) == [
        f"{FILE}:5:13: skills[0].tools[0]: needs hours, which is not granted",
        f"{FILE}:5:20: skills[0].tools[1]: needs gone, which is not granted",
    ]
    assert lines(inspected(root, GRANT + skill).problems) == [
        f"{FILE}:6:13: skills[0].tools[0]: needs hours, which the prompt never names",
        f"{FILE}:6:20: skills[0].tools[1]: needs gone, which is not granted",
    ]
    seen = inspected(root, GRANT + skill.replace(", gone", ""), "Ask hours when a visitor names a day.\n")
    assert seen.agent is not None
    assert seen.warnings == ()


def test_what_a_skill_needs_is_not_on_the_card(root: Path) -> None:
    settings = GRANT + "skills: [{id: times, tags: [fact], tools: [hours]}]\n"
    seen = inspected(root, settings, "Ask hours.\n")
    assert seen.agent is not None
    assert not hasattr(seen.agent.card.skills[0], "tools")


@pytest.mark.control("CFG-04")
@pytest.mark.parametrize(
    ("skill", "place"),
    [
        ("{id: hours, tags: [fact]}", "2:15: skills[0].id"),
        ("{id: fact, name: Hours, tags: [fact]}", "2:27: skills[0].name"),
        ("{id: fact, tags: [fact, hours]}", "2:34: skills[0].tags[1]"),
    ],
)
def test_a_skill_that_bears_the_name_of_a_script_that_is_not_granted_is_an_error(
    root: Path, skill: str, place: str
) -> None:
    (problem,) = inspected(root, f"skills: [{skill}]\n").problems
    assert str(problem).startswith(f"{FILE}:{place}: ")
    assert "is the script tools/hours.py, which is not granted" in problem.message
    granted = inspected(root, f"skills: [{skill}]\n{GRANT}", "Ask hours about a fact.\n")
    assert granted.problems == ()


def test_mistakes_of_one_skill_do_not_hide_its_other_mistakes(root: Path) -> None:
    settings = "skills:\n  - {id: A!, tags: [hours], tools: [gone], examples: [1]}\n  - {id: b}\n"
    assert [problem.path for problem in inspected(root, settings).problems] == [
        "skills[0].id",
        "skills[0].tags[0]",
        "skills[0].tools[0]",
        "skills[0].examples[0]",
        "skills[1].tags",
    ]


def test_a_granted_script_that_the_prompt_never_names_is_a_warning(root: Path) -> None:
    seen = inspected(root, GRANT)
    assert seen.agent is not None
    assert lines(seen.warnings) == [f"{FILE}:2:16: allowed_tools: grants hours, which the prompt never names"]


PROMISES = {
    "booking": [
        "It books a table for you.",
        "Reserve your seat here.",
        "Takes bookings.",
        "Schedules meetings.",
    ],
    "ordering": ["Order a cake.", "It takes your orders.", "It accepts payments."],
    "sending or forwarding": [
        "I send her a message.",
        "It forwards your request.",
        "I pass it on to her office.",
    ],
    "taking requests": ["Takes requests for the owner.", "Leave a message.", "It records your complaint."],
    "browsing the web": ["It searches the web.", "Browses the internet for you", "Has the latest news."],
    "remembering visitors": ["It remembers you.", "Has a long-term memory."],
}


def test_every_action_has_promises_that_this_test_tries() -> None:
    assert set(PROMISES) == {action for action, *_ in ACTIONS}


@pytest.mark.control("CFG-04")
@pytest.mark.parametrize(
    ("action", "text"), [(action, text) for action, texts in PROMISES.items() for text in texts]
)
def test_a_promise_that_nothing_granted_keeps_is_a_warning_at_its_place(
    root: Path, action: str, text: str
) -> None:
    for settings, place in (
        (f'description: "{text}"\n', "2:14: description"),
        (f'skills: [{{id: fact, tags: [fact], description: "{text}"}}]\n', "2:48: skills[0].description"),
    ):
        seen = inspected(root, settings)
        assert seen.agent is not None
        message = f"seems to promise {action}, which nothing granted does"
        assert lines(seen.warnings) == [f"{FILE}:{place}: {message}"]


@pytest.mark.parametrize(
    "text",
    [
        "You cannot book a time, order a cake, send a message or leave a request.",
        "Free times only; nothing is booked, and no bookings are taken.",
        "It does not send messages.",
        "It doesn\N{RIGHT SINGLE QUOTATION MARK}t remember you.",
        "How can I send her a message?",
        "How do I book a table?",
        "Questions about her books and the order of the Notes.",
        "The letters that she sent. Her searches of the archive. A passage on the Engine.",
        "What she remembered of her father.",
        "A reserved person; a man of letters.",
        "Answers questions about reservations: which number to call.",
        "To book a lesson, visitors call the studio.",
        "Lessons are at ten; to book a lesson, visitors call the studio.",
        "A guide to Git: branches, checkout.",
        "Payments: which cards the shop takes.",
        "Has the latest news of the choir from its files.",
        "Where you can book a room, and who takes payments.",
        "To reach her, leave a message at the desk.",
        "Guests book a table at the desk, by telephone or by letter.",
        "If you want to send a message, the page tells you how.",
    ],
)
def test_what_a_card_denies_asks_about_or_only_speaks_of_is_no_alarm(root: Path, text: str) -> None:
    assert inspected(root, f'description: "{text}"\n').warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "No need to call, it books a table for you.",
        "Book a table at no charge.",
        "Order food without waiting.",
        "Answers questions and books tables.",
        "An assistant that books tables.",
        "I\N{RIGHT SINGLE QUOTATION MARK}m happy to book a table for you.",
        "Ask me to send her a message, at no cost.",
    ],
)
def test_a_denial_of_something_else_takes_no_promise_back(root: Path, text: str) -> None:
    (warning,) = inspected(root, f'description: "{text}"\n').warnings
    assert warning.message.startswith("seems to promise ")


def test_what_visitors_say_in_examples_promises_nothing(root: Path) -> None:
    assert (
        inspected(root, "skills: [{id: fact, tags: [fact], examples: [Book a table for me]}]\n").warnings
        == ()
    )


def test_wrong_grants_hide_no_claim_that_needs_none_of_them(root: Path) -> None:
    settings = "description: Books a table.\nskills: [{id: send_mail, tags: [fact], tools: [gone, hours]}]\n"
    (root / "instances/good/tools/send_mail.py").write_text("")
    for grants in ("[Read, hours]", "Read;Bash(python3 ${tools_dir}/hours.py:*)"):
        seen = inspected(root, f"allowed_tools: {grants}\n{settings}")
        assert [problem.path for problem in seen.problems] == [
            "allowed_tools",
            "skills[0].id",
            "skills[0].tools[0]",
            "skills[0].tools[1]",
        ]
        assert "needs gone, which is not granted" in seen.problems[2].message
        assert "needs hours, which the prompt never names" in seen.problems[3].message
        assert [warning.path for warning in seen.warnings][:1] == ["description"]


def test_a_plain_word_is_no_name_of_a_script_and_no_certain_mistake_either(root: Path) -> None:
    (root / "instances/good/tools/menu.py").write_text("")
    settings = (
        "allowed_tools: Read,Bash(python3 ${tools_dir}/menu.py:*)\n"
        "skills: [{id: fact, tags: [fact], tools: [menu]}]\n"
    )
    seen = inspected(root, settings, "Its menu changes daily.\n")
    assert seen.agent is not None
    assert [(one.path, one.message) for one in seen.warnings] == [
        ("allowed_tools", "grants menu, which the prompt never names"),
        ("skills[0].tools[0]", "needs menu, which the prompt never names"),
    ]
    assert inspected(root, settings, "El plato del d\u00eda: `menu`.\n").warnings == ()


@pytest.mark.parametrize(
    "settings",
    [
        "grounding_dir: gone\n",
        "grounding_dir: docs\nextra_read_dirs: [gone]\n",
        "grounding_dir: docs\nextra_read_dirs: gone\n",
    ],
)
def test_a_folder_that_cannot_be_read_makes_no_document_a_missing_one(root: Path, settings: str) -> None:
    (root / "instances/good/agent.yaml").write_text(f"{settings}skills: [{{id: geology, tags: [stones]}}]\n")
    seen = inspect_instance(root, "good", {})
    assert [problem.path[:15] for problem in seen.problems] in (["grounding_dir"], ["extra_read_dirs"])
    assert seen.warnings == ()


def test_documents_past_the_bound_make_no_document_a_missing_one(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runtime.agents.texts.LOOKED_AT_BYTES", 3)
    (root / "docs" / "stone.md").write_text("All about granite and other stones.\n")
    seen = inspected(root, "skills: [{id: granite, tags: [granite]}]\n")
    assert [warning.path for warning in seen.warnings] == ["grounding_dir"]


def test_a_granted_script_that_does_it_keeps_the_promise(root: Path) -> None:
    tools = root / "instances/good/tools"
    (tools / "hours.py").write_text('"""Books a table for a visitor."""\n')
    seen = inspected(root, GRANT + "description: It books a table for you.\n", "Use hours.\n")
    assert seen.warnings == ()
    (tools / "hours.py").write_text('"""Prints hours; does not book a table."""\n')
    assert (
        len(inspected(root, GRANT + "description: It books a table for you.\n", "Use hours.\n").warnings) == 1
    )


def test_a_skill_of_which_nothing_says_a_word_is_a_warning(root: Path) -> None:
    skills = "skills:\n  - {id: fact, tags: [a]}\n  - {id: geology, tags: [stones], name: Rocks}\n"
    message = "is a skill of which neither the prompt nor any document has a word"
    assert lines(inspected(root, skills).warnings) == [f"{FILE}:4:10: skills[1].id: {message}"]
    (root / "docs" / "stone.md").write_text("Granite.\n")
    assert inspected(root, skills).warnings == ()


def test_ada_and_the_template_are_honest() -> None:
    ada = inspect_instance(ROOT, "ada", {})
    template = inspect_instance(ROOT, "_template", {}, template=True)
    assert (ada.problems, template.problems) == ((), ())
    assert (ada.warnings, template.warnings) == ((), ())


@pytest.mark.parametrize(
    ("url", "nobodys"),
    [
        ("https://example.org/", True),
        ("https://www.example.com/x", True),
        ("http://ada.example", True),
        ("https://a.test:80", True),
        ("https://myexample.org/", False),
        ("https://example.org.uk/", False),
        ("http://127.0.0.1:8011", False),
    ],
)
def test_an_address_that_is_nobodys_is_a_warning(root: Path, url: str, nobodys: bool) -> None:
    for settings, path in (
        (f'provider: {{organization: A, url: "{url}"}}\n', "provider.url"),
        (f"icon_url: {url}\n", "icon_url"),
        (f"public_url: {url}\n", "public_url"),
        (f"security_policy: {url.replace('http:', 'https:')}\n", "security_policy"),
    ):
        warnings = [warning for warning in inspected(root, settings).warnings if warning.path == path]
        found = [warning for warning in warnings if "reserved for examples" in warning.message]
        assert len(found) == nobodys
        assert all(one.line == 2 for one in found)
