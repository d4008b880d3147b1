from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from runtime.agents.addresses import is_public
from runtime.agents.definition import Security
from runtime.agents.instance import Inspection, inspect_instance, load_instance
from runtime.errors import ConfigError

if TYPE_CHECKING:
    from pathlib import Path

CONTACT = "mailto:security@okafor-ceramics.pt"


def inspected(root: Path, *lines: str, **environ: str) -> Inspection:
    (root / "instances/good/agent.yaml").write_text("\n".join(["grounding_dir: docs", *lines]) + "\n")
    return inspect_instance(root, "good", environ)


@pytest.mark.parametrize(
    "contact",
    [
        CONTACT,
        "mailto:first.last+tag@mail.okafor-ceramics.pt",
        "https://okafor-ceramics.pt/security",
        "https://okafor-ceramics.pt:8443/a/b%20c?x=1&y=/#part",
        "https://[2001:db8::1]/",
        "https://xn--caf-dma.pt",
    ],
)
def test_a_contact_and_a_policy_are_part_of_the_definition(root: Path, contact: str) -> None:
    page = "https://okafor-ceramics.pt/policy"
    inspected(root, f"security_contact: '{contact}'", f"security_policy: {page}")
    agent = load_instance(root, "good", {})
    assert agent.security == Security(contact, page)
    inspected(root)
    without = load_instance(root, "good", {})
    assert without.security == Security()
    assert without.digest != agent.digest


@pytest.mark.parametrize(
    "contact",
    [
        *("security@okafor-ceramics.pt", "okafor-ceramics.pt", "http://okafor-ceramics.pt", "tel:+351-0"),
        *("mailto:", "mailto:a", "mailto:@b.pt", "mailto:a@b", "mailto:a b@c.pt", "mailto:a@b.pt,c@d.pt"),
        *("mailto:a@b.pt?cc=c@d.pt", "MAILTO:a@b.pt", "mailto:ä@b.pt", "https://café.pt", "https://a.pt/ä"),
        *("https://", "https:///x", "https://a b.pt", "https://a.pt/%zz", "https://[x]/"),
        "https://a.pt:99999/",
    ],
)
def test_what_is_no_contact_is_one_problem_with_its_place_and_how_to_mend_it(
    root: Path, contact: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        inspected(root, f"security_contact: '{contact}'").agent or load_instance(root, "good", {})
    (problem,) = caught.value.problems
    assert (problem.line, problem.col, problem.path) == (2, 19, "security_contact")
    assert problem.message.endswith("is no mailto: or https: address")
    assert "mailto:" in problem.mend


@pytest.mark.parametrize("text", ["mailto:" + "a." * 240, "https://" + "a." * 240, "https://a/" + "/?" * 240])
def test_a_hostile_contact_takes_no_time(root: Path, text: str) -> None:
    before = time.process_time()
    inspected(root, f"security_contact: '{text[:499]}~'", f"security_policy: '{text[:499]}'")
    assert time.process_time() - before < 5


@pytest.mark.parametrize(
    ("url", "public"),
    [
        ("https://mira.okafor-ceramics.pt", True),
        ("https://8.8.8.8/", True),
        ("http://mira.okafor-ceramics.pt", False),
        *(("https://localhost:8011", False), ("https://host", False), ("https://a.internal", False)),
        *(("https://10.0.0.1", False), ("https://[::1]:1", False), ("https://agent.example.org", False)),
        ("", False),
    ],
)
def test_a_public_agent_that_names_no_contact_is_warned_of_and_started(
    root: Path, url: str, *, public: bool
) -> None:
    assert is_public(url) is public
    seen = inspected(root, *([f"public_url: {url}"] if url else []))
    assert seen.agent is not None
    warned = [one for one in seen.warnings if "report a weakness" in one.message]
    assert [(one.line, one.path) for one in warned] == [(2, "public_url")] * public
    contact = inspected(root, f"public_url: {url or 'http://a.pt'}", f"security_contact: {CONTACT}")
    assert [one for one in contact.warnings if "report a weakness" in one.message] == []


def test_the_variable_s_public_address_is_warned_of_too(root: Path) -> None:
    (warning,) = inspected(root, PUBLIC_AGENT_URL="https://mira.okafor-ceramics.pt").warnings
    assert (warning.file, warning.path) == ("environment", "PUBLIC_AGENT_URL")


def test_a_policy_without_a_contact_and_a_contact_that_is_nobody_s_are_warned_of(root: Path) -> None:
    (warning,) = inspected(root, "security_policy: https://okafor-ceramics.pt/p").warnings
    assert (warning.path, warning.mend) == ("security_policy", "add `security_contact:`")
    (warning,) = inspected(root, "security_contact: mailto:security@example.org").warnings
    assert "reserved for examples" in warning.message
