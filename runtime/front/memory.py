"""What the agent remembers of a conversation, and the order of turns within it.

A context id is a bearer right (architecture §7): whoever knows it continues the conversation. So only ids
that nobody can guess carry memory, which are random UUIDs, ours or a client's own. Any other id is accepted
and echoed, and remembers nothing. Everything is bounded: contexts, exchanges in each, and age.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from runtime.turn.plan import Exchange

MAX_AGE_SECONDS = 24 * 3600.0

# Versions 4 (122 random bits) and 7 (74): the others are made of clocks and names.
_UNGUESSABLE = re.compile(
    r"[0-9a-f]{8}-[0-9a-f]{4}-[47][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE
)


def carries_memory(context_id: str) -> bool:
    """Say whether a context id is one that nobody can guess."""
    return _UNGUESSABLE.fullmatch(context_id) is not None


@dataclass(slots=True)
class _Conversation:
    exchanges: deque[Exchange]
    used: float
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    present: int = 0  # turns running or waiting in it


class Memory:
    """The conversations of one agent, least recently used first to go.

    `max_contexts` and `max_turns` (exchanges kept of each) are the agent's limits; `clock` counts seconds.
    """

    def __init__(
        self, max_contexts: int, max_turns: int, *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max_contexts = max(1, max_contexts)
        self._max_turns = max(0, max_turns)
        self._clock = clock
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()

    def __len__(self) -> int:
        """Count the conversations that are held."""
        return len(self._conversations)

    def waiting(self, context_id: str) -> int:
        """Count the turns that wait in a context for the one that runs there."""
        conversation = self._conversations.get(context_id.lower())
        return max(0, conversation.present - 1) if conversation else 0

    @contextlib.asynccontextmanager
    async def turn(self, context_id: str) -> AsyncGenerator[tuple[Exchange, ...]]:
        """Hold a context for one turn, waiting for the one before it; yields its exchanges, oldest first.

        A context without memory yields nothing and waits for nobody.
        """
        if not carries_memory(context_id):
            yield ()
            return
        conversation = self._conversation(context_id)
        conversation.present += 1
        try:
            async with conversation.lock:
                yield tuple(conversation.exchanges)
        finally:
            conversation.present -= 1
            conversation.used = self._clock()
            if conversation.present == 0 and not conversation.exchanges:
                self._conversations.pop(context_id.lower(), None)
            self._evict()

    def remember(self, context_id: str, exchange: Exchange) -> None:
        """Add an exchange to the conversation that the caller holds."""
        conversation = self._conversations.get(context_id.lower())
        if conversation is not None:
            conversation.exchanges.append(exchange)

    def _conversation(self, context_id: str) -> _Conversation:
        self._evict()
        key = context_id.lower()
        conversation = self._conversations.get(key)
        if conversation is None:
            conversation = _Conversation(deque(maxlen=self._max_turns), self._clock())
            self._conversations[key] = conversation
        conversation.used = self._clock()
        self._conversations.move_to_end(key)
        return conversation

    def _evict(self) -> None:
        oldest = self._clock() - MAX_AGE_SECONDS
        surplus = len(self._conversations) - self._max_contexts
        for key in list(self._conversations):
            conversation = self._conversations[key]
            if surplus <= 0 and conversation.used >= oldest:
                break
            if conversation.present == 0:
                del self._conversations[key]
                surplus -= 1
