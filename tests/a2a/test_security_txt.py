"""`/.well-known/security.txt` over real HTTP: where it is, what is in it, and that it follows a reload."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from runtime.agents.definition import Security
from runtime.front.current import served

PATH = "/.well-known/security.txt"
ORIGIN = "https://mira.okafor-ceramics.pt"
CONTACT = "mailto:security@okafor-ceramics.pt"


def named(agent: Any) -> Any:
    return replace(agent, security=Security(CONTACT), card=replace(agent.card, public_url=ORIGIN))


async def test_an_agent_without_a_contact_has_no_file(front: Any) -> None:
    for method in ("GET", "HEAD"):
        assert (await front.http.request(method, PATH)).status_code == 404


async def test_the_file_is_plain_text_and_never_names_the_host_that_was_asked(kit: Any) -> None:
    async with kit.serving(kit.Runner(), named(kit.definition())) as front:
        answer = await front.http.get(PATH, headers={"Host": "evil.example"})
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; charset=utf-8")
        lines = answer.text.splitlines()
        assert lines[0] == f"Contact: {CONTACT}"
        assert f"Canonical: {ORIGIN}{PATH}" in lines
        assert "evil" not in answer.text
        expires = next(line.partition(": ")[2] for line in lines if line.startswith("Expires: "))
        assert 0 < (datetime.fromisoformat(expires) - datetime.now(UTC)).days < 365
        head = await front.http.head(PATH)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-length"] == str(len(answer.content))
        assert head.headers["x-content-type-options"] == "nosniff"
        assert (await front.http.post(PATH)).status_code == 405


async def test_the_file_follows_a_reload(kit: Any) -> None:
    agent = kit.definition()
    async with kit.serving(kit.Runner(), agent) as front:
        for one, status in ((named(agent), 200), (agent, 404), (named(agent), 200)):
            front.current.swap(served(one, one.digest))
            assert (await front.http.get(PATH)).status_code == status
