"""Turn path 9/13: PID 1 of a turn: starts the CLI at once, feeds it one message, lends it the door, ends it.

Why a PID 1 of our own, and why it is so small:

- nothing inside the container can kill, stop or read it (a process namespace protects PID 1 from signals
  that it does not handle, and `PR_SET_DUMPABLE` 0 closes /proc/1/mem and /proc/1/fd), so its clock ends the
  turn even when the spawner is gone (architecture §4, two clocks);
- the CLI starts before any other module is imported, so that the sandbox costs a turn milliseconds;
- when it exits, the kernel kills whatever the CLI left behind.

Nothing outside believes what it says: the end of a turn comes from the engine, tokens and money from the
door. The contract is docs/reference/protocols.md, "Spawner ↔ turn_init". Exit codes: the CLI's own, 128 + n
when signal n ended it, 124 at the deadline, 125 when stdin was not one valid line or the turn could not be
set up, 126 or 127 when the CLI could not be started.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # typing would be imported before the CLI starts
if TYPE_CHECKING:
    import selectors
    import socket
    from collections.abc import Callable

CONTEXT_FILE = "/run/turn/context"
DOOR = "/run/doors/model.sock"
PORT = 8787
MAX_CONNECTIONS = 16
MAX_LINE_BYTES = 2 * 1024 * 1024  # 256 KiB of prompt, each byte escaped as \uXXXX at worst, and the frame
MAX_DEADLINE_SECONDS = 3600.0
UNCLAIMED_SECONDS = 120.0
CHUNK_BYTES = 64 * 1024

EXIT_DEADLINE = 124
EXIT_BAD_LINE = 125
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127

_CONTEXT_CHARACTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


class Spawned:
    """The running CLI: its pid and our end of its stdin."""

    __slots__ = ("pid", "stdin")

    def __init__(self, pid: int, stdin: int) -> None:
        self.pid = pid
        self.stdin = stdin


def spawn(argv: list[str]) -> Spawned:
    """Start the CLI in a session of its own, with a pipe as stdin and no descriptor but 0, 1 and 2.

    Signals that Python ignores or handles are back at their defaults in it. Raises OSError as execve does.
    """
    os.closerange(3, 65536)  # whatever the engine's runtime leaked into PID 1 (CVE-2024-21626)
    read_end, write_end = os.pipe()
    try:
        pid = os.posix_spawn(
            argv[0],
            argv,
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, read_end, 0)],
            setsid=True,
            setsigmask=[],
            setsigdef=[2, 13, 25],  # SIGINT, SIGPIPE, SIGXFSZ; importing `signal` here would delay the CLI
        )
    finally:
        os.close(read_end)
    os.set_blocking(write_end, False)
    return Spawned(pid, write_end)


def say(sentence: str) -> None:
    """Write one line to stderr unless nobody reads there: PID 1 must never wait for a reader."""
    import select  # noqa: PLC0415  (after the CLI has started)

    if select.select([], [2], [], 0)[1]:
        os.write(2, f"turn_init: {sentence}\n".encode()[:4096])


def harden() -> None:
    """Ignore every signal that can be ignored, and be non-dumpable.

    Python installs a handler for SIGINT, and the kernel delivers to PID 1 whatever it handles; so a process
    of the turn could interrupt it. Non-dumpable closes /proc/1/fd, /proc/1/mem and ptrace to the turn's uid.
    """
    import ctypes  # noqa: PLC0415  (after the CLI has started)
    import signal  # noqa: PLC0415

    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP, signal.SIGCHLD}:
        if number < signal.SIGRTMIN:
            signal.signal(number, signal.SIG_IGN)
    pr_set_dumpable = 4
    if ctypes.CDLL(None, use_errno=True).prctl(pr_set_dumpable, 0, 0, 0, 0) != 0:
        say("prctl(PR_SET_DUMPABLE) was refused")


class BadLineError(Exception):
    """Stdin was not one valid line, or could not be acted on; the text says why, without quoting it."""


class Order:
    """The one line from the spawner, checked. `cli_line` is what the CLI reads."""

    __slots__ = ("cli_line", "context", "deadline_seconds")

    def __init__(self, untrusted_line: bytes) -> None:
        import json  # noqa: PLC0415  (after the CLI has started)

        try:
            fields = json.loads(untrusted_line)
        except (ValueError, RecursionError):
            raise BadLineError("stdin is not one line of JSON") from None
        if not isinstance(fields, dict) or set(fields) != {"v", "context", "deadline_seconds", "message"}:
            raise BadLineError("stdin has other fields than v, context, deadline_seconds, message")
        context, seconds, message = fields["context"], fields["deadline_seconds"], fields["message"]
        if fields["v"] != 1 or isinstance(fields["v"], bool):
            raise BadLineError("v is not 1")
        if (
            not isinstance(context, str)
            or not 1 <= len(context) <= 64
            or not _CONTEXT_CHARACTERS.issuperset(context)
        ):
            raise BadLineError("context is not 1 to 64 of A-Za-z0-9._-")
        if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
            raise BadLineError("deadline_seconds is not a number")
        if not 0 < seconds <= MAX_DEADLINE_SECONDS:
            raise BadLineError("deadline_seconds is out of range")
        if not isinstance(message, str) or not message:
            raise BadLineError("message is not a text")
        self.context = context
        self.deadline_seconds = float(seconds)
        content = [{"type": "text", "text": message}]
        line = {"type": "user", "message": {"role": "user", "content": content}}
        self.cli_line = json.dumps(line).encode() + b"\n"


def leave_context(context: str) -> None:
    """Write the context where `grants.py` looks for it; raises OSError where it cannot be a new file."""
    descriptor = os.open(
        CONTEXT_FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o400
    )
    try:
        os.write(descriptor, context.encode())
    finally:
        os.close(descriptor)


class Stream:
    """One direction of a forwarded connection: at most one chunk in hand, the source's end passed on."""

    __slots__ = ("ended", "pending", "sink", "source")

    def __init__(self, source: socket.socket, sink: socket.socket) -> None:
        self.source, self.sink = source, sink
        self.pending = b""
        self.ended = False

    def pump(self) -> None:
        """Move what can be moved now; raises OSError when either side is gone."""
        while not self.ended:
            try:
                if not self.pending:
                    self.pending = self.source.recv(CHUNK_BYTES)
                if not self.pending:
                    self.ended = True
                    self.sink.shutdown(1)  # SHUT_WR
                    return
                self.pending = self.pending[self.sink.send(self.pending) :]
            except BlockingIOError:
                return


