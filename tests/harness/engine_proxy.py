"""A Unix socket before an engine's that breaks single operations: what an engine does seldom, on demand.

It speaks HTTP/1.1 as the engine does, connections kept alive and taken over by `attach` included, so that a
client meets the same things it would meet at the engine: an engine that goes closes its connections too.
"""

from __future__ import annotations

import contextlib
import json
import re
import select
import socket
import threading
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

ENGINE_TEXT = "planted-engine-text: /var/lib/docker/overlay2 cannot be used"
CHUNK_BYTES = 64 * 1024


class Operation(StrEnum):
    """What a client asks of the engine, by the API's own names."""

    CREATE = "create"
    ATTACH = "attach"
    START = "start"
    WAIT = "wait"
    INSPECT = "inspect"
    LIST = "list"
    KILL = "kill"
    REMOVE = "remove"
    EVENTS = "events"
    OTHER = "other"


class Kind(StrEnum):
    """How an operation goes wrong."""

    STATUS = "status"  # answered with an error status; nothing is done
    HANG = "hang"  # not answered until healed, and not done
    CLOSE = "close"  # the connection is closed instead of an answer; nothing is done
    LOSE = "lose"  # done, and the connection closed instead of the answer
    SWALLOW = "swallow"  # done, and not answered until healed
    DELAY = "delay"  # done and answered, after `seconds`
    NONSENSE = "nonsense"  # answered 200 with something that is no JSON; nothing is done
    BREAK = "break"  # done, and the answer breaks off in its body


@dataclass(frozen=True, slots=True)
class Fault:
    """One operation's fault."""

    operation: Operation
    kind: Kind
    status: int = 500
    seconds: float = 0.0


_ROUTES = (
    ("POST", r"/containers/create", Operation.CREATE),
    ("POST", r"/containers/[^/]+/attach", Operation.ATTACH),
    ("POST", r"/containers/[^/]+/start", Operation.START),
    ("POST", r"/containers/[^/]+/wait", Operation.WAIT),
    ("POST", r"/containers/[^/]+/kill", Operation.KILL),
    ("DELETE", r"/containers/[^/]+", Operation.REMOVE),
    ("GET", r"/containers/json", Operation.LIST),
    ("GET", r"/containers/[^/]+/json", Operation.INSPECT),
    ("GET", r"/events", Operation.EVENTS),
)


def operation_of(head: bytes) -> Operation:
    """Return what a request asks, from its first line."""
    method, _, rest = head.decode("latin-1").partition(" ")
    path = re.sub(r"^/v[0-9.]+", "", rest.split(" ")[0].partition("?")[0])
    for known, pattern, operation in _ROUTES:
        if method == known and re.fullmatch(pattern, path):
            return operation
    return Operation.OTHER


@dataclass
class Gate:
    """Holds an operation where it comes in, so that a test can do something at just that step."""

    operation: Operation
    reached: threading.Event = field(default_factory=threading.Event)
    opened: threading.Event = field(default_factory=threading.Event)


class GoneError(Exception):
    """The other end closed the connection."""


class Wire:
    """One end of a connection: reads heads and bodies, keeps what it read too much."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        self.held = b""

    def more(self) -> bytes:
        """Return the next bytes, what was held first. Raises GoneError at the end."""
        data, self.held = self.held, b""
        if data:
            return data
        try:
            data = self.end.recv(CHUNK_BYTES)
        except OSError as error:
            raise GoneError from error
        if not data:
            raise GoneError
        return data

    def until(self, mark: bytes) -> bytes:
        """Return everything up to and with `mark`."""
        data = b""
        while mark not in data:
            data += self.more()
        found, _, self.held = data.partition(mark)
        return found + mark

    def exactly(self, size: int) -> Iterator[bytes]:
        """Yield `size` bytes in pieces."""
        while size:
            data = self.more()
            self.held = data[size:]
            yield data[:size]
            size -= len(data[:size])

    def body(self, head: bytes) -> Iterator[bytes]:
        """Yield a message's body as it is on the wire."""
        fields = head.lower()
        if b"\r\ntransfer-encoding: chunked" in fields:
            while True:
                line = self.until(b"\r\n")
                yield line
                yield from self.exactly(int(line, 16) + 2)
                if int(line, 16) == 0:
                    return
        length = re.search(rb"\r\ncontent-length: *(\d+)", fields)
        if length:
            yield from self.exactly(int(length[1]))

    def send(self, data: bytes) -> None:
        """Send all of it. Raises GoneError."""
        try:
            self.end.sendall(data)
        except OSError as error:
            raise GoneError from error


