from __future__ import annotations

import json
import time
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from runtime.modelproxy.control import control_app
from runtime.modelproxy.door import DoorStopped
from runtime.modelproxy.prices import TABLE, PriceList, Prices

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TURN = "0123456789abcdef" * 2
JSON = {"content-type": "application/json"}


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
    transport = httpx2.ASGITransport(control_app(demo.doors, PriceList({}, demo=True)))
    async with httpx2.AsyncClient(transport=transport, base_url="http://control") as client:
        yield client


async def test_a_door_is_opened_used_and_closed_with_its_usage(
    demo: Any, control: httpx2.AsyncClient, asking: Any
) -> None:
    assert (await control.put(f"/turns/{TURN}", json=body())).status_code == 201
    assert (await control.put(f"/turns/{TURN}", json=body())).status_code == 409
    transport = httpx2.AsyncHTTPTransport(uds=str(demo.root / TURN / "model.sock"))
    async with httpx2.AsyncClient(transport=transport) as turn:
        body_bytes = json.dumps(asking("hello")).encode()
        sent = await turn.post("http://x/v1/messages", content=body_bytes, headers=JSON)
        assert sent.status_code == 200
        assert (await turn.get("http://x/")).status_code == 403
    closed = await control.delete(f"/turns/{TURN}")
    usage = closed.json()
    assert closed.status_code == 200
    assert (usage.pop("input_tokens") > 0, usage.pop("output_tokens") > 0) == (True, True)
    assert usage == {"requests": 1, "refused": 1, "request_bytes": len(body_bytes)}
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
        b'{"agent":' * 1800,
        json.dumps(body()).encode().replace(b'"deadline": 1', b'"deadline": NaN, "deadline": 1'),
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


async def test_a_body_that_does_not_come_to_its_end_is_400(
    demo: Any, control: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    import anyio

    monkeypatch.setattr("runtime.modelproxy.control.BODY_SECONDS", 0.02)

    async def endless() -> AsyncIterator[bytes]:
        yield b"{"
        await anyio.sleep_forever()

    with anyio.fail_after(5):
        answer = await control.put(f"/turns/{TURN}", content=endless())
    assert (answer.status_code, answer.json()["error"]) == (400, "bad-request")
    assert len(demo.doors) == 0


@pytest.mark.control("MODEL-04")
async def test_a_live_turn_whose_model_has_no_price_gets_no_door(
    live: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    (live.root / TURN).mkdir()
    transport = httpx2.ASGITransport(control_app(live.doors, PriceList({})))
    async with httpx2.AsyncClient(transport=transport, base_url="http://control") as client:
        answer = await client.put(f"/turns/{TURN}", json=body(model="claude-opus-9"))
        assert (answer.status_code, answer.json()["error"]) == (422, "no-price")
        assert "claude-opus-9" in answer.json()["detail"]
    assert len(live.doors) == 0
    assert not (live.root / TURN / "model.sock").exists()
    said = capsys.readouterr()
    assert "model_without_a_price" in said.out + said.err


@pytest.mark.control("MODEL-04")
@pytest.mark.parametrize(
    ("model", "asked", "prices"),
    [
        ("sonnet", "claude-sonnet-5-5", TABLE["claude-sonnet-5-5"]),
        ("opus", "claude-opus-5-5", TABLE["claude-opus-5-5"]),
        ("haiku", "claude-haiku-5-5", Prices(Decimal(7), Decimal(8))),
        ("claude-opus-5-5", "claude-opus-5-5", TABLE["claude-opus-5-5"]),
        ("claude-opus-9", "claude-opus-9", Prices(Decimal(1), Decimal(2))),
    ],
)
async def test_a_turn_reserves_and_settles_at_the_prices_of_its_own_model(
    live: Any, asking: Any, script: Any, model: str, asked: str, prices: Prices
) -> None:
    script({"text": "x", "usage": {"input_tokens": 1000, "output_tokens": 100}})
    own = {"claude-haiku-5-5": Prices(Decimal(7), Decimal(8))}
    (live.root / TURN).mkdir()
    control = control_app(live.doors, PriceList(own, Prices(Decimal(1), Decimal(2))))
    async with httpx2.AsyncClient(transport=httpx2.ASGITransport(control), base_url="http://x") as client:
        assert (await client.put(f"/turns/{TURN}", json=body(model=model))).status_code == 201
    transport = httpx2.AsyncHTTPTransport(uds=str(live.root / TURN / "model.sock"))
    async with httpx2.AsyncClient(transport=transport) as turn:
        answer = await turn.post("http://x/v1/messages", json=asking("Hello", model=asked))
        assert answer.status_code == 200
    (spent,) = (await live.books.days(time.strftime("%Y-%m-%d", time.gmtime()))).values()
    assert spent == 1000 * prices.input + 100 * prices.output


async def test_a_turn_that_is_closed_while_its_door_opens_is_409(
    demo: Any, control: httpx2.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stopped(_door: Any) -> None:
        raise DoorStopped

    monkeypatch.setattr(demo.doors, "open", stopped)
    answer = await control.put(f"/turns/{TURN}", json=body())
    assert (answer.status_code, answer.json()["error"]) == (409, "closed-turn")