class Forwarder:
    """Lends the turn's door to the CLI: each connection to 127.0.0.1:8787 is one to `/run/doors/model.sock`.

    The door may appear long after the start (it is opened at the claim) and vanish before the end; a
    connection that finds none is closed at once, so that the CLI fails fast. At most 16 at a time; more wait
    in the kernel's backlog.
    """

    def __init__(self, selector: selectors.BaseSelector) -> None:
        import socket  # noqa: PLC0415  (after the CLI has started)

        self.selector = selector
        self.pairs: dict[socket.socket, tuple[Stream, Stream]] = {}  # by either end: (from it, to it)
        self.door_socket: Callable[[], socket.socket] = lambda: socket.socket(socket.AF_UNIX)
        self.listener = socket.create_server(("127.0.0.1", PORT), backlog=64)
        self.listener.settimeout(0)
        selector.register(self.listener, 1, self.accept)

    def accept(self) -> None:
        """Take one connection and join it to the door, or close it."""
        try:
            near, _address = self.listener.accept()
        except OSError:
            return  # it was reset while it waited
        door = self.door_socket()
        near.settimeout(0)
        door.settimeout(0)
        try:
            door.connect(DOOR)
        except OSError:
            near.close()
            door.close()
            return
        out, back = Stream(near, door), Stream(door, near)
        self.pairs[near], self.pairs[door] = (out, back), (back, out)
        for end in (near, door):
            self.selector.register(end, 1, lambda end=end: self.serve(end))
        if len(self.pairs) == 2 * MAX_CONNECTIONS:
            self.selector.unregister(self.listener)

    def serve(self, end: socket.socket) -> None:
        """Move bytes both ways for the connection that `end` is one end of."""
        if end not in self.pairs:
            return  # closed earlier in the same round
        out, back = self.pairs[end]
        try:
            out.pump()
            back.pump()
        except OSError:
            out.ended = back.ended = True
        if out.ended and back.ended:
            self.close(out.source, out.sink)
            return
        for stream, other in ((out, back), (back, out)):
            wanted = (not stream.ended and not stream.pending) | bool(other.pending) << 1
            self.watch(stream.source, wanted)

    def watch(self, end: socket.socket, events: int) -> None:
        """Register `end` for exactly `events` (1 to read, 2 to write), or for nothing."""
        key = self.selector.get_map().get(end)
        if key is None and events:
            self.selector.register(end, events, lambda: self.serve(end))
        elif key is not None and not events:
            self.selector.unregister(end)
        elif key is not None and key.events != events:
            self.selector.modify(end, events, key.data)

    def close(self, *ends: socket.socket) -> None:
        """Forget a pair and take new connections again."""
        full = len(self.pairs) == 2 * MAX_CONNECTIONS
        for end in ends:
            self.watch(end, 0)
            del self.pairs[end]
            end.close()
        if full:
            self.selector.register(self.listener, 1, self.accept)


