"""A line of a service's log, made short and plain; pure.

The services log one JSON object a line with constant field names (runtime/log.py). The canonical `turn` line
is the one that operators look for, so it is read at a glance; of any other line its event comes first and its
fields follow as they are. What came from elsewhere can hold escape sequences: nothing here lets one through.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from runtime.cli.output import printable

if TYPE_CHECKING:
    from collections.abc import Mapping

TURN: Final = "turn"  # the event of runtime/turn/receipt.py
SHORT: Final = 8
VALUE_MAX_CHARS: Final = 160
LINE_MAX_CHARS: Final = 2000
ALARMING: Final = frozenset({"warning", "error", "critical"})
KNOWN: Final = frozenset({"event", "service", "level", "timestamp", "exception"})
NUMBER_LIMIT: Final = 10.0**15  # what a reader could still take for a count or a time
DOCKER_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z$")


@dataclass(frozen=True, slots=True, order=True)
class Line:
    """One line of one service, as the engine kept it. `nanoseconds` is Unix time, by the engine's clock."""

    nanoseconds: int
    service: str
    untrusted_text: str

    @property
    def fields(self) -> dict[str, Any] | None:
        """The line's JSON object, or None when it is none."""
        if not self.untrusted_text.startswith("{"):
            return None
        try:
            value = json.loads(self.untrusted_text, parse_constant=_finite, parse_float=_finite)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None


@dataclass(frozen=True, slots=True)
class Plain:
    """A line to read: its time, service and words, and its level ("" for an ordinary one)."""

    time: str
    service: str
    words: str
    level: str = ""


def parse(service: str, untrusted_line: str) -> Line | None:
    """Return a line of `docker logs --timestamps`, or None when it has no time."""
    stamp, _, text = untrusted_line.partition(" ")
    found = DOCKER_TIME.match(stamp)
    if found is None:
        return None
    try:
        moment = datetime.strptime(found[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    if not 1970 <= moment.year < 9999:  # a host east or west of Greenwich has no such local time
        return None
    return Line(
        int(moment.timestamp()) * 10**9 + int((found[2] or "0").ljust(9, "0")), service, text.rstrip()
    )


def plain(line: Line) -> Plain:
    """Return the line as a reader sees it, in the local time of this host."""
    moment = datetime.fromtimestamp(line.nanoseconds / 1e9, UTC).astimezone()
    fields = line.fields
    level = ""
    if fields is None:
        words = line.untrusted_text
    else:
        level = str(fields.get("level", ""))
        words = turn_words(fields) if fields.get("event") == TURN else _words(fields)
    text = " ".join(printable(words).split())
    return Plain(
        moment.strftime("%Y-%m-%d %H:%M:%S"),
        line.service,
        text if len(text) <= LINE_MAX_CHARS else f"{text[: LINE_MAX_CHARS - 1]}…",
        level if level in ALARMING else "",
    )


def as_json(line: Line) -> str:
    """Return the line as it is when it is JSON of ASCII, else as JSON that says the same in ASCII.

    A line that is no object stands in `text`, with its service and time.
    """
    fields = line.fields
    if fields is not None and line.untrusted_text.isascii() and line.untrusted_text.isprintable():
        return line.untrusted_text
    if fields is not None:
        return json.dumps(fields)
    moment = datetime.fromtimestamp(line.nanoseconds / 1e9, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return json.dumps({"text": line.untrusted_text, "service": line.service, "timestamp": moment})


def turn_words(fields: Mapping[str, Any]) -> str:
    """Return the canonical `turn` line in one sentence."""
    outcome = str(fields.get("outcome", "?"))
    cause = str(fields.get("cause") or "").removeprefix(outcome)
    detail = str(fields.get("detail") or "").removeprefix(outcome)
    first = fields.get("first_text_ms")
    steps = _tally(fields.get("steps"))
    screened = _tally(fields.get("screened"))
    parts = [
        f"turn {outcome}" + (f" ({cause})" if cause else "") + f" in {_seconds(fields.get('total_ms'))}",
        f"first text {_seconds(first)}" if first is not None else "",
        f"waited {_seconds(fields.get('waited_ms'))}" if _number(fields.get("waited_ms")) >= 100 else "",
        f"steps {steps}" if steps else "",
        _cost(fields),
        f"taken out {screened}" if screened else "",
        f"context {str(fields.get('context', ''))[:SHORT]}" if fields.get("context") else "",
        f"visitor {str(fields.get('visitor', ''))[:SHORT]}" if fields.get("visitor") else "",
        f"because {detail}" if detail else "",
    ]
    return "; ".join(part for part in parts if part)


def _cost(fields: Mapping[str, Any]) -> str:
    requests = int(_number(fields.get("requests")))
    if not requests and not _number(fields.get("refused")):
        return ""
    size = _number(fields.get("request_bytes"))
    told, answered = (int(_number(fields.get(name))) for name in ("input_tokens", "output_tokens"))
    words = [
        f"{requests} requests" if requests != 1 else "1 request",
        f"{told:,} + {answered:,} tokens",
        f"{size / 1024:.1f} KB" if size else "",
        f"{int(_number(fields.get('refused')))} refused" if _number(fields.get("refused")) else "",
    ]
    return ", ".join(word for word in words if word)


def _words(fields: Mapping[str, Any]) -> str:
    said = [str(fields.get("event", ""))]
    said += [f"{name}={_value(value)}" for name, value in fields.items() if name not in KNOWN]
    if trace := str(fields.get("exception") or "").strip():
        said.append(f"({trace.splitlines()[-1]})")
    return " ".join(part for part in said if part)


def _value(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    text = value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    if len(text) > VALUE_MAX_CHARS:
        text = f"{text[: VALUE_MAX_CHARS - 1]}…"
    return (
        json.dumps(text, ensure_ascii=False) if isinstance(value, str) and (" " in text or not text) else text
    )


def _tally(value: object) -> str:
    if not isinstance(value, dict):
        return ""
    names = {str(name).removeprefix("mcp__grants__"): count for name, count in value.items()}
    return ", ".join(name if count == 1 else f"{name} {count}" for name, count in names.items())


def _seconds(value: object) -> str:
    return f"{_number(value) / 1000:.2f} s"


def bounded(value: object) -> float | None:
    """Return a number that is finite and below NUMBER_LIMIT, None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < NUMBER_LIMIT:
        return None
    return float(value)


def _number(value: object) -> float:
    return bounded(value) or 0.0


def _finite(text: str) -> float:
    """Read a number of JSON; 1e999, NaN and Infinity are none. Raises ValueError."""
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number that is not finite")
    return number
