from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.agents import forms
from runtime.agents.definition import AgentDefinition, Card, Grounding, Security, Tools
from runtime.front.security_txt import security_txt

CONTACT = "mailto:security@okafor-ceramics.pt"
TODAY = date(2026, 12, 1)

# RFC 9116 §5, in its own names; `uri` and `date-time` are RFC 3986 §4.3 and RFC 3339 §5.6.
PCT = "%[0-9A-Fa-f]{2}"
PCHAR = rf"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|{PCT})"
URI = rf"[A-Za-z][A-Za-z0-9+.-]*:(?:{PCHAR}|[/\[\]])+(?:\?(?:{PCHAR}|[/?])*)?(?:#(?:{PCHAR}|[/?])*)?"
DATE_TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)"
FIELDS = {"Contact": URI, "Expires": DATE_TIME, "Canonical": URI, "Policy": URI}
WEB = {"Contact", "Canonical", "Policy"}


def parsed(text: str) -> dict[str, str]:
    """Return the fields of an unsigned file. Fails for what the RFC's grammar does not allow."""
    assert text.endswith("\n")
    assert "\r" not in text
    found: dict[str, str] = {}
    for line in text.removesuffix("\n").split("\n"):
        name, colon, rest = line.partition(":")
        assert colon, line
        assert name in FIELDS, line
        assert rest.startswith(" "), line
        assert re.fullmatch(FIELDS[name], rest[1:]), line
        assert name not in found, "more than one"
        found[name] = rest[1:]
        if name in WEB and not found[name].startswith("mailto:"):
            assert found[name].startswith("https://"), line
    assert {"Contact", "Expires"} <= set(found)
    return found


def agent(
    public_url: str = "http://127.0.0.1:8011", contact: str = CONTACT, policy: str = ""
) -> AgentDefinition:
    return AgentDefinition(
        id="a",
        card=Card("A", "", "1", public_url),
        persona="",
        grounding=Grounding(Path("/nowhere")),
        tools=Tools(),
        tools_dir=Path("/nowhere"),
        model="sonnet",
        security=Security(contact, policy),
    )


def fields(one: AgentDefinition, today: date = TODAY) -> dict[str, str]:
    text = security_txt(one, today)
    assert text is not None
    return parsed(text)


def test_the_file_has_what_the_instance_names_and_the_rfc_requires() -> None:
    one = agent("https://mira.okafor-ceramics.pt", policy="https://okafor-ceramics.pt/policy")
    assert fields(one) == {
        "Contact": CONTACT,
        "Expires": "2027-05-30T00:00:00Z",
        "Canonical": "https://mira.okafor-ceramics.pt/.well-known/security.txt",
        "Policy": "https://okafor-ceramics.pt/policy",
    }


def test_without_a_contact_there_is_no_file_whatever_else_is_named() -> None:
    assert security_txt(agent(contact="", policy="https://okafor-ceramics.pt/policy"), TODAY) is None


@pytest.mark.parametrize(
    "public_url",
    [
        "http://mira.okafor-ceramics.pt",
        "http://127.0.0.1:8011",
        "https://okafor-ceramics.pt/agents/mira",
        "https://okafor-ceramics.pt?agent=mira",
        "https://café.pt",
    ],
)
def test_an_address_that_the_rfc_allows_no_canonical_of_leaves_it_out(public_url: str) -> None:
    assert set(fields(agent(public_url))) == {"Contact", "Expires"}


@given(st.dates(min_value=date(2000, 1, 1), max_value=date(2990, 1, 1)))
def test_it_expires_in_the_future_and_in_less_than_a_year_on_every_day(today: date) -> None:
    expires = datetime.fromisoformat(fields(agent(), today)["Expires"])
    last = datetime.combine(today, datetime.max.time(), UTC)
    assert last < expires < last + timedelta(days=364)


@given(
    st.from_regex(forms.CONTACT, fullmatch=True),
    st.from_regex(forms.HTTPS, fullmatch=True),
    st.from_regex(forms.URL, fullmatch=True),
)
def test_whatever_check_lets_through_is_a_file_of_the_rfc_s_grammar(
    contact: str, policy: str, public_url: str
) -> None:
    assert "Contact" in fields(replace(agent(public_url, contact, policy)))
