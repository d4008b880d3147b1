"""Turn path 10/13: the only way to the model: what one door lets through, and what it answers.

A closed grammar, not a relay. Two paths, one method; the body is checked by `grammar.py`, the money set
aside by `ledger.py`, the request rebuilt by `upstream.py`. To the CLI it speaks only 200, 402 (a budget is
spent) and 403 (not allowed, or the model cannot be reached), always in our own words: measured, on 401, 429
and 5xx the CLI retries for minutes and prints the upstream's body (architecture §2).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import structlog

from runtime.bodies import ClientGone, read_body
from runtime.modelproxy.backend import Ask, Reply, UpstreamError
from runtime.modelproxy.decision import ALLOWED, Decision
from runtime.modelproxy.grammar import Checked, check
from runtime.modelproxy.ledger import REQUESTS_SPENT
from runtime.modelproxy.messages_sse import error_body
from runtime.modelproxy.prices import Tokens
from runtime.modelproxy.relay import Relay
from runtime.modelproxy.upstream import known_betas

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from starlette.types import Receive, Scope, Send

    from runtime.modelproxy.backend import Backend
    from runtime.modelproxy.books import Books
    from runtime.modelproxy.door import Door
    from runtime.modelproxy.metrics import Metrics
    from runtime.modelproxy.prices import Bill

log = structlog.get_logger("modelproxy")

PATHS: Final = {b"/v1/messages": False, b"/v1/messages/count_tokens": True}
QUERIES: Final = frozenset({b"", b"beta=true"})
BODY_SECONDS: Final = 30.0
WRITE_SECONDS: Final = 30.0
BACKOFF_SECONDS: Final = 0.5
TRIES: Final = 2
DRAIN_BYTES: Final = 4 * 1024 * 1024
COUNTS_PER_REQUEST: Final = 4
INLINE_BYTES: Final = 64 * 1024

SENTENCES: Final = {
    402: "The budget for this is spent.",
    403: "This request is not allowed here.",
}
MONEY: Final = "MODEL-04"  # the control whose refusals are about a budget
UNREACHABLE: Final = "The model cannot be reached."
NO_MODEL: Final = Decision(allow=False, reason="upstream failed", control="MODEL-05")


@dataclass(slots=True)
class Exchange:
    """One request while it is answered, and what the log line says of it."""

    send: Send
    decision: Decision = ALLOWED
    status: int = 0
    started: bool = False
    whole: bool = False
    bytes_in: int = 0
    taken: bool = False
    owed: bool = False
    used: Tokens | None = None
    micro_usd: int = 0

    async def start(self, media_type: str, *, close: bool = False, length: int | None = None) -> None:
        """Send the head. Every response header there is, is here."""
        headers = [(b"content-type", media_type.encode()), (b"cache-control", b"no-store")]
        if length is not None:
            headers.append((b"content-length", str(length).encode()))
        if close:
            headers.append((b"connection", b"close"))
        self.started = True
        async with asyncio.timeout(WRITE_SECONDS):
            await self.send({"type": "http.response.start", "status": self.status, "headers": headers})

    async def write(self, data: bytes, *, more: bool) -> None:
        """Send a part of the body; a client that does not read for WRITE_SECONDS raises TimeoutError."""
        self.whole = not more
        async with asyncio.timeout(WRITE_SECONDS):
            await self.send({"type": "http.response.body", "body": data, "more_body": more})

    async def refuse(self, decision: Decision, sentence: str = "", *, close: bool = False) -> None:
        """Answer 402 or 403 in our own words; once a 200 has begun, say nothing: the connection is cut."""
        self.decision = decision
        if self.started:
            return
        self.status = 402 if decision.control == MONEY else 403
        kind = "billing_error" if self.status == 402 else "permission_error"
        body = error_body(kind, sentence or SENTENCES[self.status])
        await self.start("application/json", close=close, length=len(body))
        await self.write(body, more=False)


def route(scope: Scope) -> Decision:
    """Judge method, path, query and headers. Pure.

    The raw path is compared byte for byte, so an encoded slash, `..`, an absolute URI or a CONNECT target is
    another path and nothing is decoded before it is judged.
    """
    if scope["method"] != "POST" or scope.get("raw_path") not in PATHS:
        return Decision(allow=False, reason="path or method", control="MODEL-01")
    if scope["query_string"] not in QUERIES:
        return Decision(allow=False, reason="query", control="MODEL-01")
    types = [value for name, value in scope["headers"] if name == b"content-type"]
    plain = len(types) == 1 and types[0].partition(b";")[0].strip().lower() == b"application/json"
    if not plain or any(name == b"content-encoding" for name, _ in scope["headers"]):
        return Decision(allow=False, reason="content type", control="MODEL-02")
    return ALLOWED


class DoorApp:
    """The ASGI app behind one door."""

    def __init__(self, door: Door, backend: Backend, books: Books, metrics: Metrics) -> None:
        self._door = door
        self._backend = backend
        self._books = books
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, write one log line about it, and count it."""
        if scope["type"] != "http":
            return
        exchange = Exchange(send)
        began = time.monotonic()
        try:
            await self._answer(scope, receive, exchange)
        except ClientGone:
            exchange.decision = Decision(allow=False, reason="left early")
        except TimeoutError:
            await exchange.refuse(Decision(allow=False, reason="too slow", control="DOOR-01"), close=True)
        except asyncio.CancelledError:
            exchange.decision = Decision(allow=False, reason="door closed")
            raise
        except (
            Exception
        ):  # whatever it is, uvicorn's own handler would answer 500: the CLI retries for minutes
            log.exception("model_request_failed", turn=self._door.turn)
            await exchange.refuse(Decision(allow=False, reason="internal", control="MODEL-05"), UNREACHABLE)
        finally:
            self._report(exchange, time.monotonic() - began)

    def _report(self, exchange: Exchange, seconds: float) -> None:
        decision = exchange.decision
        used = exchange.used or Tokens()
        agent = self._door.agent
        log.info(
            "model_request",
            turn=self._door.turn,
            agent=agent,
            model=self._door.terms.model,
            status=exchange.status,
            allow=decision.allow,
            reason=decision.reason,
            control=decision.control,
            bytes_in=exchange.bytes_in,
            input_tokens=used.all_input,
            output_tokens=used.output,
            settled=exchange.used is not None,
            micro_usd=exchange.micro_usd,
            seconds=round(seconds, 3),
        )
        self._metrics.requests.labels(str(exchange.status), decision.control).inc()
        self._metrics.tokens.labels(agent, "input").inc(used.all_input)
        self._metrics.tokens.labels(agent, "output").inc(used.output)
        self._metrics.spent.labels(agent).inc(exchange.micro_usd)
        if exchange.status in SENTENCES and decision is not NO_MODEL:
            self._door.refuse()

    async def _answer(self, scope: Scope, receive: Receive, exchange: Exchange) -> None:
        decision = route(scope)
        if not decision.allow:
            await exchange.refuse(decision, close=True)
            return
        counting = PATHS[scope["raw_path"]]
        body = await read_body(receive, self._door.body_bytes, seconds=BODY_SECONDS, drain_bytes=DRAIN_BYTES)
        exchange.bytes_in = body.size
        if body.too_long:
            too_long = Decision(allow=False, reason="body too long", control="MODEL-03")
            await exchange.refuse(too_long, close=not body.ended)
            return
        if self._door.exhausted is not None:
            await exchange.refuse(self._door.exhausted)
            return
        checked = await self._check(body.data, counting=counting)
        if not checked.decision.allow:
            await exchange.refuse(checked.decision)
            return
        ask = Ask(
            scope["raw_path"].decode("ascii"),
            checked.body,
            stream=checked.stream,
            betas=known_betas(scope["headers"]),
            query=scope["query_string"].decode("ascii"),
        )
        await until_gone(receive, exchange, self._pay_and_send(ask, checked, exchange, counting=counting))

    async def _check(self, body: bytes, *, counting: bool) -> Checked:
        """Judge a body; a large one in a thread, one at a time for a door, so that no other turn feels it."""
        if len(body) <= INLINE_BYTES:
            return check(body, self._door.terms, counting=counting)
        async with self._door.checking:
            if self._door.stopped:
                raise ClientGone
            return await asyncio.to_thread(check, body, self._door.terms, counting=counting)

    async def _pay_and_send(self, ask: Ask, checked: Checked, exchange: Exchange, *, counting: bool) -> None:
        door = self._door
        if counting:
            door.counted += 1
            if door.counted > COUNTS_PER_REQUEST * door.limits.requests:
                spent = Decision(allow=False, reason="turn's token counts spent", control="MODEL-04")
                await exchange.refuse(spent)
                return
            await self._send(ask, exchange, None)
            return
        worst = Tokens(cache_write=checked.worst_input_tokens, output=checked.max_tokens)
        await self._send(ask, exchange, door.prices.bill(worst))

    async def _send(self, ask: Ask, exchange: Exchange, worst: Bill | None) -> None:
        """Ask the model, a second time if that makes sense and no byte has left.

        A try that the upstream may have taken keeps its reservation, so a second one needs its own. A count
        (`worst` is None) is free.
        """
        reservation = 0
        try:
            for left in reversed(range(TRIES)):
                if worst is not None and not reservation:
                    reservation = await self._reserve(exchange, worst)
                    if not reservation:
                        return
                    if not exchange.taken:
                        exchange.taken = True
                        self._door.request_bytes += exchange.bytes_in
                exchange.owed = True
                try:
                    async with self._backend.ask(ask) as reply:
                        await self._pass(ask, reply, exchange, counting=worst is None)
                        return
                except UpstreamError as error:
                    exchange.owed = error.sent
                    self._metrics.upstream_failures.labels(error.reason).inc()
                    log.warning("upstream_failed", turn=self._door.turn, reason=error.reason, tries_left=left)
                    if not error.again or exchange.started or not left:
                        break
                if exchange.owed:
                    reservation = 0
                await asyncio.sleep(BACKOFF_SECONDS)
            await exchange.refuse(NO_MODEL, UNREACHABLE)
        finally:
            if reservation:
                await self._account(reservation, exchange)

    async def _reserve(self, exchange: Exchange, worst: Bill) -> int:
        """Set the worst case aside and return the reservation, or refuse and return 0."""
        door = self._door
        reserved = await self._books.reserve(door.turn, door.agent, worst, door.limits, time.time())
        if not reserved.decision.allow:
            if reserved.decision.reason == REQUESTS_SPENT:
                door.exhausted = reserved.decision
            await exchange.refuse(reserved.decision)
        return reserved.id

    async def _account(self, reservation: int, exchange: Exchange) -> None:
        if exchange.used is not None:
            bill = self._door.prices.bill(exchange.used)
            await self._books.settle(reservation, bill)
            exchange.micro_usd = bill.micro_usd
        elif not exchange.owed:
            await self._books.release(reservation)

    async def _pass(self, ask: Ask, reply: Reply, exchange: Exchange, *, counting: bool) -> None:
        if reply.status != 200:
            again = reply.status == 429 or reply.status >= 500
            raise UpstreamError(f"status {reply.status}", sent=False, again=again)
        relay = Relay(self._backend)
        exchange.status = 200
        try:
            if not ask.stream:
                whole = await relay.whole(reply, counting=counting)
                await exchange.start("application/json", length=len(whole))
                await exchange.write(whole, more=False)
                return
            async for events in relay.events(reply):
                if not exchange.started:
                    await exchange.start("text/event-stream; charset=utf-8")
                await exchange.write(events, more=True)
            await exchange.write(b"", more=False)
        finally:
            exchange.used = relay.used


async def until_gone(receive: Receive, exchange: Exchange, work: Coroutine[Any, Any, None]) -> None:
    """Run `work` and cancel it when the client leaves; raise ClientGone then, else what `work` raises."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done() and not exchange.whole:  # after a whole answer `receive` ends by itself
            raise ClientGone
        await working
    finally:
        leaving.cancel()
        working.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
