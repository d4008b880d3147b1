"""`gatehouse ask`: one question to an agent over A2A, answered on stdout as it comes.

^C and the time limit end the task on the server too, because a turn that nobody waits for keeps its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from typing import TYPE_CHECKING, Final

import click

from runtime.cli.ask_view import Ended, JsonView, TextView
from runtime.cli.command import Command
from runtime.cli.engine import AGENT, own_stack
from runtime.cli.failures import INTERRUPTION, told
from runtime.cli.output import printable, talk
from runtime.cli.said import line_of
from runtime.cli.settings import Settings, pass_settings
from runtime.errors import INTERRUPTED, GatehouseError, ServiceUnreachable, UsageError

if TYPE_CHECKING:
    from runtime.cli.ask_client import Agent
    from runtime.cli.ask_view import View

QUESTION_MAX_BYTES: Final = 1024 * 1024
CONTEXT_MAX_CHARS: Final = 256
TIMEOUT_SECONDS: Final = 300.0


@click.command(
    "ask",
    cls=Command,
    prints=(
        "The answer; on a terminal as it builds up. Steps and how to go on are on stderr. With --json one "
        "object a line: task, step, snapshot, and last answer or failed with the whole text, context and "
        "error (null for an answer)."
    ),
    exits=(0, 1, 8),
    notes={
        0: "an answer",
        1: "the agent could not answer or refused; what it said is on stdout",
        8: "no working A2A agent is at the address, or it gave no answer in time",
        130: "interrupted; the task was cancelled on the server",
    },
    examples=(
        'gatehouse ask "When are office hours?"',
        'gatehouse ask --context 7f0c… "And on Fridays?"',
        "gatehouse ask - <question.txt",
        'gatehouse ask --url https://agent.example --json "Who are you?"',
    ),
)
@click.argument("words", metavar="QUESTION", nargs=-1, required=True)
@click.option("--url", metavar="URL", help="The agent's address; default: this checkout's own stack.")
@click.option("--context", metavar="ID", default="", help="Go on with a conversation.")
@click.option(
    "--timeout",
    "timeout_seconds",
    metavar="SECONDS",
    type=click.FloatRange(1, 3600),
    default=TIMEOUT_SECONDS,
    show_default=True,
    help="Cancel the task when there is no answer by then.",
)
@click.option("--json", "as_json", is_flag=True, help="Print what happens as JSON, one object a line.")
@pass_settings
def command(
    settings: Settings,
    *,
    words: tuple[str, ...],
    url: str | None,
    context: str,
    timeout_seconds: float,
    as_json: bool,
) -> int:
    """Ask an agent over A2A and stream the answer.

    QUESTION is the text, or - to read it from stdin. Any A2A agent of version 1.0 or 0.3 can be asked.
    """
    again = ("ask", *(("--url", url) if url is not None else ()))
    view: View = JsonView() if as_json else TextView(again)
    agent: Agent | None = None
    try:
        question = read_question(words)
        if len(context) > CONTEXT_MAX_CHARS or not context.isprintable():
            raise UsageError("--context is no id of a conversation", "copy it from the end of an answer")
        from runtime.cli import ask_client, ask_http  # noqa: PLC0415 -- the A2A client takes half a second

        address = ask_http.base_address(url) if url is not None else _own(settings)
        agent = ask_client.Agent(address, own=url is None)
        ended = asyncio.run(_ask(agent, view, question, context, timeout_seconds))
    except GatehouseError as error:
        view.failed(told(error))
        raise
    except KeyboardInterrupt:
        view.failed(INTERRUPTION)
        talk(f"gatehouse: interrupted; {agent.afterwards if agent else 'nothing was asked'}")
        return INTERRUPTED
    if (failure := ended.failure) is not None:
        raise failure
    return 0


def _own(settings: Settings) -> str:
    """Return the address of this checkout's stack; says so when it serves another instance than is set."""
    address, serves = own_stack(settings)
    if settings.environ.get(AGENT, "").strip() and serves and serves != settings.agent:
        talk(f"{line_of(serves, 63)} answers, not {settings.agent}, which {AGENT} names")
    return address


async def _ask(agent: Agent, view: View, question: str, context: str, seconds: float) -> Ended:
    try:
        async with asyncio.timeout(seconds), contextlib.aclosing(agent.ask(question, context)) as events:
            said = False
            async for event in events:
                if agent.elsewhere and not said:
                    said = True
                    talk(f"the card sends the question on to {printable(agent.elsewhere)}")
                view.show(event)
                if isinstance(event, Ended):
                    return event
    except TimeoutError:
        await agent.cancel()
        raise ServiceUnreachable(f"there was no answer within {seconds:g} s", agent.afterwards) from None
    except (asyncio.CancelledError, BrokenPipeError):  # nobody waits for the answer any more
        await agent.cancel()
        raise
    finally:
        await agent.aclose()
    raise ServiceUnreachable("the agent stopped talking before its answer was complete", "ask again")


def read_question(words: tuple[str, ...]) -> str:
    """Return the question of a command line, from stdin when it is `-`. Raises UsageError for none."""
    if words == ("-",):
        if sys.stdin.isatty():
            talk("Write the question and end it with ^D on a line of its own.")
        raw = sys.stdin.buffer.read(QUESTION_MAX_BYTES + 1)
    else:
        raw = " ".join(words).encode("utf-8", "surrogateescape")
    if len(raw) > QUESTION_MAX_BYTES:
        raise UsageError(f"the text is larger than {QUESTION_MAX_BYTES // 1024} KB", "shorten it")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"the text is not UTF-8 (byte {error.start})", "convert it") from None
    if not text.strip():
        raise UsageError("the text is empty", "write it in quotes, or - to read it from stdin")
    return text.strip()
