"""The front's own settings: the only place where it reads what bounds its wire and its stores.

One table gives name, default, limits, unit and meaning; docs/reference/front-settings.md is written from it
by `python -m runtime.front.settings`, and a test compares them. What an agent is comes from its instance
folder, and what one visitor's message may be is the agent's (`limits` in agent.yaml).
"""

from __future__ import annotations

import ipaddress
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runtime.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX: Final = "FRONT_"
PAGE: Final = "docs/reference/front-settings.md"
LOCAL_PROXY: Final = "local"
PROXIES_MAX: Final = 64
KIB: Final = 1024
MIB: Final = 1024 * KIB

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclass(frozen=True, slots=True)
class Forwarders:
    """Whose `X-Forwarded-For` is believed: proxies by address, and what comes over `local.sock`."""

    networks: tuple[Network, ...] = ()
    local: bool = False


@dataclass(frozen=True, slots=True)
class FrontSettings:
    """The settings, checked; see TABLE for the meanings. Sizes in bytes, times in seconds."""

    body_max_bytes: int = 0
    body_seconds: float = 15
    head_seconds: float = 10
    head_max_bytes: int = 16 * KIB
    head_max_count: int = 100
    unread_seconds: float = 30
    keep_alive_seconds: int = 20
    max_parts: int = 64
    max_depth: int = 32
    max_values: int = 2000
    max_connections: int = 600
    max_streams: int = 256
    max_readers: int = 4
    max_waiting: int = 4
    max_tasks: int = 1000
    task_age_seconds: int = 86_400
    memory_age_seconds: int = 86_400
    store_bytes: int = 64 * MIB
    stop_grace_seconds: int = 20
    forwarded_from: Forwarders = Forwarders()


@dataclass(frozen=True, slots=True)
class Setting:
    """One whole number: the field it fills, the least and the most it may be, unit and meaning."""

    field: str
    low: int
    high: int
    unit: str
    description: str

    @property
    def name(self) -> str:
        """The environment variable."""
        return PREFIX + self.field.upper()

    @property
    def default(self) -> int:
        """The value when nothing is set."""
        value: int = getattr(FrontSettings(), self.field)
        return value


NUMBERS: Final = (
    Setting(
        "body_max_bytes",
        0,
        16 * MIB,
        "bytes",
        "Largest body of a request (413). 0: 12 for each of the agent's `max_input_chars` and 16 KiB more, "
        "at least 64 KiB.",
    ),
    Setting("body_seconds", 1, 300, "seconds", "How long a body may take to come (408)."),
    Setting("head_seconds", 1, 300, "seconds", "How long a request's head may take; then the end."),
    Setting("head_max_bytes", KIB, 64 * KIB, "bytes", "Names and values of a request's headers (431)."),
    Setting("head_max_count", 8, 1000, "headers", "How many headers a request may have (431)."),
    Setting("unread_seconds", 1, 600, "seconds", "How long a client may read less than 4 KiB of what waits."),
    Setting("keep_alive_seconds", 1, 300, "seconds", "How long a connection may idle between requests."),
    Setting("max_parts", 1, 1000, "parts", "Parts of one message (`-32602`)."),
    Setting("max_depth", 8, 100, "levels", "How deep a request's JSON may nest (`-32600`)."),
    Setting("max_values", 100, 100_000, "values", "Values in a request's JSON (`-32600`)."),
    Setting(
        "max_connections",
        8,
        10_000,
        "connections",
        "Open connections; a request on one more is answered 503. The ingress has 512 of its own.",
    ),
    Setting("max_streams", 1, 10_000, "streams", "Event streams open at once; one more message is `busy`."),
    Setting("max_readers", 1, 64, "streams", "Streams that read one task, beside its sender's (`-32004`)."),
    Setting("max_waiting", 0, 64, "messages", "Messages of one conversation that wait; the next is `busy`."),
    Setting("max_tasks", 1, 1_000_000, "tasks", "Tasks kept; the oldest goes first."),
    Setting("task_age_seconds", 60, 2_592_000, "seconds", "How long a task is kept after its last change."),
    Setting("memory_age_seconds", 60, 2_592_000, "seconds", "How long a conversation is kept unused."),
    Setting(
        "store_bytes",
        MIB,
        1024 * MIB,
        "bytes",
        "What all tasks may take together, and what all conversations may. The container has 384 MiB.",
    ),
    Setting(
        "stop_grace_seconds",
        0,
        25,
        "seconds",
        "How long running turns may go on when the front stops; the container is killed after 55.",
    ),
)
FORWARDED: Final = PREFIX + "FORWARDED_FROM"
FORWARDED_MEANING: Final = (
    "Whose `X-Forwarded-For` says a visitor's address: addresses or networks of proxies, separated by commas,"
    " and `local` for whoever asks at the published port, where only a proxy of yours can reach it."
    " Unset: nobody's."
)
NAMES: Final = frozenset({one.name for one in NUMBERS} | {FORWARDED})


def read_settings(environ: Mapping[str, str]) -> FrontSettings:
    """Return the settings in `environ`; a variable set to nothing counts as not set.

    Raises UsageError with a line for each value that is wrong.
    """
    values: dict[str, Any] = {}
    wrong: list[str] = []
    for one in NUMBERS:
        text = environ.get(one.name, "").strip()
        if not text:
            continue
        if text.isascii() and text.isdigit() and len(text) <= 12 and one.low <= int(text) <= one.high:
            values[one.field] = int(text)
        else:
            wrong.append(f"{one.name} is not a whole number from {one.low} to {one.high}")
    try:
        values["forwarded_from"] = _forwarders(environ.get(FORWARDED, ""))
    except ValueError:
        wrong.append(f"{FORWARDED} is not a list of addresses, networks and `{LOCAL_PROXY}`")
    if wrong:
        raise UsageError("\n".join(f"{line} (mend it or leave it unset; see {PAGE})" for line in wrong))
    return FrontSettings(**values)


def _forwarders(text: str) -> Forwarders:
    """Return whom a list names. Raises ValueError, also for a network that is everybody."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    networks = tuple(ipaddress.ip_network(name) for name in names if name != LOCAL_PROXY)
    if len(names) > PROXIES_MAX or any(network.prefixlen == 0 for network in networks):
        raise ValueError(text)
    return Forwarders(networks, LOCAL_PROXY in names)


def settings_page() -> str:
    """Return docs/reference/front-settings.md."""
    rows = [
        f"| `{one.name}` | `{one.default}` | {one.low} to {one.high} | {one.unit} | {one.description} |"
        for one in NUMBERS
    ]
    head = [
        "# Settings of the front",
        "",
        "Written by `python -m runtime.front.settings` from `runtime/front/settings.py`.",
        "They are environment variables of the `front` service, in the environment or in `.env`, and of",
        "`python -m runtime.server`. They bound what all visitors together may take; what one message may be",
        "is the agent's (`limits` in [its settings](settings.md)). A wrong value is exit 2 before anything",
        "is served, with a line for each.",
        "",
        "| variable | default | may be | unit | meaning |",
        "|---|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, f"| `{FORWARDED}` | empty | | | {FORWARDED_MEANING} |", ""])


if __name__ == "__main__":
    sys.stdout.write(settings_page())
