"""What must hold before the model proxy starts: its settings, key, ledger and certificates.

`./gatehouse up` asks it before it touches a stack that runs, so nothing here needs a server or a client.
"""

from __future__ import annotations

import contextlib
import sqlite3
from typing import TYPE_CHECKING

from runtime.errors import HostError, SecretError
from runtime.modelproxy.certificates import trust
from runtime.modelproxy.key import read_key
from runtime.modelproxy.ledger import Ledger
from runtime.modelproxy.settings import Settings, read_settings

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

MICRO = 1_000_000


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
    """Raise the GatehouseError that a start in `environ` would end with; starts and makes nothing."""
    settings = read_settings(environ)
    key = read_key(settings.key_file)
    if (key is None or settings.model == "demo") and ledger_file(settings).exists():
        with contextlib.closing(open_ledger(settings)) as ledger:
            refuse_quiet_demo(settings, ledger)
    trust(settings.ca_file)
