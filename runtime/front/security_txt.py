"""`/.well-known/security.txt` (RFC 9116): where to report a weakness of the agent.

Whoever finds one looks there first; without it the report goes to whoever the card names, or to the public.
It is made of the instance's `security_contact` and `security_policy`, and is 404 without a contact.
`Expires` must be there and lie ahead: it is counted from today, so a file that is served is never stale, and
one that somebody has kept is so after 180 days (§2.5.5 recommends less than a year). `Canonical` is made of
the card's address, never of the request's `Host`, and left out where the RFC allows none: it must be https
(§2.4) and lie at the root of its host (§3). What languages the contact reads is not known.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

from runtime.agents import forms

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import date

    from starlette.requests import Request

    from runtime.agents.definition import AgentDefinition
    from runtime.front.current import Current

PATH: Final = "/.well-known/security.txt"
EXPIRES_DAYS: Final = 180
CACHE_CONTROL: Final = "public, max-age=60"  # as the card's
_URI: Final = re.compile(forms.HTTPS)


def security_txt(agent: AgentDefinition, today: date) -> str | None:
    """Return the file as it is on a day (UTC), or None when the agent names no contact."""
    if not agent.security.contact:
        return None
    origin = agent.card.public_url.rstrip("/")
    at_root = not {"/", "?", "#"} & set(origin.removeprefix("https://"))
    fields = {
        "Contact": agent.security.contact,
        "Expires": f"{today + timedelta(days=EXPIRES_DAYS)}T00:00:00Z",
        "Canonical": f"{origin}{PATH}" if at_root and _URI.fullmatch(origin) else "",
        "Policy": agent.security.policy,
    }
    return "".join(f"{name}: {value}\n" for name, value in fields.items() if value)


def _today() -> date:
    return datetime.now(UTC).date()


class SecurityTxt:
    """Answers GET with the file of the definition that is served now."""

    def __init__(self, current: Current, *, today: Callable[[], date] = _today) -> None:
        self._current = current
        self._today = today

    async def get(self, _request: Request) -> Response:
        """Answer one request; 404 without a contact."""
        text = security_txt(self._current.agent, self._today())
        if text is None:
            raise HTTPException(404)
        return Response(text, media_type="text/plain", headers={"cache-control": CACHE_CONTROL})
