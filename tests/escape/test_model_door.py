"""M: the model door as a resource, for code that already runs inside a turn."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.harness.stack import Stack, answer_of

if TYPE_CHECKING:
    from tests.harness.turnbox import Boxes

pytestmark = pytest.mark.engine

ASK = """
import json, socket, sys
requests = json.loads(sys.argv[1])
answers = []
for method, path, headers, body in requests:
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(20)
        try:
            door.connect("/run/doors/model.sock")
            data = json.dumps(body).encode()
            head = f"{method} {path} HTTP/1.1\\r\\nhost: door\\r\\nconnection: close\\r\\n"
            for name, value in {"content-type": "application/json", **headers}.items():
                head += f"{name}: {value}\\r\\n"
            door.sendall(head.encode() + f"content-length: {len(data)}\\r\\n\\r\\n".encode() + data)
            answer = b""
            while chunk := door.recv(65536):
                answer += chunk
            answers.append(answer.decode(errors="replace"))
        except OSError as error:
            answers.append(f"closed {error.errno}")
print(json.dumps(answers))
"""


Request = tuple[str, str, dict[str, str], Any]


def asked(boxes: Boxes, *requests: Request) -> list[str]:
    """Send requests through a turn's own door, one connection each, and return the raw answers."""
    out, err = boxes.box(json.dumps(requests), door=True).run(ASK)
    assert out, err
    return list(json.loads(out))


def status(answer: str) -> str:
    return answer.split(" ", 2)[1]


def question(marker: str, **more: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"Hello {marker}"}]
    return {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": messages, **more}


@pytest.mark.control("MODEL-04")
def test_m05_the_door_is_no_free_language_model(stack: Stack, boxes: Boxes) -> None:
    marker = stack.script({"text": "Paid for."})
    request: Request = ("POST", "/v1/messages", {}, question(marker))
    answers = [status(answer) for answer in asked(boxes, *[request] * 12)]
    assert answers == ["200"] * 8 + ["402"] * 4
    assert len(stack.requests(marker)) == 8
    assert answer_of(stack.ask(f"Am I affected? {marker}")).startswith("Paid for.")


@pytest.mark.control("MODEL-01")
def test_m02_no_other_path_of_the_api_is_reached(stack: Stack, boxes: Boxes) -> None:
    marker = stack.script({"text": "Never."})
    paths = [
        "/v1/files",
        "/v1/messages/batches",
        "/v1/models",
        "/v1/skills",
        "/v1/organizations/me",
        "/v1/complete",
        "/v1/messages/../files",
        "/v1/messages%2f..%2ffiles",
        "//v1/messages",
        "http://api.invalid/v1/messages",
    ]
    answers = asked(boxes, *[("POST", path, {}, question(marker)) for path in paths])
    assert {status(answer) for answer in answers} == {"403"}, answers
    assert stack.requests(marker) == []


@pytest.mark.control("MODEL-02")
def test_m01_headers_of_a_turn_s_own_never_reach_the_upstream(stack: Stack, boxes: Boxes) -> None:
    marker = stack.script({"text": "Fine."})
    own = {"X-Api-Key": "mine", "Authorization": "Bearer mine", "x_api_key": "mine", "Cookie": "mine=1"}
    (answer,) = asked(boxes, ("POST", "/v1/messages", own, question(marker)))
    assert status(answer) == "200"
    (request,) = stack.requests(marker)
    assert "mine" not in json.dumps(request["headers"])


@pytest.mark.control("MODEL-03")
@pytest.mark.parametrize(
    "more",
    [
        {"tools": [{"type": "web_search_20250305", "name": "web_search"}]},
        {"mcp_servers": [{"type": "url", "url": "https://mcp.invalid", "name": "x"}]},
        {"container": "container_1"},
        {"model": "claude-opus-4-5"},
        {"max_tokens": 100_000},
        {
            "messages": [
                {
                    "role": "user",
                    "content": [{"type": "image", "source": {"type": "url", "url": "https://x.invalid"}}],
                }
            ]
        },
    ],
)
def test_m03_a_body_that_asks_for_more_than_a_turn_needs_is_refused(
    stack: Stack, boxes: Boxes, more: dict[str, Any]
) -> None:
    marker = stack.script({"text": "Never."})
    body = question(marker, **more)
    (answer,) = asked(boxes, ("POST", "/v1/messages", {}, {**body, "system": marker}))
    assert status(answer) == "403", answer
    assert stack.requests(marker) == []


@pytest.mark.control("MODEL-05")
def test_m07_an_upstream_that_fails_says_nothing_to_the_turn(stack: Stack, boxes: Boxes) -> None:
    marker = stack.script({"status": 401, "body": "invalid x-api-key sk-ant-test at 10.0.0.7"})
    (answer,) = asked(boxes, ("POST", "/v1/messages", {}, question(marker)))
    assert status(answer) == "403"
    assert "sk-ant" not in answer
    assert "10.0.0.7" not in answer


@pytest.mark.control("DOOR-02")
def test_s05_a_turn_without_a_door_reaches_no_model(boxes: Boxes) -> None:
    out, _ = boxes.box(json.dumps([("POST", "/v1/messages", {}, {})])).run(ASK)
    assert json.loads(out) == ["closed 2"]
