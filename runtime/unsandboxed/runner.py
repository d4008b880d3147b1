"""SubprocessRunner: turns of the bare CLI, with the sandbox's arguments, frame, stream and answer contract.

In order, for one turn: a private folder, the demo's door where the demo answers, the CLI with one line on its
stdin, lines out until the end, the deadline or a cap, then the family killed, the door closed, the folder
removed, and the one terminal event. What differs from a turn in a container is what surrounds it: nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import secrets
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import structlog

from runtime.spawner.cli_call import Places, command
from runtime.spawner.frame import framed
from runtime.spawner.output import MAX_LINES, MAX_OUTPUT_BYTES, Line, LineSplitter
from runtime.turn.events import Cause, Failed, Usage
from runtime.turn.stream import TurnStream
from runtime.unsandboxed import grants
from runtime.unsandboxed.model import choose, environment
from runtime.unsandboxed.process import Child
from runtime.unsandboxed.reported import Reported
from runtime.unsandboxed.snapshot import find_program, take

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from runtime.agents.definition import AgentDefinition
    from runtime.spawner.output import Dropped
    from runtime.turn.events import TurnEvent
    from runtime.turn.plan import TurnPlan
    from runtime.unsandboxed.demo import DemoDoors

END_SECONDS: Final = 1.0  # of a turn's time, for its end
END_SHARE: Final = 0.25  # the most of a short turn's time that is kept for its end
RESULT_GRACE_SECONDS: Final = 1.0  # after the CLI's result, for it to end by itself
EOF_GRACE_SECONDS: Final = 1.0  # after the end of stdout, for the same
DETAIL_MAX_CHARS: Final = 400  # of the end, where the reason stands; a log line has room for 500

log = structlog.get_logger("unsandboxed")


class SubprocessRunner:
    """Runs turns of one agent as child processes of ours. For loopback only; see the package."""

    def __init__(self, agent: AgentDefinition, environ: Mapping[str, str], *, root: Path) -> None:
        """Copy the agent's files. Raises ConfigError with every refusal, or HostError."""
        self._agent = agent
        self._environ = dict(environ)
        self.model = choose(environ)
        self.program = find_program(agent.binary, environ.get("PATH", ""))
        self.snapshot = take(agent, root, environ.get("TMPDIR", ""))
        self._doors: DemoDoors | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def aclose(self) -> None:
        """Remove the copy and the demo's doors. Running turns must have ended."""
        if self._ending:
            await asyncio.wait(set(self._ending))
        if self._doors is not None:
            await self._doors.aclose()
            self._doors = None
        self.snapshot.remove()

    async def agent(self, agent: str) -> dict[str, Any]:
        """Return what the spawner would say, and that there is no sandbox; OSError for another agent."""
        if agent != self._agent.id:
            raise OSError(f"there is no agent {agent} here")
        return {
            "id": agent,
            "digest": self._agent.digest,
            "pack": self.snapshot.digest,
            "demo": self.model.demo,
            "sandbox": "none",
        }

    async def run(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        """Run one turn; see runtime/turn/runner.py."""
        due = asyncio.get_running_loop().time() + plan.timeout_seconds
        deadline = due - min(END_SECONDS, plan.timeout_seconds * END_SHARE)
        if plan.agent != self._agent.id:
            yield Failed(Cause.INTERNAL, f"there is no agent {plan.agent[:80]} here")
            return
        stream = TurnStream()
        turn = _Turn(self, plan)
        try:
            failed = await turn.open(deadline)
            if failed is None:
                async with contextlib.aclosing(turn.lines(deadline)) as lines:
                    async for line in lines:
                        seen = stream.finished
                        for event in stream.feed(line.untrusted_data):
                            yield event
                        if stream.finished and not seen:
                            turn.hurry()
            yield await turn.conclude(stream, failed, due)
        finally:
            await self._close(turn)

    async def _close(self, turn: _Turn) -> None:
        """Return when the turn has ended, however often the waiting itself is cancelled."""
        turn.kill()
        ending = turn.ending()
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)
        cancelled = False
        while not ending.done():
            try:
                await asyncio.wait({ending})
            except asyncio.CancelledError:
                cancelled = True
        if cancelled:
            raise asyncio.CancelledError

    def doors(self) -> DemoDoors:
        """Return the demo's doors, made at the first turn that needs them: they belong to its event loop."""
        if self._doors is None:
            from runtime.unsandboxed.demo import DemoDoors  # noqa: PLC0415  it needs a server; the CLI's own model none

            self.doors_folder.mkdir(0o700, exist_ok=True)
            self._doors = DemoDoors(self.doors_folder)
        return self._doors

    @property
    def doors_folder(self) -> Path:
        """Where the demo's doors are made."""
        return self.snapshot.folder / "doors"

    def argv(self, folder: Path) -> list[str]:
        """Return the CLI's arguments for a turn whose private folder is `folder`."""
        snapshot = self.snapshot
        base = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
        python = (
            str(base) if base.is_file() else sys.executable
        )  # a script has the standard library, as inside
        served = (sys.executable, "-I", "-S", grants.__file__, str(snapshot.tools), python)
        places = Places(
            claude=self.program or self._agent.binary,
            grants=(*served, str(folder / "context"), str(folder)),
            persona=str(snapshot.persona),
            extra=str(snapshot.extra),
        )
        return command(self._agent, places)

    def environment(self, door_url: str, folder: Path) -> dict[str, str]:
        """Return the CLI's environment."""
        return environment(self._environ, door_url, str(folder))

    @property
    def agent_definition(self) -> AgentDefinition:
        """The agent whose turns these are."""
        return self._agent


