"""Reserve money and tokens before a request is forwarded, and settle them afterwards: one SQLite table.

Why reserved first: a container that is killed mid-stream, a proxy that crashes or ten requests at once must
not spend what nobody counted (architecture §2, docs/explanation/money.md). A reservation is committed to
disk before the first byte goes upstream; an aborted stream never settles and so keeps its worst case.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from runtime.modelproxy.decision import ALLOWED, Decision
from runtime.modelproxy.prices import Bill, Tokens

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

KEEP_DAYS: Final = 35
REQUESTS_SPENT: Final = "turn's requests spent"

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS requests (
  id INTEGER PRIMARY KEY,
  turn TEXT NOT NULL,
  agent TEXT NOT NULL,
  day TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('reserved', 'settled', 'released')),
  input_tokens INTEGER NOT NULL,
  output_tokens INTEGER NOT NULL,
  micro_usd INTEGER NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS requests_turn ON requests (turn);
CREATE INDEX IF NOT EXISTS requests_day ON requests (agent, day, micro_usd);
CREATE TABLE IF NOT EXISTS marks (name TEXT PRIMARY KEY) STRICT;
"""


@dataclass(frozen=True, slots=True)
class Limits:
    """The budget of one turn: requests, input tokens in all, and output tokens of each request."""

    requests: int
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True)
class Spent:
    """What a turn has used: settled where settled, else as reserved."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reservation:
    """The answer to `reserve`; `id` is 0 unless the decision allows."""

    decision: Decision
    id: int = 0


def utc_day(now: float) -> str:
    """Return the UTC date of a Unix time, as `2026-11-30`."""
    return time.strftime("%Y-%m-%d", time.gmtime(now))


class Ledger:
    """The table. Every method is one transaction and takes well under a millisecond; call from one thread.

    `daily_micro_usd` is what one agent may spend in a UTC day.
    """

    def __init__(self, path: Path, daily_micro_usd: int) -> None:
        self._daily_micro_usd = daily_micro_usd
        self._pruned = ""
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=5)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.executescript(SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    @contextlib.contextmanager
    def _transaction(self) -> Generator[None, None, None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:  # whatever ends it half-way, the books stay whole; it passes on
            self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def reserve(self, turn: str, agent: str, worst: Bill, limits: Limits, now: float) -> Reservation:
        """Set `worst` aside for one request of `turn`, if turn and day can pay for it."""
        day = utc_day(now)
        with self._transaction():
            if day != self._pruned:
                oldest = utc_day(now - KEEP_DAYS * 86400)
                self._db.execute("DELETE FROM requests WHERE day < ?", (oldest,))
                self._pruned = day
            decision = self._judge(turn, agent, worst, limits, day)
            if not decision.allow:
                return Reservation(decision)
            row = self._db.execute(
                "INSERT INTO requests (turn, agent, day, state, input_tokens, output_tokens, micro_usd)"
                " VALUES (?, ?, ?, 'reserved', ?, ?, ?) RETURNING id",
                (turn, agent, day, worst.tokens.all_input, worst.tokens.output, worst.micro_usd),
            ).fetchone()
            return Reservation(decision, row[0])

    def _judge(self, turn: str, agent: str, worst: Bill, limits: Limits, day: str) -> Decision:
        spent = self.spent(turn)
        if spent.requests >= limits.requests:
            return Decision(allow=False, reason=REQUESTS_SPENT, control="MODEL-04")
        if spent.input_tokens + worst.tokens.all_input > limits.input_tokens:
            return Decision(allow=False, reason="turn's input tokens spent", control="MODEL-04")
        if spent.output_tokens + worst.tokens.output > limits.requests * limits.output_tokens:
            return Decision(allow=False, reason="turn's output tokens spent", control="MODEL-04")
        if self.day_micro_usd(agent, day) + worst.micro_usd > self._daily_micro_usd:
            return Decision(allow=False, reason="agent's daily budget spent", control="MODEL-04")
        return ALLOWED

    def settle(self, reservation: int, used: Bill) -> None:
        """Replace a reservation by what was used."""
        self._finish(reservation, "settled", used)

    def release(self, reservation: int) -> None:
        """Give a reservation back: nothing is owed for it. The request still counts."""
        self._finish(reservation, "released", Bill(Tokens(), 0))

    def _finish(self, reservation: int, state: str, owed: Bill) -> None:
        self._db.execute(
            "UPDATE requests SET state = ?, input_tokens = ?, output_tokens = ?, micro_usd = ?"
            " WHERE id = ? AND state = 'reserved'",
            (state, owed.tokens.all_input, owed.tokens.output, owed.micro_usd, reservation),
        )

    def spent(self, turn: str) -> Spent:
        """Return what `turn` has used so far."""
        row = self._db.execute(
            "SELECT count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0)"
            " FROM requests WHERE turn = ?",
            (turn,),
        ).fetchone()
        return Spent(*row)

    def day_micro_usd(self, agent: str, day: str) -> int:
        """Return what `agent` has spent or reserved on a UTC day, in micro-USD."""
        row = self._db.execute(
            "SELECT coalesce(sum(micro_usd), 0) FROM requests WHERE agent = ? AND day = ?", (agent, day)
        ).fetchone()
        return int(row[0])

    def days(self, day: str) -> dict[str, int]:
        """Return each agent's micro-USD of a UTC day."""
        rows = self._db.execute(
            "SELECT agent, sum(micro_usd) FROM requests WHERE day = ? GROUP BY agent ORDER BY agent", (day,)
        )
        return dict(rows.fetchall())

    def mark_live(self) -> None:
        """Remember that this stack has answered from a real model."""
        self._db.execute("INSERT OR IGNORE INTO marks (name) VALUES ('live')")

    def has_run_live(self) -> bool:
        """Whether `mark_live` was ever called on this file."""
        return self._db.execute("SELECT 1 FROM marks WHERE name = 'live'").fetchone() is not None
