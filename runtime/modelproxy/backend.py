"""What stands behind the doors: the real upstream or the demo model, seen by the app as the same thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager


@dataclass(frozen=True, slots=True)
class Ask:
    """One request as it may go out: a path of the Messages API, its checked body, and the betas to name."""

    path: str
    body: bytes
    stream: bool = False
    betas: tuple[str, ...] = ()
    query: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back: status, media type (lower case, no parameters), and the body's bytes as they come.

    Reading `chunks` raises UpstreamError when they stop coming.
    """

    status: int
    media_type: str
    chunks: AsyncIterator[bytes]


class UpstreamError(Exception):
    """The upstream did not answer, or stopped answering. `reason` is fixed words for the log.

    `sent` is false when no byte of the request can have arrived, so that nothing is owed for it; `again` says
    that a second try makes sense.
    """

    def __init__(self, reason: str, *, sent: bool, again: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sent = sent
        self.again = again


class Backend(Protocol):
    """Answers requests."""

    demo: bool

    def ask(self, request: Ask) -> AbstractAsyncContextManager[Reply]:
        """Send one request; raises UpstreamError when no status line came."""
        ...

    def leaks(self, data: bytes) -> bool:
        """Whether `data` holds a secret of this backend's, so that it must not leave."""
        ...
