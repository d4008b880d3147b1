"""What operators may ask a service on `ops/<service>.sock`: health, detail, metrics, to reload, to forget.

Why a socket of its own: detail and metrics name reasons, counts and digests that no visitor may read
(architecture §9), and to reload or to forget is the operator's alone, so they live on a volume that nobody
else mounts: no other service of the stack, taken over or not, can ask here.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import structlog
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from runtime import layout
from runtime.bodies import ClientGone, read_body
from runtime.errors import ConfigError, DefinitionMismatch, GatehouseError, UsageError
from runtime.serving import serving

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from pathlib import Path

    from starlette.requests import Request

    Health = Callable[[], Awaitable[str | None]]
    Detail = Callable[[], Awaitable[dict[str, Any]]]
    Forgetting = Callable[[bytes], Awaitable[dict[str, int]]]

FORGET_MAX_BYTES: Final = 64 * 1024  # more than any context id that a visitor's request may have
FORGET_SECONDS: Final = 10.0  # for the request's body

log = structlog.get_logger()


def ops_app(
    service: str,
    health: Health,
    status: Detail,
    registry: CollectorRegistry,
    *,
    status_with_stale: Detail | None = None,
    reload: Detail | None = None,
    forget: Forgetting | None = None,
) -> Starlette:
    """Build the ops app of `service`.

    `health` returns None when the service can do its work, else the reason in one sentence (answered as 503).
    `status` returns the detail as a JSON object; `status_with_stale` the same with what takes a while to find
    out, for `/status?stale=1` alone. `registry` holds the service's metrics. `reload` does what
    `POST /reload` asks and returns the answer; its GatehouseErrors become 422, 409 or 503. `forget` gets the
    body of a `POST /forget` and returns the answer; its UsageErrors become 400 and any others 503.
    """

    async def get_health(_request: Request) -> Response:
        reason = await health()
        if reason is None:
            return JSONResponse({"status": "ok", "service": service})
        return JSONResponse({"status": "not-ready", "service": service, "reason": reason}, status_code=503)

    async def get_status(request: Request) -> Response:
        asked = request.query_params.get("stale") == "1"
        detail = status_with_stale if asked and status_with_stale is not None else status
        return JSONResponse({"service": service} | await detail())

    async def get_metrics(_request: Request) -> Response:
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    routes = [
        Route("/health", get_health),
        Route("/status", get_status),
        Route("/metrics", get_metrics),
    ]
    if reload is not None:
        routes.append(Route("/reload", reloading(reload), methods=["POST"]))
    if forget is not None:
        routes.append(Route("/forget", forgetting(forget), methods=["POST"]))
    return Starlette(routes=routes)


def reloading(reload: Detail) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that asks for a reload and tells how it went."""

    async def post_reload(_request: Request) -> Response:
        try:
            return JSONResponse(await reload())
        except GatehouseError as error:
            log.warning("reload-failed", code=error.code, reason=str(error))
            body: dict[str, Any] = {"error": error.code}
            if isinstance(error, ConfigError):
                problems = [problem.as_json() for problem in error.problems]
                return JSONResponse(body | {"problems": problems}, status_code=422)
            status_code = 409 if isinstance(error, DefinitionMismatch) else 503
            return JSONResponse(body | {"detail": str(error)}, status_code=status_code)

    return post_reload


def forgetting(forget: Forgetting) -> Callable[[Request], Awaitable[Response]]:
    """Return the endpoint that has a conversation forgotten and tells what was."""

    async def post_forget(request: Request) -> Response:
        try:
            body = await read_body(request.receive, FORGET_MAX_BYTES, seconds=FORGET_SECONDS)
            if body.too_long:
                raise UsageError(f"The body is longer than {FORGET_MAX_BYTES} bytes.", "give one id")
            return JSONResponse(await forget(body.data))
        except (ClientGone, TimeoutError):
            gone = {"error": "usage", "detail": "The body did not come.", "mend": "ask again"}
            return JSONResponse(gone, status_code=408)
        except GatehouseError as error:
            log.warning("forget-failed", code=error.code, reason=str(error))
            status_code = 400 if isinstance(error, UsageError) else 503
            told = {"error": error.code, "detail": error.sentence, "mend": error.hint}
            return JSONResponse(told, status_code=status_code)

    return post_forget


def ops_socket(service: str, folder: Path = layout.OPS) -> Path:
    """Return where the ops socket of `service` is."""
    return folder / f"{service}.sock"


@contextlib.asynccontextmanager
async def serving_ops(
    service: str,
    health: Health,
    status: Detail,
    registry: CollectorRegistry,
    folder: Path = layout.OPS,
    *,
    status_with_stale: Detail | None = None,
    reload: Detail | None = None,
    forget: Forgetting | None = None,
) -> AsyncGenerator[None, None]:
    """Serve the ops app of `service` inside the `async with`, for its own uid and group only."""
    app = ops_app(
        service, health, status, registry, status_with_stale=status_with_stale, reload=reload, forget=forget
    )
    async with serving(app, ops_socket(service, folder), mode=0o660, grace_seconds=1):
        yield
