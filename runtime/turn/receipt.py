"""Turn path 13/13: one canonical log line per turn, and the metrics.

The line says who (as HMACs), how it ended, why, how long each part took and what it cost; it never holds
visitor text. `question` and `answer` are HMACs under a key of this process, so that a screenshot of an
exchange can be confirmed or refuted from the log while the process that wrote the line runs.
"""

from __future__ import annotations

import hashlib
import hmac
from collections import Counter as Tally
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from runtime.turn.events import Cause, Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from runtime.turn.screen import Finding

EVENT: Final = "turn"
AGENT: Final = "agent"
CONTEXT: Final = "context"
VISITOR: Final = "visitor"
OUTCOME: Final = "outcome"
CAUSE: Final = "cause"
DETAIL: Final = "detail"
QUESTION: Final = "question"
ANSWER: Final = "answer"
WAITED_MS: Final = "waited_ms"
FIRST_TEXT_MS: Final = "first_text_ms"
TOTAL_MS: Final = "total_ms"
STEPS: Final = "steps"
SCREENED: Final = "screened"
REQUESTS: Final = "requests"
INPUT_TOKENS: Final = "input_tokens"
OUTPUT_TOKENS: Final = "output_tokens"
REFUSED: Final = "refused"
REQUEST_BYTES: Final = "request_bytes"

ANSWERED: Final = "answered"
REFUSED_OUTCOME: Final = "refused"  # not admitted: empty, too long, busy
FAILED: Final = "failed"
CANCELLED: Final = "cancelled"

DETAIL_MAX_CHARS = 500


@dataclass(slots=True)
class Receipt:
    """What is known of one turn: filled in as it goes, written once by `Receipts.write`. Times in seconds."""

    context: str
    visitor: str
    question: str
    outcome: str = FAILED
    cause: str = Cause.INTERNAL.value
    detail: str = ""
    answer: str = ""
    waited_seconds: float = 0.0
    first_text_seconds: float | None = None
    total_seconds: float = 0.0
    usage: Usage = field(default_factory=Usage)
    steps: Tally[str] = field(default_factory=Tally)
    screened: Sequence[Finding] = ()


class Receipts:
    """Writes receipts and counts them, for one agent. `registry` is what `ops.sock` serves as /metrics."""

    def __init__(self, agent: str, key: bytes, registry: CollectorRegistry) -> None:
        self._agent = agent
        self._key = key
        self._log = structlog.get_logger(EVENT)
        label = [AGENT]
        self._turns = Counter(
            "gatehouse_turns", "Turns by outcome and cause", [*label, OUTCOME, CAUSE], registry=registry
        )
        self._tokens = Counter("gatehouse_turn_tokens", "Tokens by kind", [*label, "kind"], registry=registry)
        self._withheld = Counter(
            "gatehouse_screened", "What was taken out of answers", [*label, "reason"], registry=registry
        )
        self._seconds = Histogram(
            "gatehouse_turn_seconds",
            "Whole turns",
            label,
            buckets=(0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128),
            registry=registry,
        )
        self._first_text = Histogram(
            "gatehouse_turn_first_text_seconds",
            "From the message to the first shown text",
            label,
            buckets=(0.25, 0.5, 1, 2, 4, 8, 16, 32),
            registry=registry,
        )
        self.running = Gauge("gatehouse_turns_running", "Turns running now", label, registry=registry).labels(
            agent
        )

    def write(self, receipt: Receipt) -> None:
        """Log the turn's one line and count it."""
        self._turns.labels(self._agent, receipt.outcome, receipt.cause).inc()
        self._tokens.labels(self._agent, "input").inc(receipt.usage.input_tokens)
        self._tokens.labels(self._agent, "output").inc(receipt.usage.output_tokens)
        for finding in receipt.screened:
            self._withheld.labels(self._agent, finding.reason).inc(finding.count)
        self._seconds.labels(self._agent).observe(receipt.total_seconds)
        if receipt.first_text_seconds is not None:
            self._first_text.labels(self._agent).observe(receipt.first_text_seconds)
        self._log.info(EVENT, **self.fields(receipt))

    def fields(self, receipt: Receipt) -> dict[str, Any]:
        """Return the fields of the line, by their constant names."""
        first = receipt.first_text_seconds
        return {
            AGENT: self._agent,
            CONTEXT: receipt.context,
            VISITOR: receipt.visitor,
            OUTCOME: receipt.outcome,
            CAUSE: receipt.cause,
            DETAIL: receipt.detail[:DETAIL_MAX_CHARS],
            QUESTION: self._mac(receipt.question),
            ANSWER: self._mac(receipt.answer),
            WAITED_MS: round(receipt.waited_seconds * 1000),
            FIRST_TEXT_MS: None if first is None else round(first * 1000),
            TOTAL_MS: round(receipt.total_seconds * 1000),
            STEPS: dict(sorted(receipt.steps.items())),
            SCREENED: {finding.reason: finding.count for finding in receipt.screened},
            REQUESTS: receipt.usage.requests,
            INPUT_TOKENS: receipt.usage.input_tokens,
            OUTPUT_TOKENS: receipt.usage.output_tokens,
            REFUSED: receipt.usage.refused,
            REQUEST_BYTES: receipt.usage.request_bytes,
        }

    def _mac(self, text: str) -> str:
        if not text:
            return ""
        return hmac.new(self._key, text.encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]
