"""What the agent remembers of a conversation, and the order of turns within it.

A context id is a bearer right (architecture §7): whoever knows it continues the conversation. So only ids
that nobody can guess carry memory, which are random UUIDs, ours or a client's own. Any other id is accepted
and echoed, and remembers nothing. Everything is bounded: contexts, exchanges in each, bytes, and age.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.turn.plan import PROMPT_MAX_BYTES

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from runtime.turn.plan import Exchange

MAX_AGE_SECONDS = 24 * 3600.0
MAX_BYTES = 64 * 1024 * 1024
OVERHEAD_BYTES = 512  # what holding an exchange or a conversation costs beside its texts

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
    size_bytes: int = OVERHEAD_BYTES
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    present: int = 0  # turns running or waiting in it


class Memory:
    """The conversations of one agent, least recently used first to go.

    `max_contexts` and `max_turns` (exchanges kept of each) are the agent's limits; `max_bytes` bounds all
    conversations together, `max_age_seconds` says how long one is kept after its last turn. `clock` counts
    seconds.
    """

    def __init__(
        self,
        max_contexts: int,
        max_turns: int,
        *,
        max_bytes: int = MAX_BYTES,
        max_age_seconds: float = MAX_AGE_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._max_contexts = max(1, max_contexts)
        self._max_turns = max(0, max_turns)
        self._max_bytes = max_bytes
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._conversations: OrderedDict[str, _Conversation] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        """Count the conversations that are held."""
        return len(self._conversations)

    def bound(self, max_contexts: int, max_turns: int) -> None:
        """Hold the conversations to other limits from now on; what is too many or too old goes at once.

        A conversation in which a turn runs or waits stays, and forgets its oldest exchanges like any other.
        """
        self._max_contexts = max(1, max_contexts)
        self._max_turns = max(0, max_turns)
        for conversation in self._conversations.values():
            conversation.exchanges = deque(conversation.exchanges, maxlen=self._max_turns)
            self._measure(conversation)
        self._evict()

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
            key = context_id.lower()
            self._conversations.move_to_end(key)
            if conversation.present == 0 and not conversation.exchanges:
                self._forget(key)
            self._evict()

    def remember(self, context_id: str, exchange: Exchange) -> None:
        """Add an exchange to the conversation that the caller holds.

        What no prompt has room for any more is forgotten at once: the exchanges before the last 256 KiB.
        """
        conversation = self._conversations.get(context_id.lower())
        if conversation is None:
            return
        kept = conversation.exchanges
        kept.append(exchange)
        room = PROMPT_MAX_BYTES
        for count, one in enumerate(reversed(kept)):
            room -= sum(len(text.encode("utf-8", "replace")) for text in (one.visitor, one.agent))
            if room < 0:
                while len(kept) > count:
                    kept.popleft()
                break
        self._measure(conversation)

    def forget(self, context_id: str) -> bool:
        """Forget what was said in a context at once, and say whether it was held.

        A turn that runs or waits there keeps its place in the order, and begins or goes on with nothing.
        """
        key = context_id.lower()
        conversation = self._conversations.get(key)
        if conversation is None:
            return False
        if conversation.present:
            conversation.exchanges.clear()
            self._measure(conversation)
        else:
            self._forget(key)
        return True

    def forget_all(self) -> int:
        """Forget every conversation like `forget`, and count them."""
        return sum(map(self.forget, list(self._conversations)))

    def sweep(self) -> None:
        """Let go of what is too old now, though nobody asks."""
        self._evict()

    def _measure(self, conversation: _Conversation) -> None:
        self.size_bytes -= conversation.size_bytes
        conversation.size_bytes = OVERHEAD_BYTES + sum(_size_bytes(one) for one in conversation.exchanges)
        self.size_bytes += conversation.size_bytes

    def _conversation(self, context_id: str) -> _Conversation:
        self._evict()
        key = context_id.lower()
        conversation = self._conversations.get(key)
        if conversation is None:
            conversation = _Conversation(deque(maxlen=self._max_turns), self._clock())
            self._conversations[key] = conversation
            self.size_bytes += conversation.size_bytes
        conversation.used = self._clock()
        self._conversations.move_to_end(key)
        return conversation

    def _forget(self, key: str) -> None:
        self.size_bytes -= self._conversations.pop(key).size_bytes

    def _evict(self) -> None:
        """Let the conversations go that are too old or too many, save those in which a turn runs or waits."""
        oldest = self._clock() - self._max_age_seconds
        for key in list(self._conversations):
            conversation = self._conversations[key]
            fits = len(self._conversations) <= self._max_contexts and self.size_bytes <= self._max_bytes
            if fits and conversation.used >= oldest:
                break
            if conversation.present == 0:
                self._forget(key)


def _size_bytes(exchange: Exchange) -> int:
    return OVERHEAD_BYTES + sys.getsizeof(exchange.visitor) + sys.getsizeof(exchange.agent)
