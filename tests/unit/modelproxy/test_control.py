from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from runtime.modelproxy.control import control_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TURN = "0123456789abcdef" * 2


def body(**changes: Any) -> dict[str, Any]:
    limits = {"requests": 8, "body_bytes": 530_000, "input_tokens": 100_000, "output_tokens": 4000}
    return {
        "agent": "ada",
        "context": "ctx",
        "visitor": "vis",
        "model": "sonnet",
        "limits": limits,
        "deadline": time.time() + 60,
        **changes,
    }


@pytest.fixture
async def control(demo: Any) -> AsyncIterator[httpx2.AsyncClient]:
    (demo.root / TURN).mkdir()
    transport = httpx2.ASGITransport(control_app(demo.doors, demo=True))
    async with httpx2.AsyncClient(transport=transport, base_url="http://control") as client:
        yield client


async def test_a_door_is_opened_used_and_closed_with_its_usage(
    demo: Any, control: httpx2.AsyncClient, asking: Any
) -> None:
    assert (await control.put(f"/turns/{TURN}", json=body())).status_code == 201
    assert (await control.put(f"/turns/{TURN}", json=body())).status_code == 409
    transport = httpx2.AsyncHTTPTransport(uds=str(demo.root / TURN / "model.sock"))
    async with httpx2.AsyncClient(transport=transport) as turn:
        assert (await turn.post("http://x/v1/messages", json=asking("hello"))).status_code == 200
        assert (await turn.get("http://x/")).status_code == 403
    closed = await control.delete(f"/turns/{TURN}")
    usage = closed.json()
    assert closed.status_code == 200
    assert (usage.pop("input_tokens") > 0, usage.pop("output_tokens") > 0) == (True, True)
    assert usage == {"requests": 1, "refused": 1}
    assert (await control.delete(f"/turns/{TURN}")).status_code == 404


async def test_health_says_whether_it_is_the_demo(control: httpx2.AsyncClient) -> None:
    assert (await control.get("/health")).json() == {"status": "ok", "demo": True}


@pytest.mark.parametrize(
    "changes",
    [
        {"agent": "../x"},
        {"context": "a" * 65},
        {"visitor": "x\n"},
        {"visitor": ""},
        {"visitor": 5},
        {"model": ""},
        {"model": "x y"},
        {"extra": 1},
        {"limits": {}},
        {"limits": {"requests": 8, "body_bytes": 530_000, "input_tokens": 1, "output_tokens": 1, "x": 1}},
        {"limits": {"requests": "8", "body_bytes": 530_000, "input_tokens": 1, "output_tokens": 1}},
        {"limits": {"requests": True, "body_bytes": 530_000, "input_tokens": 1, "output_tokens": 1}},
        {"limits": {"requests": 0, "body_bytes": 530_000, "input_tokens": 1, "output_tokens": 1}},
        {"deadline": 1.0},
        {"deadline": 9e12},
        {"deadline": "soon"},
    ],
)
async def test_a_malformed_turn_is_400_and_opens_nothing(
    demo: Any, control: httpx2.AsyncClient, changes: dict[str, Any]
) -> None:
    answer = await control.put(f"/turns/{TURN}", json=body(**changes))
    assert (answer.status_code, answer.json()["error"]) == (400, "bad-request")
    assert len(demo.doors) == 0


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{" * 9000,
        b"\xff",
        json.dumps(body()).encode() + b" " * 17_000,
        json.dumps(body()).encode()[:-1] + b', "agent": "other"}',
    ],
)
async def test_a_body_that_is_not_one_small_object_with_unique_keys_is_400(
    demo: Any, control: httpx2.AsyncClient, content: bytes
) -> None:
    assert (await control.put(f"/turns/{TURN}", content=content)).status_code == 400
    assert len(demo.doors) == 0


@pytest.mark.parametrize("turn", ["x" * 32, "A" * 32, "a" * 31, "a" * 33, "%2e%2e"])
async def test_a_turn_s_name_is_32_hex_digits(control: httpx2.AsyncClient, turn: str) -> None:
    assert (await control.put(f"/turns/{turn}", json=body())).status_code in {400, 404}
    assert (await control.delete(f"/turns/{turn}")).status_code in {400, 404}


async def test_a_turn_whose_folder_is_missing_is_503(control: httpx2.AsyncClient) -> None:
    answer = await control.put(f"/turns/{'e' * 32}", json=body())
    assert (answer.status_code, answer.json()["error"]) == (503, "no-folder")
