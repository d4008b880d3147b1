"""Reads the logs of containers through the docker client: what is there, and what comes.

The engine's own time of a line places it, one clock for all services. Following starts behind the newest line
that was read, so that no line is lost or seen twice, and goes on with a service that is started anew.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Final

from runtime.cli.log_lines import Line, parse
from runtime.cli.said import Said, is_engine_gone, line_of, unavailable
from runtime.errors import EngineUnavailable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from runtime.cli.containers import Container
    from runtime.cli.engine import Engine

LINE_MAX_BYTES: Final = 1024 * 1024
BATCH_SECONDS: Final = 0.1  # services speak at once: lines this close together are put in order
AGAIN_SECONDS: Final = 1.0


async def history(engine: Engine, containers: Sequence[Container], *bounds: str) -> list[Line]:
    """Return the lines that the containers have logged, in their order. Raises EngineUnavailable.

    `bounds` are further arguments of `docker logs`: `--since=…`, `--tail=…`.
    """
    found = await asyncio.gather(*(_read(engine, one, bounds) for one in containers))
    return sorted(line for lines in found for line in lines)


async def follow(engine: Engine, services: Sequence[str], seen: dict[str, int]) -> AsyncGenerator[list[Line]]:
    """Yield what the services log from now on, a few lines in order at a time, until the stack is gone.

    `seen` is the time of each service's newest line that was read, in nanoseconds.
    """
    lines: asyncio.Queue[Line | None] = asyncio.Queue(maxsize=10_000)

    async def all_services() -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for service in services:
                    group.create_task(_keep_reading(engine, service, seen.get(service, 0), lines))
        finally:
            lines.put_nowait(None)

    reading = asyncio.create_task(all_services())
    try:
        while (first := await lines.get()) is not None:
            await asyncio.sleep(BATCH_SECONDS)
            batch, ended = [first], False
            while not lines.empty() and not ended:
                line = lines.get_nowait()
                if line is None:
                    ended = True
                else:
                    batch.append(line)
            yield sorted(batch)
            if ended:
                break
    finally:
        reading.cancel()
        await asyncio.wait({reading})
    if not reading.cancelled() and (error := reading.exception()) is not None:
        raise _first(error)


async def _keep_reading(engine: Engine, service: str, newest: int, lines: asyncio.Queue[Line | None]) -> None:
    """Follow one service, and its next container when this one ends, until the stack has no container."""
    while True:
        containers = await asyncio.to_thread(engine.containers, several=True)
        if not any(one.running for one in containers):
            return
        for container in containers:
            if container.service != service or not container.running:
                continue
            since = f"--since={newest // 10**9}.{newest % 10**9 + 1:09d}"
            async with contextlib.aclosing(_lines(engine, container, "--follow", since)) as found:
                async for line in found:
                    newest = max(newest, line.nanoseconds)
                    await lines.put(line)
        await asyncio.sleep(AGAIN_SECONDS)


async def _read(engine: Engine, container: Container, bounds: Sequence[str]) -> list[Line]:
    async with contextlib.aclosing(_lines(engine, container, *bounds)) as found:
        return [line async for line in found]


async def _lines(engine: Engine, container: Container, *arguments: str) -> AsyncGenerator[Line]:
    """Yield one container's lines as the docker client gives them."""
    try:
        process = await asyncio.create_subprocess_exec(
            *engine.command("logs", "--timestamps", *arguments, container.id),
            env=dict(engine.environ),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,  # the services log to stderr
            limit=LINE_MAX_BYTES,
            start_new_session=True,  # ^C is for us, who then end it
        )
    except OSError as error:
        raise EngineUnavailable(f"docker cannot be started: {error.strerror}") from error
    complaint = ""
    try:
        while (raw := await _line(process)) is not None:
            text = raw.decode("utf-8", "replace").rstrip("\r\n")
            line = parse(container.service, text)
            if line is not None:
                yield line
            elif text:
                complaint = text
        code = await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    if code and is_engine_gone(complaint):
        raise unavailable(Said(code, "", complaint))
    if code and "No such container" not in complaint:
        raise EngineUnavailable(f"the logs of {container.service} cannot be read: {line_of(complaint)}")


async def _line(process: asyncio.subprocess.Process) -> bytes | None:
    """Return the next line, None at the end; a line past the limit comes without its beginning."""
    if process.stdout is None:
        return None
    while True:
        try:
            return await process.stdout.readline() or None
        except ValueError:
            continue


def _first(error: BaseException) -> BaseException:
    return _first(error.exceptions[0]) if isinstance(error, BaseExceptionGroup) else error
