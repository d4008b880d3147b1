"""LiteLLM as a gateway in front of us: its callers send and stream in either dialect."""

from __future__ import annotations

import json
import uuid
from typing import Any

import httpx2
import pytest

from tests.clients.conftest import KEY, OTHERS
from tests.clients.expectations import GROWN, TEXT

pytestmark = OTHERS
NAMES = {"old": ("message/send", "message/stream"), "new": ("SendMessage", "SendStreamingMessage")}


def body(agent: str, method: str, text: str, context: str | None = None) -> dict[str, Any]:
    """Return a request in the dialect of the agent's name."""
    kind = {"kind": "text"} if agent == "old" else {}
    message: dict[str, Any] = {"messageId": str(uuid.uuid4()), "parts": [kind | {"text": text}]}
    message |= {"kind": "message", "role": "user"} if agent == "old" else {"role": "ROLE_USER"}
    if context:
        message["contextId"] = context
    return {"jsonrpc": "2.0", "id": "one", "method": method, "params": {"message": message}}


def headers(agent: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {KEY}"} | ({"A2A-Version": "1.0"} if agent == "new" else {})


def sent(url: str, agent: str, text: str, context: str | None = None) -> dict[str, Any]:
    """Return the task that the gateway answers with."""
    request = body(agent, NAMES[agent][0], text, context)
    response = httpx2.post(
        f"{url}/a2a/{agent}", json=request, headers=headers(agent), timeout=30, trust_env=False
    )
    assert response.status_code == 200, response.text
    result = response.json()["result"]
    task: dict[str, Any] = result.get("task", result)
    return task


@pytest.mark.parametrize("agent", list(NAMES))
def test_a_caller_of_the_gateway_gets_the_answer_and_goes_on(gateway_url: str, agent: str) -> None:
    first = sent(gateway_url, agent, TEXT)
    parts = first["artifacts"][0]["parts"]
    assert first["status"]["state"] == {"old": "completed", "new": "TASK_STATE_COMPLETED"}[agent]
    assert parts[0]["text"] == f"echo: {TEXT}"
    assert parts[1]["metadata"] == {"gatehouse": {"kind": "notice"}}
    again = sent(gateway_url, agent, "before", first["contextId"])
    assert again["artifacts"][0]["parts"][0]["text"] == f"before: {TEXT}"


@pytest.mark.parametrize("agent", list(NAMES))
def test_a_caller_of_the_gateway_sees_the_answer_grow_and_end(gateway_url: str, agent: str) -> None:
    request = body(agent, NAMES[agent][1], "grow")
    events: list[dict[str, Any]] = []
    with httpx2.stream(
        "POST",
        f"{gateway_url}/a2a/{agent}",
        json=request,
        headers=headers(agent),
        timeout=30,
        trust_env=False,
    ) as response:
        assert response.status_code == 200, response.read()
        events += [
            json.loads(line[6:])["result"] for line in response.iter_lines() if line.startswith("data: {")
        ]
    updates = [event.get("artifactUpdate", event) for event in events if "artifact" in json.dumps(event)]
    texts = [one["artifact"]["parts"][0]["text"] for one in updates if "artifact" in one]
    assert len(texts) >= 3
    assert texts[-1] == GROWN.strip()
    last = events[-1].get("statusUpdate", events[-1])
    assert last["status"]["state"] == {"old": "completed", "new": "TASK_STATE_COMPLETED"}[agent]


@pytest.mark.parametrize("agent", list(NAMES))
def test_the_gateways_card_of_the_agent_leads_to_the_gateway(gateway_url: str, agent: str) -> None:
    response = httpx2.get(
        f"{gateway_url}/a2a/{agent}/.well-known/agent-card.json", headers=headers(agent), trust_env=False
    )
    assert response.status_code == 200, response.text
    assert f"{gateway_url}/a2a/" in response.text
