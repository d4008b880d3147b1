"""turn_init as a process on the host, with a fake CLI. What needs PID 1: tests/contract/test_cli_init.py."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.unit.sandbox.conftest import Init

ECHO = "import sys; sys.stdout.write(sys.stdin.read())"


def test_the_cli_gets_one_user_line_and_then_the_end_of_stdin(init: Init) -> None:
    message = 'a "quoted" <b> \n line \u2028 ü'
    code, out, err = init.run(ECHO, message=message)
    assert code == 0
    assert json.loads(out) == {
        "type": "user",
        "message": {"role": "user", "content": [{"type": "text", "text": message}]},
    }
    assert out.count(b"\n") == 1
    assert err == b""


def test_a_message_larger_than_a_pipe_arrives_whole(init: Init) -> None:
    message = "\u00e9" * 256 * 1024
    code, out, _ = init.run(ECHO, message=message)
    assert code == 0
    assert json.loads(out)["message"]["content"][0]["text"] == message


def test_the_context_is_left_for_the_grants_before_the_cli_hears_the_message(init: Init) -> None:
    program = f"import sys; sys.stdin.readline(); print(open({str(init.context_file)!r}).read())"
    code, out, _ = init.run(program, context="ctx-9")
    assert (code, out) == (0, b"ctx-9\n")
    assert init.context_file.stat().st_mode & 0o777 == 0o400


def test_the_turn_ends_with_the_clis_exit_code(init: Init) -> None:
    assert init.run("raise SystemExit(7)")[0] == 7


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_cli_that_a_signal_ends_gives_128_and_the_signal(init: Init, number: signal.Signals) -> None:
    no_core = "import os, resource; resource.setrlimit(resource.RLIMIT_CORE, (0, 0)); "
    program = no_core + f"os.kill(os.getpid(), {number.value})"
    assert init.run(program)[0] == 128 + number


def test_the_deadline_ends_a_cli_that_ignores_everything(init: Init) -> None:
    program = """
import signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_IGN)
print("before", flush=True)
while True: signal.pause()
"""
    code, out, err = init.run(program, deadline_seconds=0.5)
    assert code == 124
    assert out == b"before\n"
    assert err == b"turn_init: the deadline ended the turn\n"


def test_a_turn_that_is_never_claimed_ends_too(init: Init) -> None:
    init.unclaimed_seconds = 0.3
    process = init.start(sys.executable, "-c", "import signal; signal.pause()")
    assert process.wait(timeout=20) == 124
    process.communicate()


def test_a_grandchild_that_holds_stdout_does_not_hold_the_turn(init: Init) -> None:
    """It is in a session of its own, so only the end of a container would end it; here the test does."""
    program = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.pause()"], start_new_session=True)
print(child.pid, flush=True)
"""
    process = init.start(sys.executable, "-c", program)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(init.line())
    process.stdin.close()
    process.stdin = None
    grandchild = int(process.stdout.readline())
    try:
        assert process.wait(timeout=20) == 0
    finally:
        os.kill(grandchild, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"not json\n",
        b"[]\n",
        b'{"v": 1}\n',
        b"[" * 100_000 + b"\n",
        b"\xff\xfe\n",
    ],
)
def test_a_line_that_is_no_order_ends_the_turn_with_125_and_without_an_echo(init: Init, line: bytes) -> None:
    code, out, err = init.run(ECHO, line)
    assert (code, out) == (125, b"")
    assert err.startswith(b"turn_init: ")
    assert err.count(b"\n") == 1
    assert line[:8].strip() == b"" or line[:8].strip() not in err


@pytest.mark.parametrize(
    "fields",
    [
        {"v": 2},
        {"v": True},
        {"context": ""},
        {"context": "a" * 65},
        {"context": "a/b"},
        {"context": None},
        {"deadline_seconds": 0},
        {"deadline_seconds": -1},
        {"deadline_seconds": 1e9},
        {"deadline_seconds": True},
        {"deadline_seconds": "5"},
        {"deadline_seconds": float("nan")},
        {"message": ""},
        {"message": 5},
        {"extra": 1},
    ],
)
def test_a_field_of_another_shape_ends_the_turn_with_125(init: Init, fields: dict[str, Any]) -> None:
    assert init.run(ECHO, **fields)[0] == 125
    assert not init.context_file.exists()


def test_a_second_line_is_refused(init: Init) -> None:
    assert init.run(ECHO, init.line() + init.line())[0] == 125


def test_a_line_without_an_end_is_bounded(init: Init) -> None:
    process = init.start(sys.executable, "-c", "import signal; signal.pause()")
    _, err = process.communicate(b"x" * (3 * 1024 * 1024), timeout=20)
    assert process.returncode == 125
    assert err == b"turn_init: stdin's line is too long\n"


def test_a_context_that_cannot_be_left_ends_the_turn(init: Init) -> None:
    init.context_file.write_text("planted")
    code, out, err = init.run(ECHO)
    assert (code, out) == (125, b"")
    assert b"context" in err


def test_a_port_that_is_taken_ends_the_turn(init: Init) -> None:
    with socket.create_server(("127.0.0.1", init.port)):
        code, out, err = init.run(ECHO)
    assert (code, out) == (125, b"")
    assert err.startswith(b"turn_init: ")


