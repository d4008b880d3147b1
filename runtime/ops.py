"""What operators may ask a service: `/health`, `/status` and `/metrics` on `ops/<service>.sock`.

Why a socket of its own: detail and metrics name reasons, counts and digests that no visitor may read
(architecture §9), so they live on a volume that neither ingress nor tunnel mounts.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from runtime import layout
from runtime.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from starlette.requests import Request

    Health = Callable[[], Awaitable[str | None]]
    Status = Callable[[], Awaitable[dict[str, Any]]]


def ops_app(service: str, health: Health, status: Status, registry: CollectorRegistry) -> Starlette:
    """Build the ops app of `service`.

    `health` returns None when the service can do its work, else the reason in one sentence (answered as 503).
    `status` returns the detail as a JSON object. `registry` holds the service's metrics.
    """

    async def get_health(_request: Request) -> Response:
        reason = await health()
        if reason is None:
            return JSONResponse({"status": "ok", "service": service})
        return JSONResponse({"status": "not-ready", "service": service, "reason": reason}, status_code=503)

    async def get_status(_request: Request) -> Response:
        return JSONResponse({"service": service} | await status())

    async def get_metrics(_request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    return Starlette(
        routes=[
            Route("/health", get_health),
            Route("/status", get_status),
            Route("/metrics", get_metrics),
        ]
    )


def ops_socket(service: str, folder: Path = layout.OPS) -> Path:
    """Return where the ops socket of `service` is."""
    return folder / f"{service}.sock"


@contextlib.asynccontextmanager
async def serving_ops(
    service: str,
    health: Health,
    status: Status,
    registry: CollectorRegistry,
    folder: Path = layout.OPS,
) -> AsyncGenerator[None, None]:
    """Serve the ops app of `service` inside the `async with`, for its own uid and group only."""
    app = ops_app(service, health, status, registry)
    async with serving(app, ops_socket(service, folder), mode=0o660, grace_seconds=1):
        yield
