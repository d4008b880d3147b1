"""What `gatehouse new` asks, and which answers it takes. Pure: texts in, sentences out.

One table gives the flags, the questions on a terminal and the list of what is missing. What is refused here
would be refused by the check of the instance too; here the sentence names the answer instead of a file that
does not exist yet.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runtime.agents.disclosures import secrets
from runtime.agents.fields import PROVIDER, SETTINGS, Field
from runtime.agents.placeholders import unfilled, unfilled_settings
from runtime.agents.scalars import Place, read_text
from runtime.agents.tree import Entry, Mapping, Scalar
from runtime.agents.yaml_source import Report

if TYPE_CHECKING:
    from collections.abc import Mapping as MappingOf

SUFFIX: Final = " (automated representative)"  # what the template puts behind the name on the card
_FIELDS: Final = {item.key: item for item in (*SETTINGS, *PROVIDER)}

# Controls, line separators, direction overrides, and signs without a shape that can carry hidden text.
_UNSEEN: Final = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff\ufff9-\uffff"
    r"\U000e0000-\U000e0fff]"
)


@dataclass(frozen=True, slots=True)
class Question:
    """One thing to say about a persona. `maximum` is in characters; `field` is the setting it becomes.

    `left` says what holds when an optional one is left out.
    """

    key: str
    words: str
    example: str
    maximum: int
    field: Field | None = None
    required: bool = True
    left: str = "none"

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return "--" + self.key.replace("_", "-")


QUESTIONS: Final = (
    Question("name", "Name of the persona", "Mira Okafor", 100 - len(SUFFIX)),
    Question("about", "One line about them", "a potter in Porto who teaches evening classes", 300),
    Question(
        "organization", "Who stands behind the agent: a name or an organisation", "Okafor Ceramics", 200
    ),
    Question("url", "Their address on the web", "https://example.org/", 500, _FIELDS["url"]),
    Question("fact", "One fact to start with; visitors can read it", "The studio opened in 2014.", 2000),
    Question("contact", "How visitors may reach them", "Write to studio@example.org.", 1000),
    Question(
        "model", "Model, an alias or an id", "sonnet", 100, _FIELDS["model"], required=False, left="sonnet"
    ),
    Question(
        "public_url",
        "Address on the card, as visitors reach the agent",
        "https://mira.example.org",
        500,
        _FIELDS["public_url"],
        required=False,
    ),
)


def cleaned(question: Question, text: str) -> str:
    """Return an answer without what surrounds it; `about` is the middle of a sentence and loses its dot."""
    text = text.strip(" ")
    return text.removesuffix(".").rstrip(" ") if question.key == "about" else text


def refusal(question: Question, text: str) -> str:
    """Say in one sentence why a cleaned answer cannot be taken, or return ""."""
    if not text:
        return "is empty"
    if "\n" in text or "\r" in text:
        return "must be one line"
    if _UNSEEN.search(text):
        return "holds a sign that cannot be seen, such as a control character"
    if len(text) > question.maximum:
        return f"has {len(text)} characters, and {question.maximum} are the most"
    if "${" in text:
        return "holds ${, which begins a placeholder in these files"
    if any(unfilled(text)) or any(unfilled_settings(_as_setting(text))):
        return "is in <angle brackets>, as what is still to be filled in"
    if any(secrets(text)):
        return "looks like it holds a password or a key, and visitors can read all of it"
    if question.field is not None:
        report = Report("")
        read_text(text, question.field, Place(report, 0, 0, ""))
        if report.problems:
            return f"{report.problems[0].message} ({report.problems[0].mend})"
    return ""


def described(answers: MappingOf[str, str]) -> str:
    """Return the description on the card, which says that nobody is talking there in person."""
    return f"An automated representative of {answers['name']}, {answers['about']}."


def _as_setting(text: str) -> Mapping:
    return Mapping((Entry("name", Scalar(text, "str", 1, 1), 1, 1),), 1, 1)