class _Turn:
    """One turn: everything of it that must be ended."""

    def __init__(self, runner: SubprocessRunner, plan: TurnPlan) -> None:
        self._runner = runner
        self._plan = plan
        self._id = secrets.token_hex(8)
        self._folder = runner.snapshot.folder / self._id
        self._child: Child | None = None
        self._limit = 0.0
        self._reason = "exited"
        self._exit_code: int | None = None
        self._reported = Reported()
        self._counted: Usage | None = None
        self._ending: asyncio.Task[None] | None = None

    async def open(self, deadline: float) -> Failed | None:
        """Start the CLI; return why it could not be."""
        runner, plan = self._runner, self._plan
        self._limit = deadline
        agent = runner.agent_definition
        if not runner.program:
            return Failed(Cause.ENGINE, f"there is no program {agent.binary}")
        try:
            async with asyncio.timeout_at(deadline):
                folder = runner.snapshot.turn_folder(self._id)
                if plan.context:
                    (folder / "context").write_text(plan.context, "ascii")
                url = ""
                if runner.model.demo:
                    persona = runner.snapshot.persona_bytes
                    url = await runner.doors().open(self._id, plan, agent.model, persona)
                self._child = await Child.start(
                    runner.argv(folder),
                    cwd=runner.snapshot.grounding,
                    environ=runner.environment(url, folder),
                    line=message(plan.prompt),
                )
        except TimeoutError:
            return Failed(Cause.TIMEOUT, "the CLI was not started in time")
        except (OSError, ValueError) as error:
            return Failed(Cause.ENGINE, f"the CLI cannot be started: {type(error).__name__}: {error}")
        return None

    async def lines(self, deadline: float) -> AsyncGenerator[Line, None]:
        """Yield the CLI's lines to the end of its output, the deadline or a cap; then the reason is known."""
        splitter = LineSplitter()
        total_bytes = total_lines = 0
        child = self._child
        while child is not None:
            chunk = await child.read(self._limit)
            if chunk is None:
                self._reason = "deadline" if self._limit >= deadline else "exited"
                return
            total_bytes += len(chunk)
            found: list[Line | Dropped] = splitter.feed(chunk) if chunk else splitter.finish()
            total_lines += len(found)
            for piece in found[: max(0, len(found) - max(0, total_lines - MAX_LINES))]:
                if isinstance(piece, Line):
                    self._reported.feed(piece.untrusted_data)
                    yield piece
            if not chunk:
                loop = asyncio.get_running_loop()
                await child.wait_gone(min(self._limit, loop.time() + EOF_GRACE_SECONDS))
                return
            if total_bytes > MAX_OUTPUT_BYTES or total_lines > MAX_LINES:
                self._reason = "output-cap"
                return
            await asyncio.sleep(0)  # a flood that is always there must not keep the loop from others

    def hurry(self) -> None:
        """Give a CLI that has said its result a moment to end by itself."""
        now = asyncio.get_running_loop().time()
        self._limit = min(self._limit, now + RESULT_GRACE_SECONDS)

    async def conclude(self, stream: TurnStream, failed: Failed | None, due: float) -> TurnEvent:
        """End the turn and return its terminal event; at `due` even when something of it does not end."""
        alive = self._child is not None and not self._child.gone
        ending = self.ending()
        await asyncio.wait({ending}, timeout=max(0.0, due - asyncio.get_running_loop().time()))
        if ending.done() and not ending.cancelled() and (error := ending.exception()) is not None:
            log.error("turn-bug", turn=self._id, exc_info=error)
        usage = self._reported.usage if self._counted is None else self._counted
        if failed is not None:
            return Failed(failed.cause, failed.detail, usage)
        detail = self._child.untrusted_stderr_tail if self._child is not None else ""
        if alive and self._reason == "exited" and not stream.finished:
            detail = f"it closed its output and went on {detail}".strip()
        return stream.conclude(
            self._reason,
            exit_code=self._exit_code,
            detail=detail[-DETAIL_MAX_CHARS:],
            usage=usage,
        )

    def kill(self) -> None:
        """Kill the CLI and its family now, without waiting."""
        if self._child is not None:
            self._child.kill()

    def ending(self) -> asyncio.Task[None]:
        """Return the task that ends the turn; nothing cancels it."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(), name=f"end turn {self._id}")
        return self._ending

    async def _end(self) -> None:
        if self._child is not None:
            self._exit_code = await self._child.end()
            if self._exit_code is None:
                log.error("turn-not-gone", turn=self._id, hint="its CLI does not die: look for it")
        if self._runner.model.demo and self._folder.is_dir():
            self._counted = await self._runner.doors().close(self._id)
        with contextlib.suppress(OSError):
            shutil.rmtree(self._folder, ignore_errors=True)


def message(untrusted_prompt: str) -> bytes:
    """Return the line that the CLI reads on stdin: one user message, framed."""
    content = [{"type": "text", "text": framed(untrusted_prompt)}]
    value = {"type": "user", "message": {"role": "user", "content": content}}
    return json.dumps(value).encode() + b"\n"
