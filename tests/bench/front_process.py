"""`python -m tests.bench.front_process SLOTS`: the front as the deployment serves it, with a stub runner.

Everything between the socket and the runner is the product's own: `runtime.server.serve` with its protocol,
middlewares, stores and receipts, for the instance `ada`. What the stub leaves out: the spawner, and so all
that a turn costs. It prints its port, answers `measure` on stdin with what it holds, and ends when that
closes.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import signal
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from runtime import server
from runtime.agents.instance import load_instance
from runtime.log import configure
from runtime.turn.events import Answer, Snapshot
from tests.bench.child import REPO, say, stdin_lines
from tests.bench.proc import resident_bytes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.applications import Starlette

    from runtime.turn.events import TurnEvent
    from runtime.turn.plan import TurnPlan

GRACE_SECONDS = 0.1  # for a stream that nobody watches, so that the policy ends turns within the run
SHORT_SECONDS = 0.3
STEP_SECONDS = 0.1


class StubRunner:
    """Answers at once; a text that begins with `short` takes SHORT_SECONDS, with `hold` until it is ended."""

    def __init__(self, digest: str) -> None:
        self._digest = digest

    async def run(self, plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
        text: str = json.loads(plan.prompt.splitlines()[-1])["text"]
        steps = 0
        while text.startswith("hold") or (text.startswith("short") and steps < SHORT_SECONDS / STEP_SECONDS):
            steps += 1
            yield Snapshot("A word, and another. " * (10 + min(steps, 100)))
            await asyncio.sleep(STEP_SECONDS)
        yield Answer(f"echo: {text}")

    async def agent(self, agent: str) -> dict[str, Any]:
        return {"id": agent, "digest": self._digest, "pack": "0" * 64, "demo": False}

    async def aclose(self) -> None:
        return


def holdings(app: Starlette) -> dict[str, int]:
    """Return what the front's stores hold, in numbers and in the bytes that they count themselves."""
    forget = app.state.forget
    return {
        "tasks": len(forget._store),
        "task_bytes": forget._store.size_bytes,
        "contexts": len(forget._memory),
        "memory_bytes": forget._memory.size_bytes,
        "turns": len(app.state.executor._turns),
        "running": app.state.executor.running,
        "asyncio_tasks": len(asyncio.all_tasks()),
    }


def measure(app: Starlette, word: str) -> dict[str, int]:
    """Return what the front holds; `collect` then lets go of what can go, in steps."""
    facts = {"resident": resident_bytes(os.getpid()), "blocks": sys.getallocatedblocks()} | holdings(app)
    if word == "collect":
        gc.collect()
        facts["blocks"] = sys.getallocatedblocks()
        facts["collected"] = resident_bytes(os.getpid())
        ctypes.CDLL(None).malloc_trim(0)
        facts["trimmed"] = resident_bytes(os.getpid())
    return facts


async def main(slots: int) -> None:
    configure("front")
    ada = load_instance(REPO, "ada", {}, check_sources=False)
    limits = replace(ada.limits, max_concurrency=slots, disconnect_grace_seconds=GRACE_SECONDS)
    ada = replace(ada, limits=limits)
    built: list[Starlette] = []
    build_app = server.build_app

    def building(*arguments: Any, **options: Any) -> Starlette:
        built.append(build_app(*arguments, **options))
        return built[-1]

    server.build_app = building  # `serve` keeps its app to itself, and its stores are asked for here
    listener = server.listen_tcp("127.0.0.1", 0)
    serving = asyncio.create_task(
        server.serve(ada, ada.digest, StubRunner(ada.digest), [listener], ops=False)
    )
    say(port=listener.getsockname()[1])

    async def take(word: str) -> None:
        say(**measure(built[0], word))

    await stdin_lines(take)
    os.kill(os.getpid(), signal.SIGTERM)
    await serving


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