@pytest.mark.parametrize(("argv", "code"), [(("/nowhere/claude",), 127), ((), 127), (("no-program",), 126)])
def test_a_cli_that_cannot_be_started_gives_the_shells_codes(
    init: Init, argv: tuple[str, ...], code: int
) -> None:
    (init.folder / "no-program").write_text("not executable")
    process = init.start(*(str(init.folder / word) for word in argv))
    _, err = process.communicate(init.line(), timeout=20)
    assert process.returncode == code
    assert err.startswith(b"turn_init: the CLI could not be started")


def test_the_cli_inherits_no_descriptor_but_three_and_default_signals(init: Init) -> None:
    program = """
import os, signal
print(sorted(os.listdir("/proc/self/fd")))
status = dict(l.split(":", 1) for l in open("/proc/self/status").read().splitlines())
ignored = int(status["SigIgn"], 16) & ~(1 << 12 | 1 << 24 | 3 << 31)
print(int(status["SigBlk"], 16), ignored, os.getsid(0) == os.getpid())
"""
    _, out, _ = init.run(program)
    # 3 is the listing's own descriptor; Python ignores SIGPIPE and SIGXFSZ, libc its own 32 and 33.
    assert out == b"['0', '1', '2', '3']\n0 0 True\n"


def test_signals_from_the_cli_do_not_end_turn_init(init: Init) -> None:
    program = """
import os, signal, sys
sys.stdin.readline()
for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGALRM", "SIGPIPE", "SIGCHLD"):
    os.kill(os.getppid(), getattr(signal, name))
raise SystemExit(5)
"""
    assert init.run(program)[0] == 5


class Door:
    """A Unix socket that answers each connection with its bytes in capitals, and counts."""

    def __init__(self, path: Path) -> None:
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        self.accepted = threading.Semaphore(0)
        self.held: list[socket.socket] = []

    def serve(self, count: int, *, answer: bool = True) -> threading.Thread:
        def work() -> None:
            for _ in range(count):
                try:
                    connection, _ = self.listener.accept()
                except OSError:
                    return
                self.held.append(connection)
                self.accepted.release()
                if answer:
                    data = b""
                    while chunk := connection.recv(65536):
                        data += chunk
                    connection.sendall(data.upper())
                    connection.close()

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        return thread

    def close(self) -> None:
        self.listener.close()
        for connection in self.held:
            connection.close()


def test_the_forwarder_carries_bytes_and_half_closes_both_ways(init: Init) -> None:
    door = Door(init.door)
    door.serve(2)
    program = f"""
import socket, sys
sys.stdin.readline()
for size in (10, 3_000_000):
    with socket.create_connection(("127.0.0.1", {init.port})) as s:
        s.settimeout(20)
        s.sendall(b"a" * size); s.shutdown(socket.SHUT_WR)
        data = b""
        while chunk := s.recv(65536): data += chunk
    print(data == b"A" * size)
"""
    code, out, err = init.run(program)
    door.close()
    assert (code, out, err) == (0, b"True\nTrue\n", b"")


def test_without_a_door_a_connection_is_closed_at_once_and_a_later_door_serves(init: Init) -> None:
    program = f"""
import socket, sys
def ask():
    with socket.create_connection(("127.0.0.1", {init.port})) as s:
        s.settimeout(20)
        try:
            s.sendall(b"hello"); s.shutdown(socket.SHUT_WR)
            return s.recv(100)
        except OSError:
            return b""
print(ask(), flush=True)
sys.stdin.readline()
print(ask())
"""
    process = init.start(sys.executable, "-c", program)
    assert process.stdout is not None
    assert process.stdout.readline() == b"b''\n"
    door = Door(init.door)
    door.serve(1)
    out, _ = process.communicate(init.line(), timeout=20)
    door.close()
    assert out == b"b'HELLO'\n"


def test_at_most_sixteen_connections_reach_the_door_and_the_next_one_follows_when_one_ends(
    init: Init,
) -> None:
    door = Door(init.door)
    door.serve(17, answer=False)
    program = f"""
import socket, sys
held = [socket.create_connection(("127.0.0.1", {init.port})) for _ in range(20)]
print("connected", flush=True)
sys.stdin.readline()
held[0].close()
held[1].recv(1)
"""
    process = init.start(sys.executable, "-c", program)
    assert process.stdout is not None
    assert process.stdout.readline() == b"connected\n"
    for _ in range(16):
        assert door.accepted.acquire(timeout=20)
    assert not door.accepted.acquire(timeout=0.3)
    assert process.stdin is not None
    process.stdin.write(init.line())
    process.stdin.flush()
    door.held[0].close()
    assert door.accepted.acquire(timeout=20)
    for connection in door.held:
        connection.close()
    process.communicate(timeout=20)
    assert process.returncode == 0
    door.close()


def test_more_connections_than_the_bound_are_served_one_after_another(init: Init) -> None:
    door = Door(init.door)
    door.serve(40)
    program = f"""
import os, socket, sys
sys.stdin.readline()
for _ in range(40):
    with socket.create_connection(("127.0.0.1", {init.port})) as s:
        s.settimeout(20); s.sendall(b"x"); s.shutdown(socket.SHUT_WR); s.recv(10); s.recv(10)
print("done")
"""
    code, out, _ = init.run(program)
    door.close()
    assert (code, out) == (0, b"done\n")
