"""Turn what the scripted model saw of the real CLI into the recordings that the proxy is held against.

    curl -s http://127.0.0.1:9000/requests | python tests/scripted/record.py tests/unit/modelproxy/recorded

Writes one `<model>.json` per model: method, path, query, headers, and the body's shape. Ids, keys, addresses
and paths of the machine are replaced, and of the CLI's own texts only the length is kept, because its licence
forbids shipping them. Run it when the pinned CLI moves, read the difference, and only then change `BETAS` or
the grammar's tables.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

SCRUBBED = {
    "x-api-key": "sk-ant-test-0000",
    "x-claude-code-session-id": "00000000-0000-0000-0000-000000000000",
    "host": "127.0.0.1:8787",
    "x-stainless-os": "Linux",
}
VERBATIM = {"type", "role", "name", "model", "display", "effort", "keep", "ttl", "tool_use_id", "id"}


def shape(value: Any, key: str = "") -> Any:
    """Return `value` with every free text replaced by its length."""
    if isinstance(value, dict):
        return {name: shape(inner, name) for name, inner in value.items() if name != "input_schema"}
    if isinstance(value, list):
        return [shape(inner, key) for inner in value]
    if isinstance(value, str) and key not in VERBATIM:
        return f"<{len(value)} characters>"
    return value


def recording(request: dict[str, Any]) -> dict[str, Any]:
    """Return one request without anything of the machine or the session it came from."""
    headers = [[name, SCRUBBED.get(name, value)] for name, value in request["headers"]]
    kept = ("method", "path", "query", "bytes")
    return {**{name: request[name] for name in kept}, "headers": headers, "body": shape(request["body"])}


def main(folder: Path) -> None:
    """Write the longest request of each model and path."""
    found: dict[str, dict[str, Any]] = {}
    for request in json.load(sys.stdin):
        model = str(request["body"]["model"])
        name = model + ("-count-tokens" if request["path"].endswith("count_tokens") else "")
        if name not in found or request["bytes"] > found[name]["bytes"]:
            found[name] = request
    for name, request in sorted(found.items()):
        safe = re.sub(r"[^a-z0-9.-]", "_", name)
        text = json.dumps(recording(request), indent=1, sort_keys=True, ensure_ascii=True)
        (folder / f"{safe}.json").write_text(text + "\n", encoding="ascii")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
