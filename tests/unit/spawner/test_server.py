"""What the spawner's socket refuses of a body before it looks into it."""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

import anyio
import httpx2

from runtime.spawner.request import MAX_BODY_BYTES
from runtime.spawner.server import spawner_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import pytest

JSON = {"content-type": "application/json"}


async def posted(content: Any, headers: dict[str, str]) -> httpx2.Response:
    spawner: Any = types.SimpleNamespace(not_ready=None, health=None)  # nothing else of it may be asked
    transport = httpx2.ASGITransport(spawner_app(spawner))
    async with httpx2.AsyncClient(transport=transport, base_url="http://spawner") as client:
        with anyio.fail_after(5):
            return await client.post("/turns", content=content, headers=headers)


async def test_a_body_over_the_cap_is_400_though_it_never_ends() -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"x" * 65_536

    answer = await posted(endless(), JSON)
    assert (answer.status_code, answer.json()["detail"]) == (400, f"more than {MAX_BODY_BYTES} bytes")


async def test_a_body_that_comes_too_slowly_is_400(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runtime.spawner.server.BODY_SECONDS", 0.02)

    async def stalled() -> AsyncIterator[bytes]:
        yield b"{"
        await anyio.sleep_forever()

    answer = await posted(stalled(), JSON)
    assert (answer.status_code, answer.json()["detail"]) == (400, "the body came too slowly")


async def test_another_content_type_is_400() -> None:
    answer = await posted(b"{}", {"content-type": "text/plain"})
    assert (answer.status_code, answer.json()["detail"]) == (400, "content-type is not application/json")
