"""Runs the program of one turn and reads what it prints: NDJSON on stdout, talk on stderr.

The program is `runtime.turn.once` in the front's container, or `runtime.unsandboxed` on this host; both
print the same (docs/reference/protocols.md). The text goes to its stdin, because arguments are readable by
everybody on the host.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from runtime import layout
from runtime.cli.log_lines import Line, plain
from runtime.cli.output import printable, talk
from runtime.errors import EngineUnavailable, GatehouseError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

LINE_MAX_BYTES: Final = 8 * 1024 * 1024
WATCHDOG_SECONDS: Final = layout.TURN_MAX_SECONDS + 60.0  # a turn ends itself before
STOP_SECONDS: Final = 10.0
DRAIN_SECONDS: Final = 1.0
TALK_MAX_LINES: Final = 2000


@dataclass(slots=True)
class Program:
    """One run of a turn's program. `stop` ends what the command alone would leave running."""

    command: list[str]
    environ: Mapping[str, str]
    folder: Path
    stop: Callable[[], None] | None = None
    code: int = -1
    complaint: str = ""

    async def events(self, text: str) -> AsyncGenerator[dict[str, Any]]:
        """Run it on a visitor's text; yields the objects that it prints, and has `code` afterwards.

        Raises GatehouseError when it prints something else or does not end; ends it on every way out.
        """
        try:
            process = await asyncio.create_subprocess_exec(
                *self.command,
                env=dict(self.environ),
                cwd=self.folder,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LINE_MAX_BYTES,
                start_new_session=True,  # ^C is for us, who then end it
            )
        except OSError as error:
            raise EngineUnavailable(f"{self.command[0]} cannot be started: {error.strerror}") from error
        talking = asyncio.create_task(self._talk(process))
        try:
            async with asyncio.timeout(WATCHDOG_SECONDS):
                await _feed(process, text)
                async for event in _objects(process):
                    yield event
                self.code = await process.wait()
                await talking
        except TimeoutError:
            raise GatehouseError(f"the turn did not end within {WATCHDOG_SECONDS:.0f} s") from None
        finally:
            await self._end(process, talking)

    async def _talk(self, process: asyncio.subprocess.Process) -> None:
        """Pass on what it says on stderr, line by line, its log made short, and keep the last sentence."""
        if process.stderr is None:
            return
        told = 0
        while raw := await _line(process.stderr):
            line = Line(0, "", raw.decode("utf-8", "replace").rstrip())
            words = printable(line.untrusted_text) if line.fields is None else f"log: {plain(line).words}"
            if line.fields is None and words:
                self.complaint = words
            if words and (told := told + 1) <= TALK_MAX_LINES:
                talk(words, dim=line.fields is not None)

    async def _end(self, process: asyncio.subprocess.Process, talking: asyncio.Task[None]) -> None:
        """See to it that nothing of the run is left, whatever ended it."""
        if process.returncode is None:
            if self.stop is not None:
                await asyncio.to_thread(self.stop)
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                async with asyncio.timeout(STOP_SECONDS):
                    await process.wait()
            except TimeoutError:
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
        talking.cancel()
        await asyncio.wait({talking})
        # A pipe that is not read to its end stays open until the collector finds it.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                for stream in (process.stdout, process.stderr):
                    while stream is not None and await stream.read(65536):
                        pass


async def _feed(process: asyncio.subprocess.Process, text: str) -> None:
    if process.stdin is None:
        return
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        process.stdin.write(text.encode())
        await process.stdin.drain()
        process.stdin.close()
        await process.stdin.wait_closed()


async def _objects(process: asyncio.subprocess.Process) -> AsyncGenerator[dict[str, Any]]:
    if process.stdout is None:
        return
    while line := await _line(process.stdout):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict) or not isinstance(value.get("event"), str):
            raise GatehouseError("the turn's program printed something that is no event", "./gatehouse up")
        yield value


async def _line(stream: asyncio.StreamReader) -> bytes:
    try:
        return await stream.readline()
    except ValueError as error:
        raise GatehouseError(f"the turn's program printed a line over {LINE_MAX_BYTES} bytes") from error
