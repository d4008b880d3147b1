"""Ask the real Messages API: the one HTTP client that carries the key, and the headers it sends.

Request headers are built here, not copied: nothing a turn sends as a header reaches the upstream but the beta
names that the pinned CLI was recorded to use. No redirect is followed (the key would travel with it), no
proxy is taken from the environment unless a setting says so, TLS is verified.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, Self

import httpx2

from runtime.modelproxy.backend import Ask, Reply, UpstreamError
from runtime.modelproxy.certificates import trust

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator
    from pathlib import Path
    from typing import Literal

    from runtime.modelproxy.key import Key

VERSION: Final = "2023-06-01"
CONNECT_SECONDS: Final = 5.0
IDLE_SECONDS: Final = (
    60.0  # between two reads, and until the status line; the door's deadline bounds the whole
)
CONNECTIONS: Final = 64

BETAS: Final = frozenset(
    {
        "claude-code-20250219",
        "context-management-2025-06-27",
        "effort-2025-11-24",
        "interleaved-thinking-2025-05-14",
        "per-turn-control-2026-07-01",
        "thinking-display-updates-2026-08-18",
        "thinking-token-count-2026-05-13",
        "token-counting-2024-11-01",
    }
)
"""Every beta name that the pinned CLI was recorded to send; a test compares it with the recordings."""


def known_betas(headers: list[tuple[bytes, bytes]]) -> tuple[str, ...]:
    """Return the recorded betas that a request names, in its order, once each."""
    names = (
        name.strip()
        for key, value in headers
        if key == b"anthropic-beta"
        for name in value.decode("latin-1").split(",")
    )
    return tuple(dict.fromkeys(name for name in names if name in BETAS))


class Upstream:
    """The live backend. Use it as an async context manager: leaving it closes the connections."""

    demo = False

    def __init__(
        self,
        url: str,
        key: Key,
        *,
        auth_header: Literal["x-api-key", "bearer"] = "x-api-key",
        ca_file: Path | None = None,
        proxy_from_environment: bool = False,
    ) -> None:
        self._url = url
        self._key = key
        self._auth = key.header(auth_header)
        self._client = httpx2.AsyncClient(
            verify=trust(ca_file),
            trust_env=proxy_from_environment,
            follow_redirects=False,
            timeout=httpx2.Timeout(IDLE_SECONDS, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=CONNECTIONS, max_keepalive_connections=16),
        )

    async def __aenter__(self) -> Self:
        await self._client.__aenter__()
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self._client.aclose()

    def leaks(self, data: bytes) -> bool:
        """Whether `data` holds the key."""
        return self._key.occurs_in(data)

    @contextlib.asynccontextmanager
    async def ask(self, request: Ask) -> AsyncGenerator[Reply, None]:
        """Send one request and yield the reply as soon as its head is there."""
        query = f"?{request.query}" if request.query else ""
        outgoing = httpx2.Request(
            "POST", f"{self._url}{request.path}{query}", headers=self._headers(request), content=request.body
        )
        try:
            response = await self._client.send(outgoing, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout):
            raise UpstreamError("no connection", sent=False, again=True) from None
        except (httpx2.RemoteProtocolError, httpx2.ReadError, httpx2.WriteError):
            raise UpstreamError("connection lost", sent=True, again=True) from None
        except (httpx2.HTTPError, httpx2.InvalidURL):
            raise UpstreamError("no answer", sent=True) from None
        try:
            if response.headers.get("content-encoding", "identity") != "identity":
                raise UpstreamError("compressed answer", sent=True)
            media_type = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            yield Reply(response.status_code, media_type, _chunks(response))
        finally:
            await response.aclose()

    def _headers(self, request: Ask) -> list[tuple[bytes, bytes]]:
        headers = [
            (b"accept", b"text/event-stream" if request.stream else b"application/json"),
            (b"accept-encoding", b"identity"),
            (b"anthropic-version", VERSION.encode()),
            (b"content-type", b"application/json"),
            (b"user-agent", b"gatehouse"),
            self._auth,
        ]
        if request.betas:
            headers.append((b"anthropic-beta", ",".join(request.betas).encode()))
        return headers


async def _chunks(response: httpx2.Response) -> AsyncIterator[bytes]:
    try:
        async for chunk in response.aiter_raw():
            yield chunk
    except (httpx2.HTTPError, httpx2.StreamError):
        raise UpstreamError("answer broke off", sent=True) from None
