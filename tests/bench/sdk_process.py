"""`python -m tests.bench.sdk_process`: the A2A SDK's minimal echo server, as its users write it.

The SDK's own handler, store and routes, both dialects, and an executor that writes the task, an artifact and
the end. uvicorn has its defaults; only its log is off. It prints its port and serves until its stdin closes.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import uvicorn
from a2a.helpers import new_task_from_user_message, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from a2a.utils.constants import TransportProtocol
from starlette.applications import Starlette

from tests.bench.child import serve_until_stdin_closes

if TYPE_CHECKING:
    from a2a.server.events import EventQueue


class Echo(AgentExecutor):
    """Answers with what it was asked."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        task = new_task_from_user_message(context.message)
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, task.id, task.context_id)
        await updater.add_artifact([new_text_part(f"echo: {context.get_user_input()}")], name="answer")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await TaskUpdater(event_queue, context.task_id or "", context.context_id or "").cancel()


def card(url: str) -> AgentCard:
    """Return the card: both dialects, one skill."""
    return AgentCard(
        name="Echo",
        description="Says what it was told.",
        version="1.0.0",
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=TransportProtocol.JSONRPC, protocol_version=version)
            for version in ("1.0", "0.3")
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="Echo", description="Echoes.", tags=["echo"])],
    )


def main() -> None:
    # With its protocol named, as uvicorn makes its own: asyncio sets TCP_NODELAY for such a socket alone.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.bind(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    served = card(f"http://127.0.0.1:{port}/")
    handler = DefaultRequestHandler(agent_executor=Echo(), task_store=InMemoryTaskStore(), agent_card=served)
    app = Starlette(
        routes=[
            *create_agent_card_routes(served),
            *create_jsonrpc_routes(handler, rpc_url="/", enable_v0_3_compat=True),
        ]
    )
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False))
    asyncio.run(serve_until_stdin_closes(server, listener, port))


if __name__ == "__main__":
    main()
