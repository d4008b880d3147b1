"""Turn path 1/13: every route and middleware, listed once, in order.

    POST /                              A2A over JSON-RPC, dialects 1.0 and 0.3
    GET  /.well-known/agent-card.json   the card
    GET  /.well-known/agent.json        the same bytes
    GET  /.well-known/security.txt      where to report a weakness, when the instance says it
    GET  /health                        {"status":"ok","agent":"<id>"}, nothing else
    GET  /ready                         {"status":"ready"} or "not-ready", "demo": true, "sandbox": "none"

`python -m runtime.server --agent NAME` serves one instance on a TCP port of the loopback address; with
`--sockets` it serves the two Unix sockets of the deployment, where it has no network at all (architecture
§2). With `--sandbox none` turns run without a container, on the operator's own machine alone
(runtime/unsandboxed, which is in no image).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import errno
import functools
import importlib
import logging
import os
import socket
import sys
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import structlog
import uvicorn
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.routes.common import DefaultServerCallContextBuilder
from prometheus_client import CollectorRegistry
from sse_starlette.sse import EventSourceResponse
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.responses import JSONResponse
from starlette.routing import Route

from runtime import layout
from runtime.agents.instance import load_instance
from runtime.errors import GatehouseError, HostError, PortInUse, UsageError
from runtime.front import card, security_txt
from runtime.front.current import Current, served
from runtime.front.executor import VISITOR_STATE, TurnExecutor
from runtime.front.forget import Forget, sweep
from runtime.front.handler import FrontRequestHandler
from runtime.front.identity import Identity
from runtime.front.loopback import LoopbackHosts
from runtime.front.memory import Memory
from runtime.front.presence import GONE, Presence
from runtime.front.readiness import Readiness, Spawner
from runtime.front.reload import Reload
from runtime.front.settings import FrontSettings, read_settings
from runtime.front.tasks import BoundedTaskStore
from runtime.front.wire import (
    NO_STORE,
    RAW_SECURITY_HEADERS,
    SECURITY_HEADERS,
    VISITOR,
    HeadBounds,
    Origins,
    RequestGate,
    SecurityHeaders,
    plain_error,
)
from runtime.log import configure
from runtime.ops import serving_ops
from runtime.serving import QuietServer, bind, deadline_protocol
from runtime.turn import ending
from runtime.turn.receipt import Receipts
from runtime.turn.runner import Runner, SandboxRunner
from runtime.turn.sandboxed import refuse_unsandboxed_settings

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping, Sequence

    from a2a.server.context import ServerCallContext
    from starlette.requests import Request
    from starlette.responses import Response

    from runtime.agents.definition import AgentDefinition

PING_SECONDS = 3  # the official Python client gives up after 5 s of silence
STREAM_GRACE_SECONDS = 8.0
STOP_SECONDS = 10
LOCAL_MODE = 0o660  # the ingress is in the group
TUNNEL_MODE = 0o666  # cloudflared's image has a user of its own; the volume is the gate

UNSANDBOXED = "runtime.unsandboxed"

log = structlog.get_logger("front")


class TurnService(Runner, Spawner, Protocol):
    """Who runs the turns and can say what it serves: SandboxRunner, or its like without a sandbox."""

    async def aclose(self) -> None:
        """Let go of everything. Running turns must have ended."""
        ...


class VisitorContext(DefaultServerCallContextBuilder):
    """Gives each call its visitor's HMAC and whether its client is still there, as the scope has them."""

    def build(self, request: Request) -> ServerCallContext:
        """Build the SDK's call context of a request."""
        context = super().build(request)
        context.state[VISITOR_STATE] = request.scope[VISITOR]  # what did not pass the gate ends here
        context.state[GONE] = request.scope.get(GONE)
        return context


