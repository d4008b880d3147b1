"""Run the model proxy: `python -m runtime.modelproxy`, configured by its environment (`settings.py`).

With `--check` it starts nothing: it says on stderr what would keep it from starting, with the same exit code.

In order: settings, ledger, key, what answers (demo or live), stale sockets, `ops`, control. The first that
fails ends the process with its exit code; nothing listens before all of them held.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import sqlite3
import ssl
import sys
import time
from typing import TYPE_CHECKING, Any

import structlog

from runtime import log as logging_setup
from runtime.errors import ConfigError, GatehouseError, HostError, SecretError
from runtime.modelproxy.books import Books
from runtime.modelproxy.control import control_app
from runtime.modelproxy.demo import Demo
from runtime.modelproxy.doors import Doors, remove_stale
from runtime.modelproxy.key import read_key
from runtime.modelproxy.ledger import Ledger, utc_day
from runtime.modelproxy.metrics import Metrics
from runtime.modelproxy.settings import Settings, read_settings
from runtime.modelproxy.upstream import Upstream, trust
from runtime.ops import serving_ops
from runtime.serving import serving

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from runtime.modelproxy.key import Key

SERVICE = "modelproxy"
MICRO = 1_000_000

log = structlog.get_logger(SERVICE)


def ledger_file(settings: Settings) -> Path:
    """Return where the ledger is."""
    return settings.state / "ledger.sqlite3"


def open_ledger(settings: Settings) -> Ledger:
    """Open the ledger. Raises HostError when its folder or file cannot be used."""
    path = ledger_file(settings)
    try:
        return Ledger(path, daily(settings))
    except (sqlite3.Error, OSError) as error:
        raise HostError(f"the ledger {path} cannot be opened: {error}", "check the state volume") from None


def daily(settings: Settings) -> int:
    """Return the daily cap in micro-USD."""
    return int(settings.daily_usd * MICRO)


def refuse_quiet_demo(settings: Settings, ledger: Ledger) -> None:
    """Raise SecretError when a stack that has run live would now answer from the demo unasked."""
    if settings.model != "demo" and ledger.has_run_live():
        raise SecretError(
            f"the model key file {settings.key_file} is empty, but this stack has answered from a real model",
            "put the key back, or set MODEL=demo",
        )


def check(environ: Mapping[str, str]) -> None:
    """Raise the GatehouseError that a start in `environ` would end with; starts and makes nothing.

    `./gatehouse up` asks this before it touches a stack that runs.
    """
    settings = read_settings(environ)
    key = read_key(settings.key_file)
    if (key is None or settings.model == "demo") and ledger_file(settings).exists():
        with contextlib.closing(open_ledger(settings)) as ledger:
            refuse_quiet_demo(settings, ledger)
    try:
        trust(settings.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise unusable_certificates(settings, error) from None


def unusable_certificates(settings: Settings, error: Exception) -> HostError:
    """Return what is said of a CA file that cannot be used."""
    return HostError(f"the certificates in {settings.ca_file} cannot be used: {error}", "give a PEM file")


def live(settings: Settings, key: Key) -> Upstream:
    """Build the live backend. Raises HostError when the CA file cannot be used."""
    if settings.upstream_is_clear_text:
        log.warning("upstream_in_clear_text", hint="the key travels unencrypted to MODEL_UPSTREAM_URL")
    try:
        return Upstream(
            settings.upstream_url,
            key,
            auth_header=settings.auth_header,
            ca_file=settings.ca_file,
            proxy_from_environment=settings.proxy_from_environment,
        )
    except (OSError, ssl.SSLError) as error:
        raise unusable_certificates(settings, error) from None


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


def main(argv: Sequence[str] = ()) -> int:
    """Run, or with `--check` say whether a start would go through; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m runtime.modelproxy", allow_abbrev=False)
    parser.add_argument("--check", action="store_true", help="say what would keep it from starting")
    if parser.parse_args(argv).check:
        try:
            check(os.environ)
        except GatehouseError as error:
            sys.stderr.write(error.report())
            return error.exit_code
        return 0
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


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
