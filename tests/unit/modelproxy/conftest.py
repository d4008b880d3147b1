from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import secrets
import shutil
import socket
import ssl
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
import uvicorn

from runtime.modelproxy.books import Books
from runtime.modelproxy.demo import Demo
from runtime.modelproxy.door import Door
from runtime.modelproxy.doors import Doors
from runtime.modelproxy.grammar import Terms
from runtime.modelproxy.key import Key
from runtime.modelproxy.ledger import Ledger, Limits
from runtime.modelproxy.metrics import Metrics
from runtime.modelproxy.prices import FREE, TABLE
from runtime.modelproxy.upstream import Upstream

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator

    from starlette.types import ASGIApp

    from runtime.modelproxy.backend import Backend
    from runtime.modelproxy.prices import Prices

NO_TLS = ssl.create_default_context()  # made once: loading the authorities takes longer than a test
KEY = b"sk-ant-test-0000-planted"
SONNET = "claude-sonnet-5-5"
RECORDED = Path(__file__).parent / "recorded"


def _load(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


scripted = _load("scripted_model", Path(__file__).parents[2] / "scripted" / "model.py")


@contextlib.asynccontextmanager
async def serving_tcp(app: ASGIApp) -> AsyncGenerator[str, None]:
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none", timeout_graceful_shutdown=1)
    server = uvicorn.Server(config)
    server.capture_signals = contextlib.nullcontext  # type: ignore[method-assign,assignment]
    task = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.should_exit = True
        server.force_exit = True
        await task
        listener.close()


@dataclass
class Rig:
    """Doors over a backend, in a folder short enough for socket paths."""

    root: Path
    doors: Doors
    books: Books
    ledger: Ledger
    prices: Prices
    model: Any = None
    upstream_url: str = ""
    opened: list[str] = field(default_factory=list)

    async def open(self, **changes: Any) -> Door:
        turn = secrets.token_hex(16)
        (self.root / turn).mkdir()
        values: dict[str, Any] = {
            "turn": turn,
            "agent": "ada",
            "context": "c1",
            "terms": Terms(SONNET, "visitor-hmac", 4000),
            "prices": self.prices,
            "limits": Limits(8, 100_000, 4000),
            "body_bytes": 200_000,
            "deadline": time.time() + 60,
        }
        door = Door(**{**values, **changes})
        await self.doors.open(door)
        return door

    def socket(self, door: Door) -> Path:
        return self.root / door.turn / "model.sock"

    def client(self, door: Door) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=httpx2.AsyncHTTPTransport(uds=str(self.socket(door)), verify=NO_TLS),
            base_url="http://127.0.0.1:8787",
        )

    async def post(self, door: Door, body: Any, path: str = "/v1/messages?beta=true", **more: Any) -> Any:
        async with self.client(door) as client:
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            headers = {"content-type": "application/json", **more.pop("headers", {})}
            return await client.post(path, content=content, headers=headers, **more)


def ask(text: str = "Hello", **changes: Any) -> dict[str, Any]:
    body = {
        "model": SONNET,
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
        "max_tokens": 4000,
        "stream": True,
        **changes,
    }
    return {key: value for key, value in body.items() if value is not None}


@pytest.fixture
def folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="ghmp-"))
    yield path
    shutil.rmtree(path)


@contextlib.asynccontextmanager
async def rig_over(
    backend: Backend, folder: Path, *, prices: Prices = TABLE[SONNET], daily: int = 5_000_000
) -> AsyncGenerator[Rig, None]:
    ledger = Ledger(folder / "ledger.sqlite3", daily)
    books = Books(ledger)
    doors = Doors(folder, backend, books, Metrics())
    try:
        yield Rig(folder, doors, books, ledger, prices)
    finally:
        await doors.close_all()
        books.close()


@pytest.fixture
async def live(folder: Path) -> AsyncIterator[Rig]:
    """The proxy in front of the scripted model, with a made-up key."""
    model = scripted.ScriptedModel()
    async with (
        serving_tcp(scripted.application(model)) as url,
        Upstream(url, Key(KEY)) as backend,
        rig_over(backend, folder) as rig,
    ):
        rig.model = model
        rig.upstream_url = url
        yield rig


@pytest.fixture
async def demo(folder: Path) -> AsyncIterator[Rig]:
    """The proxy with the demo model."""
    async with rig_over(Demo(), folder, prices=FREE) as rig:
        yield rig


@pytest.fixture
def script(live: Rig) -> Any:
    """Set the steps that every request without a marker of its own plays."""

    def set_steps(*steps: dict[str, Any], marker: str = "Hello") -> None:
        live.model.scripts[marker] = scripted.Script(list(steps))

    return set_steps


@pytest.fixture
def asking() -> Any:
    return ask


@pytest.fixture
def rigs() -> Any:
    return rig_over


@pytest.fixture
def tcp() -> Any:
    return serving_tcp


@pytest.fixture
def recordings() -> dict[str, Any]:
    return {path.stem: json.loads(path.read_text(encoding="ascii")) for path in RECORDED.glob("*.json")}


@pytest.fixture
def key() -> bytes:
    return KEY