def build_app(
    agent: AgentDefinition,
    runner: Runner,
    readiness: Readiness,
    *,
    registry: CollectorRegistry | None = None,
    identity: Identity | None = None,
    executor_options: Mapping[str, Any] | None = None,
    sandboxed: bool = True,
    settings: FrontSettings | None = None,
) -> Starlette:
    """Return the app that serves one agent at `/`.

    `runner` runs the turns; `readiness` answers `/ready` and says whether the demo model does.
    `app.state.executor` is there to be drained before the server stops, `app.state.current` (a Current) to be
    swapped at a reload, `app.state.forget` (a Forget) for operators. `registry` takes the metrics. Where
    turns are not `sandboxed`, `/ready` says so and only requests to this very machine are answered.
    """
    EventSourceResponse.DEFAULT_PING_INTERVAL = PING_SECONDS
    logging.getLogger("a2a").setLevel(logging.CRITICAL)  # its tracebacks hold visitors' texts
    settings = settings or FrontSettings()
    identity = identity or Identity(forwarded_from=settings.forwarded_from)
    current = Current(served(agent, readiness.digest))
    memory = Memory(
        agent.limits.max_contexts,
        agent.limits.max_turns,
        max_bytes=settings.store_bytes,
        max_age_seconds=settings.memory_age_seconds,
    )
    current.follow(lambda now: memory.bound(now.agent.limits.max_contexts, now.agent.limits.max_turns))
    current.follow(lambda now: readiness.expect(now.digest, now.pack))
    executor = TurnExecutor(
        current,
        runner,
        memory,
        identity,
        Receipts(agent.id, identity.receipt_key, registry or CollectorRegistry()),
        **{
            "waiting_max": settings.max_waiting,
            "stop_grace_seconds": settings.stop_grace_seconds,
            **(executor_options or {}),
        },
    )
    store = BoundedTaskStore(settings.max_tasks, settings.task_age_seconds, max_bytes=settings.store_bytes)
    handler = FrontRequestHandler(
        agent_executor=executor,
        task_store=store,
        agent_card=card.agent_card(agent, demo=False),  # it reads the capabilities, which no reload changes
        readers_max=settings.max_readers,
        streams_max=settings.max_streams,
    )
    card_endpoint = card.CardEndpoint(current, lambda: readiness.demo)

    async def health(_request: Request) -> Response:
        return JSONResponse({"status": "ok", "agent": agent.id})

    async def ready(_request: Request) -> Response:
        reason = "stopping" if executor.stopping else await readiness.ask()
        body: dict[str, Any] = {"status": "ready" if reason is None else "not-ready"}
        if readiness.demo:
            body["demo"] = True
        if not sandboxed:
            body["sandbox"] = "none"
        return JSONResponse(body, status_code=200 if reason is None else 503)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncGenerator[None]:
        refreshing = asyncio.create_task(readiness.keep_fresh())
        sweeping = asyncio.create_task(sweep(memory, store))
        yield
        refreshing.cancel()
        sweeping.cancel()
        if not executor.stopping:
            await executor.drain()
        await handler.aclose()

    app = Starlette(
        routes=[
            Route("/health", health, methods=["GET"]),
            Route("/ready", ready, methods=["GET"]),
            *(Route(path, card_endpoint.get, methods=["GET"]) for path in card.PATHS),
            Route(security_txt.PATH, security_txt.SecurityTxt(current).get, methods=["GET"]),
            *create_jsonrpc_routes(
                handler,
                rpc_url="/",
                context_builder=VisitorContext(),
                enable_v0_3_compat=True,
                shutdown_grace_period=STREAM_GRACE_SECONDS,
            ),
        ],
        middleware=[
            Middleware(SecurityHeaders),
            Middleware(HeadBounds, settings),
            *([] if sandboxed else [Middleware(LoopbackHosts, lambda: current.agent.network.cors_origins)]),
            Middleware(Origins, current),
            Middleware(RequestGate, current, identity, settings),
            Middleware(Presence),
        ],
        exception_handlers={HTTPException: _refused, Exception: _failed},
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False  # a redirect would be built from the visitor's Host
    app.state.executor = executor
    app.state.current = current
    app.state.forget = Forget(executor, handler, memory, store)
    return app


async def _refused(_request: Request, refused: Exception) -> Response:
    """Answer a path that is not there (404) or is not asked so (405); nothing runs there, REST among it."""
    if not isinstance(refused, HTTPException):
        raise refused
    answer = plain_error(refused.status_code, HTTPStatus(refused.status_code).phrase)
    answer.headers.update(refused.headers or {})
    return answer


async def _failed(_request: Request, _failure: Exception) -> Response:
    """Answer what a bug of ours left unanswered. It stands outside of all middlewares."""
    answer = plain_error(500, HTTPStatus.INTERNAL_SERVER_ERROR.phrase)
    answer.headers.update(SECURITY_HEADERS)
    return answer


def server_config(app: Starlette, settings: FrontSettings | None = None) -> uvicorn.Config:
    """Return how the front speaks HTTP: its limits on connections, and nothing said about itself."""
    settings = settings or FrontSettings()
    return uvicorn.Config(
        app,
        http=deadline_protocol(
            head_seconds=settings.head_seconds,
            unread_seconds=settings.unread_seconds,
            connections_max=settings.max_connections,
            said_always=(*RAW_SECURITY_HEADERS, NO_STORE),
        ),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=settings.head_max_bytes,
        timeout_keep_alive=settings.keep_alive_seconds,
        timeout_graceful_shutdown=STOP_SECONDS,
    )


async def serve(
    agent: AgentDefinition,
    digest: str,
    runner: TurnService,
    listeners: Sequence[socket.socket],
    *,
    ops: bool,
    load: Callable[[], AgentDefinition] | None = None,
    sandboxed: bool = True,
    settings: FrontSettings | None = None,
) -> None:
    """Serve an agent on bound sockets until a signal asks it to end, then let its turns end and close.

    A second signal ends the turns that run at once.

    `digest` is what the spawner must have loaded. `load` reads the instance anew, for the reload that an
    operator asks on the ops socket. Raises ServiceUnreachable or DefinitionMismatch before the first request
    is taken.
    """
    stop, hurry = asyncio.Event(), asyncio.Event()

    def end() -> None:
        (hurry if stop.is_set() else stop).set()

    ending.hear(end)
    registry = CollectorRegistry()
    readiness = Readiness(runner, agent.id, digest)
    app = build_app(agent, runner, readiness, registry=registry, sandboxed=sandboxed, settings=settings)
    executor: TurnExecutor = app.state.executor
    current: Current = app.state.current

    async def status() -> dict[str, Any]:
        await readiness.ask()
        return {
            "agent": agent.id,
            "digest": readiness.digest,
            "spawner_digest": readiness.spawner_digest,
            "pack": readiness.pack,
            "demo": readiness.demo,
            "reason": readiness.reason,
            "running": executor.running,
            "loaded_at": current.now.loaded_at,
        }

    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(runner.aclose)
        if ops:
            reload = Reload(current, runner, load) if load is not None else None
            await stack.enter_async_context(
                serving_ops("front", readiness.ask, status, registry, reload=reload, forget=app.state.forget)
            )
        waiting = asyncio.create_task(readiness.wait())
        stopping = asyncio.create_task(stop.wait())
        await asyncio.wait({waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.done():
            waiting.cancel()
            return
        await waiting
        server = QuietServer(server_config(app, settings))
        serving = asyncio.create_task(server.serve(sockets=list(listeners)))
        log.info(
            "serving",
            agent=agent.id,
            name=agent.card.name,
            at=[str(listener.getsockname()) for listener in listeners],
            public_url=agent.card.public_url,
            cors_origins=list(agent.network.cors_origins),
            demo=readiness.demo,
        )
        await asyncio.wait({serving, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not sandboxed:
            hurry.set()  # who ends it is its author, and waits at a terminal
        await executor.drain(hurry)
        server.should_exit = True
        stopping.cancel()
        await serving


def listen_tcp(host: str, port: int) -> socket.socket:
    """Listen on a TCP address. Raises PortInUse, or HostError when the address cannot be listened on."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        listener = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        if isinstance(error, socket.gaierror) or error.errno is None:
            raise HostError(f"The address {host} is not one of this host.", "use --host 127.0.0.1") from error
        if error.errno == errno.EADDRINUSE:
            raise PortInUse(
                f"Port {port} on {host} is taken.", "stop what uses it, or choose --port"
            ) from error
        raise HostError(
            f"Cannot listen on {host}:{port}: {error.strerror}.", "use another --host or --port"
        ) from error
    # asyncio sets it only where a socket names its protocol, and this one does not. Without it head and body,
    # two writes of uvicorn's, cost every answer the 40 ms of a delayed acknowledgement (seen).
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def listen_unix() -> list[socket.socket]:
    """Listen on the deployment's two sockets. Raises HostError when a socket cannot be made there."""
    listeners: list[socket.socket] = []
    for path, mode in ((layout.FRONT_LOCAL_SOCKET, LOCAL_MODE), (layout.FRONT_TUNNEL_SOCKET, TUNNEL_MODE)):
        try:
            listeners.append(bind(path, mode))
        except OSError as error:
            for listener in listeners:
                listener.close()
            raise HostError(
                f"Cannot listen on {path}: {error.strerror or error}.", "check its volume"
            ) from error
    return listeners


def arguments(argv: Sequence[str]) -> argparse.Namespace:
    """Read the command line; exits with 2 on wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m runtime.server", description="Serves one agent over A2A."
    )
    parser.add_argument("--agent", required=True, metavar="NAME", help="instance folder below instances/")
    parser.add_argument("--host", help="address to listen on (default: the instance's, 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on (default: the instance's, 8011)")
    parser.add_argument(
        "--sockets", action="store_true", help="serve the deployment's Unix sockets instead of a port"
    )
    parser.add_argument(
        "--sandbox",
        choices=("docker", "none"),
        default="docker",
        help="`none` runs turns without a container, as you, on this machine alone: never for visitors",
    )
    parser.add_argument("--model", metavar="MODEL", help="alias or id of the model (with --sandbox none)")
    parser.add_argument("--spawn-socket", type=Path, default=layout.SPAWN_SOCKET, help="the spawner's socket")
    parser.add_argument("--root", type=Path, help="the folder that holds instances/")
    return parser.parse_args(argv)


def unsandboxed() -> Any:
    """Return the module that serves turns without a sandbox. Raises UsageError where it is not installed.

    Imported by name, because no image holds it: what an image is made of follows from the imports that can be
    read (tests/contract/test_image_files.py).
    """
    try:
        return importlib.import_module(f"{UNSANDBOXED}.serving")
    except ModuleNotFoundError as error:
        if error.name != UNSANDBOXED:
            raise
        raise UsageError(
            "This image runs turns in the sandbox only.", "run --sandbox none from a checkout"
        ) from error


def run(options: argparse.Namespace, environ: Mapping[str, str]) -> None:
    """Load the instance and serve it. Raises GatehouseError for every failure that has a name."""
    sockets = options.sockets or environ.get("GATEHOUSE_SOCKETS") == "1"
    if sockets and (options.host or options.port):
        raise UsageError("--host and --port have no meaning with --sockets.", "leave them out")
    if options.port is not None and not 0 <= options.port <= 65535:
        raise UsageError(f"There is no port {options.port}.", "use a number from 1 to 65535")
    if options.sandbox == "none":
        if sockets:
            raise UsageError("--sandbox none serves no sockets of the stack.", "leave one of the two out")
        unsandboxed().serve(options, environ)
        return
    refuse_unsandboxed_settings(environ, model=options.model)
    settings = read_settings(environ)
    root = options.root or (layout.ROOT if layout.INSTANCES.is_dir() else Path(__file__).parents[1])
    load = functools.partial(load_instance, root, options.agent, environ, check_sources=False)
    agent = load()
    digest = agent.digest  # as the spawner has it: the flags below reach this process alone
    if options.host or options.port is not None:
        flags = {"AGENT_HOST": options.host, "AGENT_PORT": options.port}
        given = {key: str(value) for key, value in flags.items() if value is not None}
        agent = load_instance(root, options.agent, {**environ, **given}, check_sources=False)
    listeners = listen_unix() if sockets else [listen_tcp(agent.network.host, agent.network.port)]
    try:
        runner = SandboxRunner(options.spawn_socket)
        asyncio.run(serve(agent, digest, runner, listeners, ops=sockets, load=load, settings=settings))
    finally:
        for listener in listeners:
            listener.close()


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run the front and return its exit code (docs/reference/exit-codes.md)."""
    options = arguments(argv)
    configure("front")
    try:
        run(options, environ)
    except GatehouseError as error:
        sys.stderr.write(error.report())
        return error.exit_code
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
