"""Turn path 8/13: the only file that imports docker: create, attach, start, end, verify gone.

Whoever can talk to the engine is root on the host, so everything that does is here (architecture §3). Every
call runs in a thread with its own deadline, because docker-py blocks and an engine can hang; none can hold
the event loop, nor its thread for longer than the connection's timeout.

Measured, and why the end has this order: with an attached reader that does not read, `kill` and `remove`
hang until the client's timeout; with the attach connection closed first they take milliseconds.

What an engine says of wait, kill and remove is not believed, neither a yes nor a no: an answer can be lost
when the work is done. A container is gone when the engine, asked for it, knows none.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import os
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound, NotFound

from runtime import layout
from runtime.errors import EngineTooOld, EngineUnavailable, ImageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Call = TypeVar("Call")

CALL_SECONDS = 10.0
NATURAL_END_SECONDS = 2.0
# What a turn's place is held for when the engine fails at its end; the reaper goes on from there.
KILL_SECONDS = 3.0  # then `remove`, which kills too
REMOVE_SECONDS = 6.0
REMOVED_SECONDS = 2.0  # for a removal that is under way
ASK_SECONDS = 3.0  # for what is asked last: is it there, how did it end
THREADS = 24
READ_BYTES = 64 * 1024
KILLED = 137
_API = ".".join(str(part) for part in layout.MINIMUM_ENGINE_API)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the engine says of itself: version, API, processor count, and the names of its runtimes."""

    version: str
    api: str
    cpus: int
    runtimes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A container of ours or of somebody else's, as the reaper sees it: ids are 64 hex digits."""

    id: str
    image_id: str
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Ended:
    """How a container ended, as the engine saw it; None when it no longer knows."""

    exit_code: int | None = None
    oom: bool = False


class Attached:
    """The container's stdin, and its stdout and stderr as one framed stream (output.py cuts it)."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send_and_end(self, data: bytes) -> None:
        """Write `data` to the container's stdin and end it. Raises EngineUnavailable when nobody reads."""
        try:
            self._writer.write(data)
            await self._writer.drain()
            self._writer.write_eof()
        except OSError as error:
            raise EngineUnavailable(f"the container took no input: {error}") from error

    async def read(self) -> bytes:
        """Return what there is, at most READ_BYTES; b"" at the end, also when the connection broke."""
        try:
            return await self._reader.read(READ_BYTES)
        except OSError:
            return b""

    def close(self) -> None:
        """Close the connection at once, unread data and all. Must come before kill and remove."""
        self._writer.transport.abort()


class _Client(docker.APIClient):
    """docker-py's client with a timeout on every request.

    By itself it gives `attach` and `events` none: an engine that hangs would keep their threads for ever.
    """

    def request(self, *arguments: Any, **options: Any) -> requests.Response:
        """Make a request as any session of requests does."""
        if options.get("timeout") is None:
            options["timeout"] = self.timeout
        return super().request(*arguments, **options)


