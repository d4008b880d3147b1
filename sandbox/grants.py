"""Serves the agent's granted scripts to the CLI as MCP tools over stdio, so that no shell exists in a turn.

Why not the CLI's own Bash with a rule: once Bash exists, its read-only auto-allow answers
`du --files0-from=/etc/passwd` and the like (measured). Here a call is an argv list for one script that the
operator named: no shell, no option before the script, a time limit, an output cap, and `AGENT_CONTEXT_ID` in
that child's environment alone (seed S1 §4).

    python3 -I -S grants.pyc --tool opening_hours --tool NAME...

Each `--tool NAME` is /instance/tools/NAME.py, listed with the first line of its docstring (read, never run).
Standard library only, and little of it before the first answer: the CLI's first model request waits for
`tools/list`. A script that leaves its process group lives at most until the turn's container ends.

The places below are those of a container and no argument changes them; runtime/unsandboxed/grants.py, which
is in no image, sets others where there is no sandbox.
"""

from __future__ import annotations

import json
import os
import sys

TYPE_CHECKING = False  # typing would be imported while the CLI waits
if TYPE_CHECKING:
    from typing import IO, Any

TOOLS = "/instance/tools"
PYTHON = "/usr/bin/python3"
CONTEXT_FILE = "/run/turn/context"
HOME = "/home/agent"
TIME_LIMIT_SECONDS = 20.0
MAX_OUTPUT_BYTES = 32 * 1024
MAX_ARGUMENTS = 32
MAX_ARGUMENT_CHARACTERS = 4096
MAX_LINE_BYTES = 1024 * 1024
MAX_DESCRIPTION_CHARACTERS = 400
PROTOCOL_VERSIONS = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS = -32700, -32600, -32601, -32602

_NAME_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class RefusedError(Exception):
    """A request that is answered with a JSON-RPC error: `code` and a fixed sentence."""

    def __init__(self, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code


def granted(argv: list[str]) -> list[str]:
    """Return the names given as `--tool NAME` pairs; exits with 1 where they are no scripts of this agent."""
    names = argv[1::2]
    if set(argv[::2]) != {"--tool"} or len(argv) != 2 * len(names):
        sys.exit("grants: usage: grants --tool NAME ...")
    for name in names:
        named = bool(name) and _NAME_CHARACTERS.issuperset(name)
        if not named or not os.path.isfile(script(name)):  # noqa: PTH113  (pathlib costs milliseconds)
            sys.exit("grants: a granted tool is not a script in the tools folder")
    return names


def script(name: str) -> str:
    """Return the path of a granted script."""
    return f"{TOOLS}/{name}.py"


def describe(name: str) -> dict[str, Any]:
    """Return the MCP tool for one script, described by the first line of its docstring without running it."""
    with open(script(name), "rb") as file:  # noqa: PTH123  (pathlib costs the first request milliseconds)
        source = file.read(MAX_LINE_BYTES)
    try:
        only_ast = 0x400  # ast.PyCF_ONLY_AST: parse, and spare the import of `ast`
        tree: Any = compile(source, "tool", "exec", only_ast, dont_inherit=True)
        text = tree.body[0].value.value
        lines = text.strip().splitlines() if isinstance(text, str) else []
    except (SyntaxError, ValueError, RecursionError, MemoryError, IndexError, AttributeError):
        lines = []
    return {
        "name": name,
        "description": lines[0][:MAX_DESCRIPTION_CHARACTERS] if lines else f"The script {name}.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "args": {
                    "type": "array",
                    "description": 'Command-line arguments, one per item; ["--help"] explains them.',
                    "items": {"type": "string", "maxLength": MAX_ARGUMENT_CHARACTERS},
                    "maxItems": MAX_ARGUMENTS,
                }
            },
            "additionalProperties": False,
        },
        "_meta": {"anthropic/alwaysLoad": True},
    }


def checked_arguments(untrusted: Any) -> list[str] | None:
    """Return the script's arguments, or None for anything but a short list of short texts."""
    if untrusted is None:
        return []
    if not isinstance(untrusted, dict) or set(untrusted) - {"args"}:
        return None
    args = untrusted.get("args", [])
    if not isinstance(args, list) or len(args) > MAX_ARGUMENTS:
        return None
    for arg in args:
        if (
            not isinstance(arg, str)
            or len(arg) > MAX_ARGUMENT_CHARACTERS
            or "\0" in arg
            or not _encodable(arg)
        ):
            return None
    return args


def _encodable(text: str) -> bool:
    """Say whether the text is UTF-8 (JSON can hold lone surrogates, argv cannot)."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def environment() -> dict[str, str]:
    """Return the child's whole environment. Without a context `AGENT_CONTEXT_ID` is absent, never empty."""
    env = {
        "PATH": "/usr/local/bin:/usr/bin",
        "HOME": HOME,
        "LANG": "C.UTF-8",
        "TZ": os.environ.get("TZ", "UTC"),
    }
    try:
        with open(CONTEXT_FILE, encoding="ascii") as file:  # noqa: PTH123  (as above)
            context = file.read(64)
    except (OSError, ValueError):
        context = ""
    if context:
        env["AGENT_CONTEXT_ID"] = context
    return env


