"""The MCP server of the granted scripts: its protocol, and what one call can and cannot do."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.unit.sandbox.conftest import Grants

ECHO = '''"""Echoes what it was given.

More about it.
"""
import json, os, sys
print(json.dumps({"argv": sys.argv[1:], "env": dict(os.environ), "stdin": sys.stdin.read()}))
'''


def request(method: str, number: int = 1, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def text(result: dict[str, Any]) -> str:
    (block,) = result["content"]
    return str(block["text"])


def test_a_client_initialises_lists_and_pings(grants: Grants) -> None:
    grants.script("echo", ECHO)
    initialised, listed, pinged = grants.ask(
        ("echo",),
        request("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo={}),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request("tools/list", 2),
        request("ping", 3),
    )
    assert initialised["result"]["protocolVersion"] == "2025-06-18"
    assert initialised["result"]["capabilities"] == {"tools": {}}
    (tool,) = listed["result"]["tools"]
    assert (tool["name"], tool["description"]) == ("echo", "Echoes what it was given.")
    assert tool["inputSchema"]["additionalProperties"] is False
    assert tool["inputSchema"]["properties"]["args"]["maxItems"] == 32
    assert pinged == {"jsonrpc": "2.0", "id": 3, "result": {}}


def test_an_unknown_protocol_version_is_answered_with_ours(grants: Grants) -> None:
    grants.script("echo", ECHO)
    (answer,) = grants.ask(("echo",), request("initialize", protocolVersion="1999-01-01"))
    assert answer["result"]["protocolVersion"] == "2025-11-25"


@pytest.mark.parametrize(
    "source",
    ["raise SystemExit('ran')", "'' 'x'", "not python (", "x = 1", "\0", '""" """', "# only a comment"],
)
def test_a_script_without_a_docstring_is_described_by_its_name_and_not_run(
    grants: Grants, source: str
) -> None:
    grants.script("odd", source)
    (answer,) = grants.ask(("odd",), request("tools/list"))
    assert answer["result"]["tools"][0]["description"] in {"The script odd.", "x"}


def test_arguments_reach_the_script_as_they_are(grants: Grants) -> None:
    grants.script("echo", ECHO)
    args = ["; id", "$(id)", "`id`", "--tool", "-c", "import os", "a b", "", "*", "\n", "ü"]
    result = grants.call("echo", {"args": args})
    assert result["isError"] is False
    assert json.loads(text(result))["argv"] == args


def test_the_script_sees_a_minimal_environment_and_no_stdin(
    grants: Grants, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-test-0000")
    grants.script("echo", ECHO)
    seen = json.loads(text(grants.call("echo", {})))
    assert set(seen["env"]) - {"LC_CTYPE"} == {"PATH", "HOME", "LANG", "TZ"}
    assert seen["stdin"] == ""


def test_the_context_reaches_the_script_when_there_is_one(grants: Grants) -> None:
    grants.script("echo", ECHO)
    grants.context_file.write_text("ctx-1")
    assert json.loads(text(grants.call("echo", None)))["env"]["AGENT_CONTEXT_ID"] == "ctx-1"


def test_an_empty_context_is_absent(grants: Grants) -> None:
    grants.script("echo", ECHO)
    grants.context_file.write_text("")
    assert "AGENT_CONTEXT_ID" not in json.loads(text(grants.call("echo", None)))["env"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        "x",
        {"args": "x"},
        {"args": [1]},
        {"args": [None]},
        {"args": ["x"] * 33},
        {"args": ["x" * 4097]},
        {"args": ["a\0b"]},
        {"args": ["\ud800"]},
        {"args": [], "path": "/etc/passwd"},
        {"argv": []},
    ],
)
def test_arguments_of_another_shape_run_nothing(grants: Grants, arguments: Any) -> None:
    grants.script("mark", f"open({str(grants.tools / 'ran')!r}, 'w')")
    result = grants.call("mark", arguments)
    assert result["isError"] is True
    assert not (grants.tools / "ran").exists()


@pytest.mark.parametrize("name", ["other", "../echo", "echo.py", "", None, 5, ["echo"]])
def test_a_tool_that_was_not_granted_is_refused(grants: Grants, name: Any) -> None:
    grants.script("echo", ECHO)
    grants.script("other", ECHO)
    (answer,) = grants.ask(("echo",), request("tools/call", name=name, arguments={}))
    assert answer["error"] == {"code": -32602, "message": "no such tool"}


def test_a_script_past_its_time_is_killed_with_its_children(grants: Grants) -> None:
    grants.time_limit_seconds = 0.5
    grants.script(
        "slow",
        "import os, signal, sys\nprint('before', flush=True)\nos.fork()\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: signal.pause()\n",
    )
    result = grants.call("slow", {})
    assert result["isError"] is True
    assert text(result) == "before\n\n[stopped after 0.5 seconds]"


def test_a_child_that_holds_the_output_does_not_hold_the_call(grants: Grants) -> None:
    grants.script(
        "leave", "import os, signal\nprint('said', flush=True)\nif os.fork() == 0: signal.pause()\n"
    )
    result = grants.call("leave", {})
    assert (result["isError"], text(result)) == (False, "said\n")


def test_output_is_cut_at_32_kib(grants: Grants) -> None:
    grants.script("loud", "import sys\nfor _ in range(300): sys.stdout.write('x' * 10_000)\n")
    result = grants.call("loud", {})
    assert text(result) == "x" * 32 * 1024 + "\n[output cut at 32768 bytes]"


def test_output_that_is_not_utf8_is_shown_as_text(grants: Grants) -> None:
    grants.script("raw", "import sys\nsys.stdout.buffer.write(b'a\\xffb')\n")
    assert text(grants.call("raw", {})) == "a\ufffdb"


def test_a_script_without_output_says_so(grants: Grants) -> None:
    grants.script("quiet", "")
    assert text(grants.call("quiet", {})) == "[no output]"


def test_a_failing_script_tells_the_model_what_went_wrong(grants: Grants) -> None:
    grants.script("fail", "import sys\nprint('partial')\nsys.exit('no such day')\n")
    result = grants.call("fail", {})
    assert result["isError"] is True
    assert text(result) == "partial\nno such day\n\n[exit code 1]"


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"not json", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 50_000, -32700),
        (b"x" * (2 * 1024 * 1024), -32700),
        (b"[]", -32600),
        (b'"ping"', -32600),
        (b'{"id": 1, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": 5}', -32600),
        (b'{"jsonrpc": "2.0", "id": {}, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": true, "method": "ping"}', -32600),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}', -32601),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call"}', -32602),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": []}', -32602),
    ],
)
def test_a_broken_request_is_answered_with_an_error_and_the_server_lives_on(
    grants: Grants, line: bytes, code: int
) -> None:
    grants.script("echo", ECHO)
    broken, pinged = grants.ask(("echo",), line, request("ping", 2))
    assert broken["error"]["code"] == code
    assert pinged == {"jsonrpc": "2.0", "id": 2, "result": {}}


def test_notifications_and_empty_lines_are_not_answered(grants: Grants) -> None:
    grants.script("echo", ECHO)
    assert grants.ask(("echo",), b"", {"jsonrpc": "2.0", "method": "notifications/cancelled"}, b"  ") == []


@pytest.mark.parametrize("names", [(), ("missing",), ("../echo",), ("",)])
def test_a_grant_that_is_no_script_ends_the_server_at_the_start(
    grants: Grants, names: tuple[str, ...]
) -> None:
    grants.script("echo", ECHO)
    done = grants.raw(names, b"")
    assert done.returncode == 1
    assert done.stderr.startswith(b"grants: ")
