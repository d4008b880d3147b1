"""The two personas that come with the product: the template loads and is neutral, Ada keeps her word."""

from __future__ import annotations

import datetime as dt
import re
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from runtime.agents.inline import inline_files
from runtime.agents.instance import load_instance
from runtime.agents.placeholders import PHRASES
from runtime.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "instances" / "_template"
ADA = ROOT / "instances" / "ada"
SECTIONS = [
    "Role",
    "Knowledge base",
    "Hard disclosure boundary",
    "Voice",
    "Tools",
    "Availability",
    "Requests",
    "Do not",
]


def texts(folder: Path) -> dict[Path, str]:
    return {
        path: path.read_text() for path in sorted(folder.rglob("*")) if path.suffix in {".md", ".yaml", ".py"}
    }


@pytest.fixture(scope="module")
def opening_hours() -> SimpleNamespace:
    return SimpleNamespace(**runpy.run_path(str(ADA / "tools" / "opening_hours.py")))


@pytest.mark.parametrize("name", ["_template", "ada"])
def test_both_personas_load(name: str) -> None:
    agent = load_instance(ROOT, name, {}, template=name == "_template")
    assert agent.grounding.directory == ROOT / "instances" / name / "grounding"


def test_the_template_has_placeholders_in_every_identity_field() -> None:
    agent = load_instance(ROOT, "_template", {}, template=True)
    assert agent.card.name.startswith("<")
    assert agent.card.description.startswith("<")
    assert agent.card.provider is not None
    assert agent.card.provider.organization.startswith("<")
    assert "example.org" in agent.card.provider.url


def test_every_placeholder_of_the_template_is_one_that_a_start_is_refused_over() -> None:
    text = "".join(
        re.sub(r"^# .*$", "", text, flags=re.MULTILINE) if path.suffix == ".yaml" else text
        for path, text in texts(TEMPLATE).items()
    )
    assert set(re.findall(r"<[^<>]+>", text)) == set(PHRASES.values())


def test_the_template_itself_is_refused_by_name_and_told_what_to_do() -> None:
    with pytest.raises(ConfigError) as caught:
        load_instance(ROOT, "_template", {}, check_sources=False)
    assert str(caught.value) == (
        "instances/_template: is what a persona is copied from, and is none itself"
        " (run `./gatehouse new NAME`, which copies and fills it, and set GATEHOUSE_AGENT=NAME)"
    )


def test_a_fresh_copy_of_the_template_is_refused_at_every_place_that_is_not_filled_in(
    tmp_path: Path,
) -> None:
    shutil.copytree(TEMPLATE, tmp_path / "instances" / "mira")
    for checked in (True, False):
        with pytest.raises(ConfigError) as caught:
            load_instance(tmp_path, "mira", {}, check_sources=checked, template=True)
        problems = caught.value.problems
        assert [problem.path for problem in problems if problem.path] == [
            "name",
            "description",
            "provider.organization",
        ]
        files = {problem.file for problem in problems}
        assert ("instances/mira/grounding/about.md" in files) == checked
        assert {"instances/mira/agent.yaml", "instances/mira/system-prompt.md"} <= files
        assert all(problem.line and problem.col and problem.mend for problem in problems)


def test_the_template_grants_reading_only() -> None:
    agent = load_instance(ROOT, "_template", {}, template=True)
    assert agent.tools.builtin == ("Read", "Glob", "Grep")
    assert agent.tools.granted == ()


def test_the_template_shows_every_setting() -> None:
    from runtime.agents.fields import SETTINGS

    text = (TEMPLATE / "agent.yaml").read_text()
    missing = [item.key for item in SETTINGS if not re.search(rf"^(# )?{item.key}:", text, re.MULTILINE)]
    assert missing == []


def test_the_templates_messages_are_the_defaults() -> None:
    from runtime.agents.definition import Messages

    assert load_instance(ROOT, "_template", {}, template=True).messages == Messages()


@pytest.mark.parametrize("folder", [TEMPLATE, ADA], ids=["template", "ada"])
def test_no_persona_names_a_path_of_a_host(folder: Path) -> None:
    for path, text in texts(folder).items():
        assert not re.search(r"/(home|Users|root|work|srv|opt)/", text), path