class EngineProxy:
    """The proxy: `listen` is its socket, `engine` the one it stands before. Use it as a context manager."""

    def __init__(self, listen: Path, engine: Path) -> None:
        self.socket = listen
        self._engine = engine
        self._faults: dict[Operation, Fault] = {}
        self._gates: dict[Operation, Gate] = {}
        self._healed = threading.Event()
        self._ends: set[socket.socket] = set()
        self._taken_over: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()
        self._listener = socket.socket(socket.AF_UNIX)
        self.seen: list[Operation] = []

    def __enter__(self) -> Self:
        self._listener.bind(str(self.socket))
        self._listener.listen(128)
        self._run(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.heal()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._close(self._ends)
        for thread in self._threads:
            thread.join(timeout=10)
        assert not [thread for thread in self._threads if thread.is_alive()]

    # -- what a test does ---------------------------------------------------------------------------------
    def breaks(self, *faults: Fault) -> None:
        """Have operations go wrong from now on, until `heal`."""
        self._healed.clear()
        self._faults.update({fault.operation: fault for fault in faults})

    def heal(self) -> None:
        """Have everything go right again; what hung has its connection closed."""
        self._faults.clear()
        for gate in self._gates.values():
            gate.opened.set()
        self._gates.clear()
        self._healed.set()

    @contextlib.contextmanager
    def at(self, operation: Operation) -> Iterator[Gate]:
        """Hold `operation` where it comes in until the block is left; its `reached` tells when one did."""
        gate = self._gates[operation] = Gate(operation)
        try:
            yield gate
        finally:
            self._gates.pop(operation, None)
            gate.opened.set()

    def cut_attached(self) -> None:
        """Close all attach connections, as they are."""
        self._close(self._taken_over)

    # -- what it does -------------------------------------------------------------------------------------
    def _run(self, work: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, daemon=True)
        self._threads = [one for one in self._threads if one.is_alive()] + [thread]
        thread.start()

    def _close(self, ends: set[socket.socket]) -> None:
        with self._lock:
            for end in ends:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._run(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        """Serve one connection with one of the engine's behind it, until either goes."""
        engine = socket.socket(socket.AF_UNIX)
        with self._lock:
            self._ends |= {client, engine}
        try:
            engine.connect(str(self._engine))
            near, far = Wire(client), Wire(engine)
            while self._exchange(near, far):
                pass
        except (GoneError, OSError):
            pass
        finally:
            with self._lock:
                self._ends -= {client, engine}
                self._taken_over -= {client, engine}
            client.close()
            engine.close()

    def _exchange(self, near: Wire, far: Wire) -> bool:
        """Pass one request on and its answer back; False when the connection is done for."""
        if not near.held:
            ready, _, _ = select.select([near.end, far.end], [], [])
            if far.end in ready:
                return False  # an idle connection that the engine closes
        head = near.until(b"\r\n\r\n")
        body = b"".join(near.body(head))
        operation = operation_of(head)
        self.seen.append(operation)
        gate = self._gates.get(operation)
        if gate is not None:
            gate.reached.set()
            gate.opened.wait()
        fault = self._faults.get(operation)
        if fault is not None and not self._does(fault, near):
            return False
        far.send(head + body)
        return self._pass_back(fault.kind if fault else None, near, far)

    def _pass_back(self, kind: Kind | None, near: Wire, far: Wire) -> bool:
        """Pass the engine's answer back, or what a fault leaves of it."""
        head = far.until(b"\r\n\r\n")
        taken_over = b" 101 " in head.partition(b"\r\n")[0]
        if kind in {Kind.LOSE, Kind.SWALLOW}:
            if not taken_over:
                b"".join(far.body(head))
            if kind is Kind.SWALLOW:
                self._healed.wait()
            return False
        near.send(head)
        if taken_over:
            self._join(near, far)
            return False
        for piece in far.body(head):
            if kind is Kind.BREAK:
                near.send(piece[:1])
                return False
            near.send(piece)
        return True

    def _does(self, fault: Fault, near: Wire) -> bool:
        """Do what a fault does before the engine; whether the request goes on to it."""
        match fault.kind:
            case Kind.STATUS:
                content = json.dumps({"message": ENGINE_TEXT}).encode()
                near.send(_answer(fault.status, content))
            case Kind.NONSENSE:
                near.send(_answer(200, f"<html>{ENGINE_TEXT}</html>".encode()))
            case Kind.HANG:
                self._healed.wait()
            case Kind.DELAY:
                self._healed.wait(fault.seconds)
                return True
            case Kind.LOSE | Kind.SWALLOW | Kind.BREAK:
                return True
        return False

    def _join(self, near: Wire, far: Wire) -> None:
        """Pass bytes both ways, each direction's end too, until both ended or one side is wholly closed."""
        with self._lock:
            self._taken_over |= {near.end, far.end}
        peers = {near.end.fileno(): (near, far), far.end.fileno(): (far, near)}
        watch = select.poll()
        for number in peers:
            watch.register(number, select.POLLIN)
        for wire, other in tuple(peers.values()):
            if wire.held:
                other.send(wire.more())
        while peers:
            for number, event in watch.poll():
                wire, other = peers[number]
                try:
                    other.send(wire.more())
                except GoneError:
                    if event & (select.POLLHUP | select.POLLERR):
                        return
                    watch.unregister(number)
                    del peers[number]
                    with contextlib.suppress(OSError):
                        other.end.shutdown(socket.SHUT_WR)


def _answer(status: int, content: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status} Planted\r\ncontent-type: application/json\r\ncontent-length: {len(content)}\r\n"
    )
    return head.encode() + b"connection: close\r\n\r\n" + content