class Turn:
    """Everything after the start, in one thread: stdin, the CLI's stdin, dead children and the clock."""

    def __init__(self, cli: Spawned) -> None:
        import selectors  # noqa: PLC0415  (after the CLI has started)
        import signal  # noqa: PLC0415
        import time  # noqa: PLC0415

        self.cli = cli
        self.clock = time.monotonic
        self.deadline = self.clock() + UNCLAIMED_SECONDS
        self.untrusted_line = bytearray()
        self.feed = memoryview(b"")
        self.selector = selectors.DefaultSelector()
        self.wake, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self.selector.register(self.wake, 1, lambda: os.read(self.wake, 4096))
        self.selector.register(0, 1, self.read_line)
        self.forwarder = Forwarder(self.selector)

    def run(self) -> int:
        """Serve until the CLI has exited (its code) or the clock has run out (124)."""
        while True:
            code = self.reap()
            if code is not None:
                return code
            left = self.deadline - self.clock()
            if left <= 0:
                kill_everything(self.cli.pid)
                say("the deadline ended the turn")
                return EXIT_DEADLINE
            for key, _events in self.selector.select(left):
                key.data()

    def reap(self) -> int | None:
        """Collect every dead child, adopted ones too; return the exit code once the CLI is among them."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return None
            if pid == 0:
                return None
            if pid == self.cli.pid:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code

    def read_line(self) -> None:
        """Collect stdin up to its line feed, then give the turn to the CLI and read no more."""
        chunk = os.read(0, CHUNK_BYTES)
        self.untrusted_line += chunk
        if len(self.untrusted_line) > MAX_LINE_BYTES:
            raise BadLineError("stdin's line is too long")
        if not chunk and not self.untrusted_line:
            raise BadLineError("stdin ended without a line")
        if chunk and b"\n" not in chunk:
            return
        self.selector.unregister(0)
        order = Order(bytes(self.untrusted_line))
        self.untrusted_line.clear()
        self.deadline = self.clock() + order.deadline_seconds
        try:
            leave_context(order.context)
        except OSError as error:
            raise BadLineError(f"the context could not be left for the grants: {error.strerror}") from None
        self.feed = memoryview(order.cli_line)
        self.selector.register(self.cli.stdin, 2, self.write_line)

    def write_line(self) -> None:
        """Give the CLI what its pipe takes; close it after the last byte, or when the CLI has closed it."""
        try:
            self.feed = self.feed[os.write(self.cli.stdin, self.feed) :]
        except BlockingIOError:
            return
        except BrokenPipeError:
            self.feed = memoryview(b"")
        if not self.feed:
            self.selector.unregister(self.cli.stdin)
            os.close(self.cli.stdin)


def kill_everything(cli_pid: int) -> None:
    """Kill all there is: as PID 1 every process of the container, elsewhere the CLI's process group."""
    import signal  # noqa: PLC0415  (after the CLI has started)

    try:
        if os.getpid() == 1:
            os.kill(-1, signal.SIGKILL)
        else:
            os.killpg(cli_pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def main() -> int:
    """Run one turn; return its exit code."""
    try:
        cli = spawn(sys.argv[1:])
    except (OSError, IndexError, ValueError) as error:
        say(f"the CLI could not be started: {error}")
        return EXIT_NOT_EXECUTABLE if isinstance(error, PermissionError) else EXIT_NOT_FOUND
    harden()
    try:
        return Turn(cli).run()
    except (BadLineError, OSError) as error:
        kill_everything(cli.pid)
        say(str(error))
        return EXIT_BAD_LINE


if __name__ == "__main__":
    os._exit(main())