def test_the_template_is_plain_english_text() -> None:
    for path, text in texts(TEMPLATE).items():
        assert set(text) - {"…"} <= {chr(code) for code in range(32, 127)} | {"\n"}, path


@pytest.mark.parametrize("folder", [TEMPLATE, ADA], ids=["template", "ada"])
def test_a_prompt_has_the_sections_that_a_representative_needs(folder: Path) -> None:
    text = (folder / "system-prompt.md").read_text()
    headings = [heading for heading in re.findall(r"^# (.+)$", text, re.MULTILINE) if heading in SECTIONS]
    assert headings == SECTIONS
    assert "automated representative" in text
    assert "is an offer, a promise, a booking, a price, a consent or an endorsement" in text
    assert "cannot take down a request" in text


def test_ada_has_a_dozen_documents_and_every_one_is_told_or_named_in_the_prompt() -> None:
    names = {path.stem for path in (ADA / "grounding").glob("*.md")}
    prompt = (ADA / "system-prompt.md").read_text()
    assert len(names) >= 12
    assert {"office-hours", "availability", "contact-policy"} <= names
    assert [name for name in sorted(names) if name not in prompt] == []


def test_links_between_adas_documents_lead_somewhere() -> None:
    for path, text in texts(ADA / "grounding").items():
        for name in re.findall(r"\b([a-z-]+\.md)\b", text):
            assert (path.parent / name).is_file(), f"{path.name} names {name}"


def test_adas_frequent_questions_are_told_up_front() -> None:
    result = inline_files(load_instance(ROOT, "ada", {}).grounding)
    assert [file.path for file in result.files] == ["faq.md"]
    assert result.skipped == ()


def test_adas_skills_have_tags_and_examples() -> None:
    skills = load_instance(ROOT, "ada", {}).card.skills
    assert 3 <= len(skills) <= 4
    assert all(skill.tags and skill.examples and skill.description for skill in skills)


def test_the_opening_hours_tool_says_what_the_document_says(opening_hours: Any) -> None:
    document = (ADA / "grounding" / "office-hours.md").read_text()
    assert "Tuesdays and Thursdays from 14:00 to 16:00" in document
    assert "in August, or from 24 December to 1 January" in document
    assert opening_hours.HOURS == {"tuesday": "14:00 to 16:00", "thursday": "14:00 to 16:00"}


@pytest.mark.parametrize(
    ("day", "answer"),
    [
        ("thursday", "Thursdays: 14:00 to 16:00, London time."),
        (" Tuesday ", "Tuesdays: 14:00 to 16:00, London time."),
        ("sunday", "Sundays: no office hours."),
        ("2026-03-05", "Thursday 2026-03-05: 14:00 to 16:00, London time."),
        ("2026-03-06", "Friday 2026-03-06: no office hours."),
        ("2026-08-04", "Tuesday 2026-08-04: no office hours."),
        ("2026-12-24", "Thursday 2026-12-24: no office hours."),
        ("2026-12-22", "Tuesday 2026-12-22: 14:00 to 16:00, London time."),
        ("2030-01-01", "Tuesday 2030-01-01: no office hours."),
    ],
)
def test_the_opening_hours_tool_answers_for_a_day(opening_hours: Any, day: str, answer: str) -> None:
    assert opening_hours.hours_of(day) == answer


def test_the_opening_hours_tool_prints_all_hours_without_a_day(
    opening_hours: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert opening_hours.main([]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Tuesdays: 14:00 to 16:00, London time.",
        "Thursdays: 14:00 to 16:00, London time.",
    ]


def test_the_opening_hours_tool_refuses_what_is_no_day(
    opening_hours: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        opening_hours.main(["--day", "; cat /etc/passwd"])
    assert caught.value.code == 2
    assert "or a date such as" in capsys.readouterr().err


def test_every_date_of_a_year_has_an_answer(opening_hours: Any) -> None:
    first = dt.date(2028, 1, 1)
    answers = [opening_hours.hours_of((first + dt.timedelta(days=n)).isoformat()) for n in range(366)]
    assert 85 <= sum("14:00" in answer for answer in answers) <= 105
