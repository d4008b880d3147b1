"""AgentDefinition -> the agent card, one body of bytes for both well-known paths.

Both interfaces are listed at the same URL, "1.0" and "0.3": with the second one the SDK merges the 0.3
fields (`url`, `preferredTransport`, `protocolVersion`) into the card, without which 0.3 clients find
nothing (seen). The price is that a strict 1.0 schema check objects to the extra fields
(docs/explanation/differences.md).
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, NamedTuple

from a2a.server.request_handlers.response_helpers import agent_card_to_dict
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentProvider, AgentSkill
from a2a.utils.constants import TransportProtocol
from starlette.responses import Response

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.requests import Request

    from runtime.agents.definition import AgentDefinition
    from runtime.front.current import Current

PATHS = ("/.well-known/agent-card.json", "/.well-known/agent.json")
VERSIONS = ("1.0", "0.3")
MODES = ["text"]
NOTICE = "This is an automated representative; what it says binds nobody."
DEMO_NOTICE = "It runs on the built-in demo model, which quotes documents and does not reason."
CACHE_CONTROL = "public, max-age=60"


def agent_card(agent: AgentDefinition, *, demo: bool) -> AgentCard:
    """Return the card. `demo` says that the model proxy answers from the demo model."""
    card = agent.card
    notices = [NOTICE, DEMO_NOTICE] if demo else [NOTICE]
    result = AgentCard(
        name=card.name,
        description=" ".join([card.description.strip(), *notices]).strip(),
        version=card.version,
        supported_interfaces=[
            AgentInterface(
                url=card.public_url.rstrip("/") + "/",
                protocol_binding=TransportProtocol.JSONRPC,
                protocol_version=version,
            )
            for version in VERSIONS
        ],
        capabilities=AgentCapabilities(streaming=True, push_notifications=False, extended_agent_card=False),
        default_input_modes=MODES,
        default_output_modes=MODES,
        skills=[
            AgentSkill(
                id=skill.id,
                name=skill.name,
                description=skill.description,
                tags=skill.tags,
                examples=skill.examples,
                input_modes=skill.input_modes,
                output_modes=skill.output_modes,
            )
            for skill in card.skills
        ],
    )
    if card.provider:
        result.provider.CopyFrom(
            AgentProvider(organization=card.provider.organization, url=card.provider.url)
        )
    if card.documentation_url:
        result.documentation_url = card.documentation_url
    if card.icon_url:
        result.icon_url = card.icon_url
    return result


class CardBody(NamedTuple):
    """A card as it is sent, and the ETag of these bytes."""

    body: bytes
    etag: str


def card_bodies(agent: AgentDefinition) -> dict[bool, CardBody]:
    """Return the card as bytes, by whether the demo model answers."""
    return {demo: _body(agent_card(agent, demo=demo)) for demo in (False, True)}


class CardEndpoint:
    """Answers GET with the bytes of the card that is served now, or 304 to a client that has them.

    `is_demo` is asked at each request which of the two cards is true now: a key may be given while the front
    runs.
    """

    def __init__(self, current: Current, is_demo: Callable[[], bool]) -> None:
        self._current = current
        self._is_demo = is_demo

    async def get(self, request: Request) -> Response:
        """Answer one request."""
        body, etag = self._current.now.cards[self._is_demo()]
        headers = {"etag": etag, "cache-control": CACHE_CONTROL}
        wanted = {
            tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")
        }
        if wanted & {etag, "*"}:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type="application/json")


def _body(card: AgentCard) -> CardBody:
    body = json.dumps(agent_card_to_dict(card), ensure_ascii=False, separators=(",", ":")).encode()
    return CardBody(body, f'"{hashlib.sha256(body).hexdigest()}"')
