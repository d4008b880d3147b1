#!/usr/bin/python3 -IS
"""Stands in the CLI's place in the turns of tests of faults: asks the model once and gives its answer.

It leaves out what the CLI is: tools, retries, streaming, and the second that it takes to start, which a
hundred turns would take a hundred times. The real CLI meets faults in tests/e2e.
"""

from __future__ import annotations

import http.client
import json
import signal
import sys

STAYS = "whatever happens"  # a visitor's words: the program then stays until it is killed


def main() -> int:
    """Run the turn; return its exit code."""
    line = sys.stdin.readline()
    message = json.loads(line)["message"]
    body = {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": [message]}
    connection = http.client.HTTPConnection("127.0.0.1", 8787)
    try:
        connection.request("POST", "/v1/messages", json.dumps(body), {"content-type": "application/json"})
        answer = connection.getresponse()
        failed = answer.status != http.client.OK
        value = json.loads(answer.read())
        text = "" if failed else value["content"][0]["text"]
    except (OSError, http.client.HTTPException):
        if STAYS in line:
            signal.pause()
        failed, text = True, ""
    result = {"type": "result", "subtype": "success", "is_error": failed, "result": text}
    sys.stdout.write(json.dumps(result) + "\n")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
