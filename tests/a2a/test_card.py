"""Discovery: what a client finds before it asks anything."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.front.readiness import Readiness


async def test_both_well_known_paths_serve_the_same_bytes(front: Any) -> None:
    first = await front.http.get("/.well-known/agent-card.json")
    second = await front.http.get("/.well-known/agent.json")
    assert first.status_code == second.status_code == 200
    assert first.content == second.content
    assert first.headers["etag"] == second.headers["etag"]


async def test_the_card_lists_both_dialects_at_the_public_url(front: Any) -> None:
    card = (await front.http.get("/.well-known/agent-card.json")).json()
    assert [item["protocolVersion"] for item in card["supportedInterfaces"]] == ["1.0", "0.3"]
    assert {item["url"] for item in card["supportedInterfaces"]} == {"http://127.0.0.1:8011/"}
    assert {item["protocolBinding"] for item in card["supportedInterfaces"]} == {"JSONRPC"}
    assert card["url"] == "http://127.0.0.1:8011/"
    assert card["protocolVersion"] == "0.3"
    assert card["capabilities"]["streaming"] is True
    assert card["capabilities"]["pushNotifications"] is False
    assert card["defaultInputModes"] == card["defaultOutputModes"] == ["text"]
    assert card["skills"][0]["tags"] == ["hours"]
    assert card["provider"] == {"organization": "Gatehouse", "url": "https://example.org"}


async def test_the_card_is_not_built_from_the_host_header(front: Any) -> None:
    answer = await front.http.get("/.well-known/agent.json", headers={"host": "evil.example"})
    assert b"evil.example" not in answer.content


async def test_nothing_is_redirected_to_a_host_that_the_visitor_names(front: Any) -> None:
    for path in ("/health/", "/.well-known/agent-card.json/", "/nowhere"):
        answer = await front.http.get(path, headers={"host": "evil.example"})
        assert answer.status_code == 404
        assert "location" not in answer.headers


async def test_a_client_that_has_the_card_gets_304(front: Any) -> None:
    first = await front.http.get("/.well-known/agent.json")
    again = await front.http.get("/.well-known/agent.json", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304
    assert again.content == b""


@pytest.mark.control("REP-01")
async def test_the_card_says_that_the_words_bind_nobody_and_when_it_is_the_demo(kit: Any) -> None:
    async with kit.serving(kit.Runner(), kit.definition(), demo=True) as front:
        description = (await front.http.get("/.well-known/agent.json")).json()["description"]
        assert "binds nobody" in description
        assert "demo model" in description
        assert (await front.http.get("/ready")).json() == {"status": "ready", "demo": True}


async def test_the_card_follows_when_the_demo_gives_way_to_a_model(kit: Any) -> None:
    agent = kit.definition()
    spawner = kit.Spawner(agent.digest, demo=True)
    now = 0.0
    readiness = Readiness(spawner, agent.id, agent.digest, clock=lambda: now)
    async with kit.serving(kit.Runner(), agent, readiness=readiness) as front:
        paths = ("/.well-known/agent.json", "/.well-known/agent-card.json")
        first = [await front.http.get(path) for path in paths]
        assert all("demo model" in answer.json()["description"] for answer in first)
        spawner.demo = False
        now += 60
        assert (await front.http.get("/ready")).json() == {"status": "ready"}
        for path, before in zip(paths, first, strict=True):
            after = await front.http.get(path, headers={"if-none-match": before.headers["etag"]})
            assert after.status_code == 200
            assert "demo model" not in after.json()["description"]
            assert after.headers["etag"] != before.headers["etag"]


async def test_health_is_exactly_the_status_and_the_agent(front: Any) -> None:
    answer = await front.http.get("/health")
    assert answer.content == b'{"status":"ok","agent":"ada"}'
    assert (await front.http.post("/health", json={})).status_code == 405
    assert (await front.http.get("/ready")).json() == {"status": "ready"}


async def test_every_answer_carries_the_security_headers(front: Any) -> None:
    for answer in (
        await front.http.get("/health"),
        await front.http.get("/nothing-here"),
        await front.http.post("/", content=b"x", headers={"content-type": "text/plain"}),
    ):
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
