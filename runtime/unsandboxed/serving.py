"""Serves one agent over A2A without a sandbox: what `python -m runtime.server --sandbox none` comes to.

On addresses of this machine alone, whatever the instance's `host` says.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Final

from runtime import server
from runtime.errors import UsageError
from runtime.front.loopback import is_loopback
from runtime.front.settings import read_settings
from runtime.turn import ending
from runtime.unsandboxed.starting import load, start

if TYPE_CHECKING:
    import argparse
    import socket
    from collections.abc import Mapping

    from runtime.agents.definition import AgentDefinition
    from runtime.front.settings import FrontSettings
    from runtime.unsandboxed.runner import SubprocessRunner

HOME_ADDRESS: Final = "127.0.0.1"  # what `localhost` is, whatever a hosts file makes of it


def serve(options: argparse.Namespace, environ: Mapping[str, str]) -> None:
    """Serve one agent as `python -m runtime.server --sandbox none` asks. Raises GatehouseError."""
    settings = read_settings(environ)
    root = options.root or Path(__file__).resolve().parents[2]
    port = None if options.port is None else str(options.port)
    flags = {"AGENT_HOST": options.host, "AGENT_PORT": port, "CLAUDE_MODEL": options.model}
    agent = load(root, options.agent, environ, **flags)
    host = agent.network.host
    if not is_loopback(host):
        raise UsageError(
            f"--sandbox none serves this machine alone, and {host} is not its loopback address.",
            "add --host 127.0.0.1",
        )
    listener = server.listen_tcp(HOME_ADDRESS if host.lower() == "localhost" else host, agent.network.port)
    try:
        ending.hold()  # until the server hears them: the copy of the documents must go with us
        runner = start(agent, environ, root)
        try:
            asyncio.run(_serve(agent, runner, listener, settings))
        finally:
            runner.snapshot.remove()
    finally:
        ending.release()
        listener.close()


async def _serve(
    agent: AgentDefinition, runner: SubprocessRunner, listener: socket.socket, settings: FrontSettings
) -> None:
    await server.serve(agent, agent.digest, runner, [listener], ops=False, sandboxed=False, settings=settings)