class Engine:
    """The Docker engine behind one Unix socket.

    Methods raise EngineUnavailable when it does not answer in time or answers with an error.
    """

    def __init__(self, engine_socket: Path, call_seconds: float = CALL_SECONDS) -> None:
        self._socket = engine_socket
        self._seconds = call_seconds
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="engine")
        # Naming the version keeps the constructor from asking the engine; `facts` does, with a deadline.
        self._api: Any = _Client(f"unix://{engine_socket}", version=_API, timeout=math.ceil(call_seconds))

    async def close(self) -> None:
        """Give up the connections; calls still in threads end by their own timeouts."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._api.close()

    async def facts(self) -> Facts:
        """Return what the engine is. Raises EngineUnavailable, or EngineTooOld below API 1.45."""
        if not os.access(self._socket, os.W_OK):
            missing = not self._socket.exists()
            raise EngineUnavailable(
                f"{self._socket} {'does not exist' if missing else 'may not be opened'}",
                "start the Docker engine" if missing else "run the spawner in the group that owns the socket",
            )
        version = await self._call("version", lambda: self._api.version(api_version=False))
        api = str(version.get("ApiVersion", "0.0"))
        if tuple(int(part) for part in api.split(".")) < layout.MINIMUM_ENGINE_API:
            sentence = f"the Docker engine {version.get('Version')} speaks API {api}"
            raise EngineTooOld(sentence, f"install one with API {_API} (Docker 26.0) or later")
        info = await self._call("info", self._api.info)
        runtimes = tuple(sorted(info.get("Runtimes") or ()))
        return Facts(str(version.get("Version")), api, int(info.get("NCPU") or 1), runtimes)

    async def image_id(self, name: str) -> str:
        """Return the id (`sha256:…`) of the image of that name. Raises ImageError when there is none."""
        try:
            image = await self._call("inspect image", lambda: self._api.inspect_image(name))
        except EngineUnavailable as error:
            if isinstance(error.__cause__, ImageNotFound):
                raise ImageError(
                    f"the image {name} is not there", "build it: docker compose build"
                ) from error
            raise
        return str(image["Id"])

    async def inspect(self, container: str) -> dict[str, Any] | None:
        """Return the engine's description of a container, or None when there is none of that id or name."""
        try:
            found: dict[str, Any] = await self._call(
                "inspect", lambda: self._api.inspect_container(container)
            )
        except EngineUnavailable as error:
            if isinstance(error.__cause__, NotFound):
                return None
            raise
        return found

    async def create(self, body: Mapping[str, Any], name: str) -> str:
        """Create a container from the wire body as it is; returns its id. ImageError without its image."""
        try:
            made = await self._call(
                "create", lambda: self._api.create_container_from_config(dict(body), name=name)
            )
        except EngineUnavailable as error:
            if isinstance(error.__cause__, ImageNotFound):
                raise ImageError("the turn image is gone", "build it: docker compose build") from error
            raise
        return str(made["Id"])

    async def attach(self, container: str) -> Attached:
        """Attach to stdin, stdout and stderr; must come before `start`, so that no byte is missed."""
        raw = await self._call("attach", lambda: self._attach(container))
        try:
            reader, writer = await asyncio.open_unix_connection(sock=raw, limit=2 * READ_BYTES)
        except OSError as error:
            raw.close()
            raise EngineUnavailable(f"the attach connection broke: {error}") from error
        return Attached(reader, writer)

    async def start(self, container: str) -> None:
        """Start a created container."""
        await self._call("start", lambda: self._api.start(container))

    async def end(self, container: str, *, kill: bool, since: float) -> Ended:
        """Kill (unless it ends by itself in two seconds), remove, and return when the engine forgot it.

        The attach connection must be closed before. `container` is an id or a name; `since` is the Unix time
        at which it was made, for asking the engine how it ended. Raises EngineUnavailable when it is still
        there.
        """
        if (
            kill
            or not await self._removed(container, NATURAL_END_SECONDS)
            or await self._is_there(container)  # whatever was said of its removal
        ):
            await self._destroy(container)
        return await self._how_it_ended(container, since)

    async def containers(self, label: str) -> list[Found]:
        """Return all containers, running or not, that carry `label` (`name` or `name=value`)."""
        found = await self._call("list", lambda: self._api.containers(all=True, filters={"label": label}))
        return [Found(str(one["Id"]), str(one["ImageID"]), dict(one["Labels"] or {})) for one in found]

    def _attach(self, container: str) -> socket.socket:
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        wrapped: Any = self._api.attach_socket(container, params=params)
        # docker-py hides the socket in a file object that owns the response: take a descriptor of our own.
        raw = socket.socket(fileno=os.dup(wrapped.fileno()))
        wrapped._response.close()  # noqa: SLF001  closing it any other way leaks the connection
        raw.setblocking(False)  # noqa: FBT003  the only form it has
        return raw

    async def _removed(self, container: str, seconds: float) -> bool:
        """Wait until the container is removed; False when it is not within `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                await self._call(
                    "wait",
                    lambda: self._api.wait(container, timeout=math.ceil(seconds) + 1, condition="removed"),
                )
        except TimeoutError:
            return False
        except EngineUnavailable as error:
            return isinstance(error.__cause__, NotFound)
        return True

    async def _destroy(self, container: str) -> None:
        """Kill and remove. Raises EngineUnavailable when the container is not seen to be gone."""
        attempts: tuple[tuple[str, float, Callable[[], Any]], ...] = (
            ("kill", KILL_SECONDS, lambda: self._api.kill(container)),
            ("remove", REMOVE_SECONDS, lambda: self._api.remove_container(container, force=True, v=True)),
        )
        said = ""
        for what, seconds, call in attempts:
            try:
                await self._call(what, call, seconds)
            except EngineUnavailable as error:  # it may have stopped or gone by itself, or the answer is lost
                said = error.sentence
        if not await self._is_there(container):
            return
        if not await self._removed(container, REMOVED_SECONDS) or await self._is_there(container):
            raise EngineUnavailable(f"the container {container[:12]} could not be removed: {said}")

    async def _is_there(self, container: str) -> bool:
        try:
            await self._call("inspect", lambda: self._api.inspect_container(container), ASK_SECONDS)
        except EngineUnavailable as error:
            if isinstance(error.__cause__, NotFound):
                return False
            raise
        return True

    async def _how_it_ended(self, container: str, since: float) -> Ended:
        """Ask the engine's recent events: AutoRemove leaves no container to inspect.

        Asked by requests' own `get`, which reads the answer whole: docker-py's `events` lets the errors of
        urllib3 through when an answer breaks off.
        """

        def events() -> str:
            answer = self._api.get(
                f"{self._api.base_url}/v{_API}/events",
                params={
                    "since": int(since),
                    "until": f"{time.time():.9f}",  # to the nanosecond: a whole second misses the last one
                    "filters": json.dumps({"container": [container], "event": ["oom", "die"]}),
                },
                timeout=ASK_SECONDS,
            )
            answer.raise_for_status()
            return str(answer.text)

        try:
            told = await self._call("events", events, ASK_SECONDS)
            found = [json.loads(line) for line in told.splitlines()]
        except (EngineUnavailable, ValueError):
            return Ended()
        code = None
        for event in found:
            attributes = (event.get("Actor") or {}).get("Attributes") or {}
            with contextlib.suppress(ValueError):
                code = int(attributes.get("exitCode", ""))
        return Ended(code, any(event.get("Action") == "oom" for event in found))

    async def _call(self, what: str, call: Callable[[], Call], seconds: float | None = None) -> Call:
        """Run a blocking call in a thread, with a deadline on this side as well as on the socket.

        The thread of a call that is given up for being longer than `seconds` ends by the socket's.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._seconds + 2 if seconds is None else seconds):
                return await loop.run_in_executor(self._threads, call)
        except TimeoutError as error:
            sentence = f"the engine did not answer {what} in time"
            raise EngineUnavailable(sentence, "look at the engine's log") from error
        except (DockerException, requests.exceptions.RequestException, OSError) as error:
            sentence = f"the engine refused {what}: {_said(error)}"
            raise EngineUnavailable(sentence, "look at the engine's log") from error


def _said(error: Exception) -> str:
    text = error.explanation if isinstance(error, APIError) and error.explanation else error
    return " ".join(str(text).split())[:300]
