"""Parse JSON that another part sent, and refuse what two parsers could read in two ways. Pure.

`json` lets the last of two equal keys win, takes NaN and Infinity, turns 1e999 into infinity and answers deep
nesting with RecursionError; each has let a request mean one thing where it was checked and another where it
was used (RFC 8259 §4 and §9 leave all of it open). Every part that takes JSON over a socket reads it here.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

MAX_DEPTH: Final = 64
MAX_PARTS: Final = 200_000


class StrictJsonError(ValueError):
    """The bytes are not strict JSON. The text is fixed words, safe to log and to send back."""


def parse(raw: bytes, *, max_depth: int = MAX_DEPTH, max_parts: int = MAX_PARTS) -> Any:
    """Return the value in `raw`, UTF-8 without a byte order mark.

    `max_depth` counts objects and arrays inside each other, `max_parts` the members and items in all. The
    caller caps the bytes. Raises StrictJsonError.
    """
    try:
        value = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_unique, parse_constant=_no_constant, parse_float=_finite
        )
    except RecursionError:
        raise StrictJsonError("nested too deeply") from None
    except StrictJsonError:
        raise
    except ValueError:
        raise StrictJsonError("not JSON in UTF-8") from None
    _bounded(value, max_depth, max_parts)
    return value


def parse_object(raw: bytes, *, max_depth: int = MAX_DEPTH, max_parts: int = MAX_PARTS) -> dict[str, Any]:
    """Return the object in `raw`, as `parse` does. Raises StrictJsonError."""
    value = parse(raw, max_depth=max_depth, max_parts=max_parts)
    if not isinstance(value, dict):
        raise StrictJsonError("not a JSON object")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise StrictJsonError("a key is given twice")
    return value


def _no_constant(_name: str) -> float:
    raise StrictJsonError("number out of range")


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise StrictJsonError("number out of range")
    return value


def _bounded(value: Any, max_depth: int, max_parts: int) -> None:
    parts = 0
    level = [value] if isinstance(value, (dict, list)) else []
    for _depth in range(max_depth):
        below: list[Any] = []
        for node in level:
            inside = node.values() if isinstance(node, dict) else node
            below.extend(child for child in inside if isinstance(child, (dict, list)))
            parts += len(node)
        if parts > max_parts:
            raise StrictJsonError("too many parts")
        if not below:
            return
        level = below
    raise StrictJsonError("nested too deeply")
