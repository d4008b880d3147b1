"""The model proxy as it serves, until it is told to end: ledger, what answers (demo or live), doors, control.

In order: settings, ledger, key, what answers, stale sockets, `ops`, control. The first that fails ends the
process with its exit code; nothing listens before all of them held.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import structlog

from runtime import log as logging_setup
from runtime.errors import ConfigError, GatehouseError, HostError
from runtime.modelproxy.books import Books
from runtime.modelproxy.control import control_app
from runtime.modelproxy.demo import Demo
from runtime.modelproxy.doors import Doors, remove_stale
from runtime.modelproxy.key import read_key
from runtime.modelproxy.ledger import utc_day
from runtime.modelproxy.metrics import Metrics
from runtime.modelproxy.preconditions import MICRO, daily, open_ledger, refuse_quiet_demo
from runtime.modelproxy.settings import Settings, read_settings
from runtime.modelproxy.upstream import Upstream
from runtime.ops import serving_ops
from runtime.serving import serving

if TYPE_CHECKING:
    from runtime.modelproxy.key import Key

SERVICE = "modelproxy"

log = structlog.get_logger(SERVICE)


def live(settings: Settings, key: Key) -> Upstream:
    """Build the live backend. Raises HostError when the CA file cannot be used."""
    if settings.upstream_is_clear_text:
        log.warning("upstream_in_clear_text", hint="the key travels unencrypted to MODEL_UPSTREAM_URL")
    return Upstream(
        settings.upstream_url,
        key,
        auth_header=settings.auth_header,
        ca_file=settings.ca_file,
        proxy_from_environment=settings.proxy_from_environment,
    )


async def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises GatehouseError when it cannot start."""
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    key = read_key(settings.key_file)
    demo = key is None or settings.model == "demo"
    metrics = Metrics()
    async with contextlib.AsyncExitStack() as stack:
        ledger = open_ledger(settings)
        books = Books(ledger)
        stack.callback(books.close)
        backend: Demo | Upstream
        if key is None or demo:
            refuse_quiet_demo(settings, ledger)
            backend = Demo()
        else:
            backend = await stack.enter_async_context(live(settings, key))
            await books.mark_live()
        stale = remove_stale(settings.doors)
        doors = Doors(settings.doors, backend, books, metrics)

        async def health() -> str | None:
            await books.spent("")
            return None

        async def status() -> dict[str, Any]:
            day = utc_day(time.time())
            today = await books.days(day)
            return {
                "demo": demo,
                "doors": len(doors),
                "day": day,
                "spent_today_usd": {agent: micro / MICRO for agent, micro in today.items()},
                "daily_limit_usd": daily(settings) / MICRO,
            }

        await stack.enter_async_context(serving_ops(SERVICE, health, status, metrics.registry, settings.ops))
        control = control_app(doors, settings.price_list(demo=demo))
        await stack.enter_async_context(
            serving(control, settings.control_socket, mode=0o660, grace_seconds=2)
        )
        stack.push_async_callback(doors.close_all)
        log.info("started", model="demo" if demo else "live", stale_sockets_removed=stale)
        await stop.wait()
        log.info("stopping", doors=len(doors))


def run() -> int:
    """Serve until SIGTERM or SIGINT; return the exit code (docs/reference/exit-codes.md)."""
    logging_setup.configure(SERVICE)
    try:
        asyncio.run(serve(read_settings(os.environ)))
    except ConfigError as error:
        log.error("cannot_start", code=error.code, reason=str(error))  # noqa: TRY400  a mistake, not a bug
        return error.exit_code
    except GatehouseError as error:
        log.error("cannot_start", code=error.code, reason=error.sentence, mend=error.hint)  # noqa: TRY400  as above
        return error.exit_code
    except OSError as error:
        log.error("cannot_start", code="host-not-ready", reason=str(error))  # noqa: TRY400  as above
        return HostError.exit_code
    return 0
