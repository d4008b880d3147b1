"""The spawner as it serves: engine, doors and clocks, until it is told to end; then it ends every turn."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING

import structlog

from runtime import log as logs
from runtime.agents.instance import load_instance
from runtime.errors import GatehouseError, HostError
from runtime.ops import serving_ops
from runtime.serving import serving
from runtime.spawner.cli_call import MODEL_OUTPUT_TOKENS, MODEL_REQUESTS
from runtime.spawner.doors import Doors
from runtime.spawner.engine import Engine
from runtime.spawner.server import spawner_app
from runtime.spawner.service import Spawner
from runtime.spawner.settings import Paths, start_settings

if TYPE_CHECKING:
    from runtime.spawner.settings import Settings

SERVICE = "spawner"
CONNECTIONS = 160  # as many as the front opens; 320 KiB of request each at the most


async def serve(settings: Settings, paths: Paths, stop: asyncio.Event) -> None:
    """Run the spawner until `stop` is set. Raises the GatehouseError of what it lacks."""
    engine = Engine(settings.docker_socket)
    doors = Doors(paths.doors, paths.model_control_socket, MODEL_REQUESTS, MODEL_OUTPUT_TOKENS, paths.group)
    environ = dict(os.environ)
    spawner = Spawner(settings, paths, engine, doors, lambda name: load_instance(paths.root, name, environ))

    async def health() -> str | None:
        return spawner.health

    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(engine.close)
        stack.push_async_callback(doors.close)
        await stack.enter_async_context(
            serving_ops(
                SERVICE,
                health,
                spawner.status,
                spawner.metrics.registry,
                paths.ops,
                status_with_stale=spawner.status_with_stale,
                reload=spawner.reload,
            )
        )
        await stack.enter_async_context(
            serving(spawner_app(spawner), paths.spawn_socket, connections=CONNECTIONS)
        )
        await spawner.prepare()
        reaping = asyncio.create_task(spawner.keep_reaping())
        sweeping = asyncio.create_task(spawner.keep_sweeping())
        stopping = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({reaping, sweeping, stopping}, return_when=asyncio.FIRST_COMPLETED)
            for clock in (reaping, sweeping):  # without them nothing clears up what a crash leaves behind
                if clock.done():
                    clock.result()
        finally:
            for task in (reaping, sweeping, stopping):
                task.cancel()
            await spawner.shutdown()


async def _until_signal() -> None:
    settings = start_settings(os.environ)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await serve(settings, Paths(), stop)


def run() -> int:
    """Serve until SIGTERM or SIGINT; return the exit code (docs/reference/exit-codes.md)."""
    logs.configure(SERVICE)
    try:
        asyncio.run(_until_signal())
    except GatehouseError as error:
        structlog.get_logger().error("spawner-stopped", code=error.code, reason=str(error))
        return error.exit_code
    except OSError as error:
        structlog.get_logger().error("spawner-stopped", code=HostError.code, reason=str(error))
        return HostError.exit_code
    return 0
