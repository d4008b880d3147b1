"""The front that the clients call: the real one over HTTP, with a runner that plays what the message names.

python -m tests.clients.front        prints its address on one line and serves until its input ends
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING

from runtime.turn.events import Answer, Snapshot, Step, TurnEvent
from tests.a2a.conftest import ScriptedRunner, definition, serving
from tests.clients.expectations import GROWN, SENTENCE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from runtime.turn.plan import TurnPlan

QUIET_SECONDS = 6.0  # more than the five after which the Python clients give up on a silent connection


async def play(plan: TurnPlan) -> AsyncGenerator[TurnEvent, None]:
    """Answer as the visitor's text says: `grow`, `wait`, `quiet`, `before`, or anything, which is echoed."""
    lines = [json.loads(line) for line in plan.prompt.splitlines()]
    text = lines[-1]["text"]
    match text:
        case "grow":
            yield Step("Read", "reading hours.md")
            for part in (1, 2, 4, 8):
                yield Snapshot(SENTENCE * part)
            yield Answer(GROWN)
        case "wait":
            yield Snapshot(GROWN)
            await asyncio.Event().wait()
        case "quiet":
            await asyncio.sleep(QUIET_SECONDS)
            yield Answer(SENTENCE)
        case "before":
            said = [line["text"] for line in lines[:-1] if line["from"] == "visitor"]
            yield Answer("before: " + " | ".join(said))
        case _:
            yield Answer(f"echo: {text}")


async def main() -> None:
    agent = definition(timeout_seconds=60.0, max_concurrency=32)
    async with serving(ScriptedRunner(play), agent, own_url=True) as front:
        print(front.url, flush=True)  # noqa: T201 - this line is what the program is for
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