class Output:
    """What a child wrote to one pipe, up to the cap; the rest is read and thrown away."""

    def __init__(self, pipe: IO[bytes]) -> None:
        import threading  # noqa: PLC0415  (not before a call)

        self.kept = bytearray()
        self.cut = False
        self.pipe = pipe
        self.thread = threading.Thread(target=self.collect, daemon=True)
        self.thread.start()

    def collect(self) -> None:
        """Read to the end."""
        while chunk := os.read(self.pipe.fileno(), 65536):
            room = MAX_OUTPUT_BYTES - len(self.kept)
            self.kept += chunk[:room]
            self.cut = self.cut or len(chunk) > room

    def text(self) -> str:
        """Return what was kept, as text; waits for no child that fled its process group."""
        self.thread.join(timeout=1.0)
        return bytes(self.kept).decode(errors="replace")


def call(name: str, untrusted_arguments: Any) -> dict[str, Any]:
    """Run a granted script and return an MCP tool result; a failure is a result that the model can read."""
    args = checked_arguments(untrusted_arguments)
    if args is None:
        return result(
            f"args must be at most {MAX_ARGUMENTS} texts of at most {MAX_ARGUMENT_CHARACTERS} characters",
            failed=True,
        )
    import contextlib  # noqa: PLC0415  (not before a call)
    import signal  # noqa: PLC0415
    import subprocess  # noqa: PLC0415

    child = subprocess.Popen(  # noqa: S603  (an argv list: no shell)
        [PYTHON, "-I", script(name), *args],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        start_new_session=True,
    )
    assert child.stdout is not None  # noqa: S101  (asked for above)
    assert child.stderr is not None  # noqa: S101
    out, err = Output(child.stdout), Output(child.stderr)
    notes = []
    try:
        code = child.wait(timeout=TIME_LIMIT_SECONDS)
        if code:
            notes.append(f"[exit code {code}]")
    except subprocess.TimeoutExpired:
        code = -1
        notes.append(f"[stopped after {TIME_LIMIT_SECONDS:g} seconds]")
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
    text = out.text()
    if code:
        text += err.text()[: MAX_OUTPUT_BYTES - len(text)]
    if out.cut:
        notes.append(f"[output cut at {MAX_OUTPUT_BYTES} bytes]")
    return result("\n".join([*([text] if text else []), *notes]) or "[no output]", failed=bool(code))


def result(text: str, *, failed: bool) -> dict[str, Any]:
    """Return an MCP CallToolResult of one text."""
    return {"content": [{"type": "text", "text": text}], "isError": failed}


def respond(method: str, params: Any, names: list[str]) -> dict[str, Any]:
    """Return the result of one request; raises RefusedError."""
    if method == "initialize":
        asked = params.get("protocolVersion") if isinstance(params, dict) else None
        return {
            "protocolVersion": asked if asked in PROTOCOL_VERSIONS else PROTOCOL_VERSIONS[0],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "grants", "version": "1"},
        }
    if method == "ping":
        return {}
    if method == "tools/list":
        return {"tools": [describe(name) for name in names]}
    if method == "tools/call":
        name = params.get("name") if isinstance(params, dict) else None
        if name not in names:
            raise RefusedError(INVALID_PARAMS, "no such tool")
        return call(str(name), params.get("arguments"))
    raise RefusedError(METHOD_NOT_FOUND, "no such method")


def parsed(untrusted_line: bytes) -> dict[str, Any]:
    """Return one JSON-RPC message; raises RefusedError."""
    try:
        message = json.loads(untrusted_line)
    except (ValueError, RecursionError):
        raise RefusedError(PARSE_ERROR, "not JSON") from None
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise RefusedError(INVALID_REQUEST, "not a JSON-RPC 2.0 request")
    if not isinstance(message.get("method"), str):
        raise RefusedError(INVALID_REQUEST, "method is not a text")
    if isinstance(message.get("id"), bool) or not isinstance(message.get("id", 0), (str, int)):
        raise RefusedError(INVALID_REQUEST, "id is neither a text nor an integer")
    return message


def answer(untrusted_line: bytes, names: list[str]) -> dict[str, Any] | None:
    """Return the JSON-RPC response to one line, or None for a notification."""
    request_id = None
    try:
        message = parsed(untrusted_line)
        if "id" not in message:
            return None
        request_id = message["id"]
        done = respond(message["method"], message.get("params"), names)
    except RefusedError as error:
        return {"jsonrpc": "2.0", "id": request_id, "error": {"code": error.code, "message": str(error)}}
    return {"jsonrpc": "2.0", "id": request_id, "result": done}


def lines(stream: IO[bytes]) -> Any:
    """Yield each line of at most 1 MiB; a longer one is thrown away whole and yields b"" (no JSON)."""
    while line := stream.readline(MAX_LINE_BYTES):
        if line.endswith(b"\n") or len(line) < MAX_LINE_BYTES:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE_BYTES)
        yield b""


def main() -> None:
    """Answer requests until stdin ends."""
    names = granted(sys.argv[1:])
    for untrusted_line in lines(sys.stdin.buffer):
        if untrusted_line.isspace():
            continue
        response = answer(untrusted_line, names)
        if response is not None:
            sys.stdout.buffer.write(json.dumps(response).encode() + b"\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
