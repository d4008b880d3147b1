"""What `docker inspect` must show of a container made from a create body: all of it, and nothing else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

DEFAULTS = Path(__file__).with_name("hostconfig_defaults.json")


def differences(found: dict[str, Any], body: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return the keys of a create body that inspect does not show with the same value: wanted and found."""
    wanted = {key: value for key, value in body.items() if key not in {"HostConfig", "Image"}}
    pairs = {key: (value, found["Config"].get(key)) for key, value in wanted.items()}
    pairs["Env"] = (sorted(body["Env"]), sorted(found["Config"]["Env"]))
    pairs["Image"] = (body["Image"], found["Image"])
    pairs |= {
        f"HostConfig.{key}": (value, found["HostConfig"].get(key))
        for key, value in body["HostConfig"].items()
    }
    return {key: pair for key, pair in pairs.items() if pair[0] != pair[1]}


def unexpected(found: dict[str, Any], body: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Return HostConfig keys that the body leaves to the engine and that differ from the committed defaults.

    `UPDATE_HOSTCONFIG_DEFAULTS=1` writes the list anew, to be read before it is committed.
    """
    others = {key: value for key, value in found["HostConfig"].items() if key not in body["HostConfig"]}
    if os.environ.get("UPDATE_HOSTCONFIG_DEFAULTS"):
        DEFAULTS.write_text(json.dumps(others, indent=2, sort_keys=True) + "\n")
    defaults = json.loads(DEFAULTS.read_text())
    return {
        key: (defaults.get(key), others.get(key))
        for key in {*defaults, *others}
        if defaults.get(key) != others.get(key)
    }
