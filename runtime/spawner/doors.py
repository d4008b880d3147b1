"""Opens and closes the doors of a turn: its folder on the doors volume, and who listens in it.

Possession of the socket is the identity (architecture §2): a door is opened for one turn, when that turn is
claimed, and closed before its container is killed. Nothing in a turn can name another turn's folder.
"""

from __future__ import annotations

import os
import re
import shutil
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import httpx2
import structlog

from runtime.errors import ServiceUnreachable
from runtime.turn.events import Usage

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

DOOR_SECONDS = 3.0
FOLDER_MODE = 0o1771  # sticky: a service's socket is its own; a turn's uid may pass through, not list
TURN_NAME = re.compile(r"[0-9a-f]{32}")
MEND = "look at the model proxy's log"

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DoorFacts:
    """What a door service is told of a turn (docs/reference/protocols.md, "Spawner ↔ a door service")."""

    agent: str
    context: str
    visitor: str
    model: str
    persona_bytes: int
    deadline: float


def limits(persona_bytes: int, requests: int, output_tokens: int) -> dict[str, int]:
    """Return what a turn may use of the model; grows with the persona, so that a large one works."""
    return {
        "requests": requests,
        "body_bytes": persona_bytes + 512 * 1024,
        "input_tokens": requests * (persona_bytes // 2 + 12_000),
        "output_tokens": output_tokens,
    }


class Doors:
    """The door folders below `folder` and the model proxy's control socket.

    Methods raise ServiceUnreachable when the service does not do as it is asked within DOOR_SECONDS.
    """

    def __init__(
        self, folder: Path, control_socket: Path, requests: int, output_tokens: int, group: int
    ) -> None:
        self._folder = folder
        self._requests = requests
        self._output_tokens = output_tokens
        self._group = group
        transport = httpx2.AsyncHTTPTransport(uds=str(control_socket))
        self._client = httpx2.AsyncClient(
            transport=transport, base_url="http://door", timeout=DOOR_SECONDS, trust_env=False
        )

    async def close(self) -> None:
        """Close the connections to the services."""
        await self._client.aclose()

    def make_folder(self, turn: str) -> None:
        """Make the folder that the turn's container mounts, for the group of the door services."""
        path = self._folder / turn
        path.mkdir()
        if path.stat().st_gid != self._group:
            os.chown(path, -1, self._group)
        path.chmod(FOLDER_MODE)

    def remove_folder(self, turn: str) -> None:
        """Remove the turn's folder with whatever a service left in it.

        What cannot be removed is told: no door service leaves a folder of its own in there, so that one did.
        """
        path = self._folder / turn
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            log.error("door-folder-stays", turn=turn, hint="a door service put something into it: restart it")

    def remove_folders_but(self, live: Collection[str]) -> list[str]:
        """Remove the folders of turns that are not in `live`; returns their names."""
        stale = [
            path.name
            for path in self._folder.iterdir()
            if TURN_NAME.fullmatch(path.name) and path.name not in live
        ]
        for name in stale:
            self.remove_folder(name)
        return stale

    async def open(self, turn: str, facts: DoorFacts) -> None:
        """Have the model proxy listen on the turn's socket."""
        body = {
            "agent": facts.agent,
            "context": facts.context,
            "visitor": facts.visitor,
            "model": facts.model,
            "limits": limits(facts.persona_bytes, self._requests, self._output_tokens),
            "deadline": facts.deadline,
        }
        answer = await self._ask("PUT", f"/turns/{turn}", body)
        if answer.status_code != httpx2.codes.CREATED:
            raise ServiceUnreachable(f"the model proxy refused to open a door: {answer.status_code}", MEND)

    async def shut(self, turn: str) -> Usage:
        """Have the turn's socket closed, requests in flight aborted; returns what the turn used.

        A door that the service does not know is shut: its usage is unknown, so zeros.
        """
        answer = await self._ask("DELETE", f"/turns/{turn}")
        if answer.status_code != httpx2.codes.OK:
            return Usage()
        return _usage(answer)

    async def is_demo(self) -> bool:
        """Return whether the model proxy answers from the demo model."""
        answer = await self._ask("GET", "/health")
        value = _json(answer).get("demo")
        if answer.status_code != httpx2.codes.OK or not isinstance(value, bool):
            raise ServiceUnreachable("the model proxy is not ready", MEND)
        return value

    async def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> httpx2.Response:
        try:
            return await self._client.request(method, path, json=body)
        except httpx2.HTTPError as error:
            raise ServiceUnreachable(
                f"the model proxy does not answer: {type(error).__name__}", MEND
            ) from error


def _json(answer: httpx2.Response) -> dict[str, Any]:
    try:
        value = answer.json()
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _usage(answer: httpx2.Response) -> Usage:
    value = _json(answer)
    counts = {
        one.name: max(0, value[one.name]) for one in fields(Usage) if isinstance(value.get(one.name), int)
    }
    return Usage(**counts)
