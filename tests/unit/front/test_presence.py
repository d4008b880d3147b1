"""Whoever has to know that a client hung up is told, while the app runs and while it does not ask."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from runtime.front.audience import Audience
from runtime.front.presence import GONE, Gone, Presence

if TYPE_CHECKING:
    from starlette.types import Message, Receive, Scope, Send

SCOPE = {"type": "http", "method": "POST", "path": "/"}
BODY = {"type": "http.request", "body": b"{}", "more_body": False}


class Connection:
    """A server's side of one request: its body, and a hang-up when it is told to."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        self.asked = 0

    async def receive(self) -> Message:
        self.asked += 1
        if self.asked == 1:
            return dict(BODY)
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def send(self, _message: Message) -> None:
        pass


async def test_an_app_that_does_not_ask_is_told_that_its_client_has_gone() -> None:
    connection = Connection()

    async def app(scope: Scope, receive: Receive, _send: Send) -> None:
        assert (await receive())["body"] == b"{}"
        assert not scope[GONE].is_set()
        connection.left.set()
        await scope[GONE].wait()

    async with asyncio.timeout(5):
        await Presence(app)(dict(SCOPE), connection.receive, connection.send)


async def test_an_app_that_asks_gets_the_body_once_and_then_the_hang_up() -> None:
    connection = Connection()
    heard: list[str] = []

    async def app(_scope: Scope, receive: Receive, _send: Send) -> None:
        heard.append((await receive())["type"])
        connection.left.set()
        heard.extend([(await receive())["type"] for _ in range(2)])

    async with asyncio.timeout(5):
        await Presence(app)(dict(SCOPE), connection.receive, connection.send)
    assert heard == ["http.request", "http.disconnect", "http.disconnect"]


@pytest.mark.parametrize("error", [None, ValueError])
async def test_an_answered_request_has_nobody_any_more(error: type[Exception] | None) -> None:
    seen: list[Gone] = []

    async def app(scope: Scope, receive: Receive, _send: Send) -> None:
        await receive()
        seen.append(scope[GONE])
        if error is not None:
            raise error

    connection = Connection()
    try:
        await Presence(app)(dict(SCOPE), connection.receive, connection.send)
    except ValueError:
        assert error is ValueError
    assert seen[0].is_set()


async def test_other_requests_are_passed_on_untouched() -> None:
    passed: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        passed.append((scope, receive, send))

    connection = Connection()
    for scope in ({"type": "lifespan"}, SCOPE | {"method": "GET"}):
        await Presence(app)(scope, connection.receive, connection.send)
        assert passed[-1] == (scope, connection.receive, connection.send)
    assert connection.asked == 0


def test_whoever_asks_is_told_once_also_afterwards() -> None:
    gone, told = Gone(), list[str]()
    gone.tell(lambda: told.append("before"))
    gone.set()
    gone.set()
    gone.tell(lambda: told.append("after"))
    assert told == ["before", "after"]


class Hall:
    """An audience with a grace, and how often it was called empty."""

    def __init__(self, grace_seconds: float | None = 0.0) -> None:
        self.calls = 0
        self.called = asyncio.Event()
        self.audience = Audience(grace_seconds, self._abandoned)

    def _abandoned(self) -> None:
        self.calls += 1
        self.called.set()

    def enter(self) -> Gone:
        gone = Gone()
        self.audience.join(gone)
        return gone


async def test_an_audience_is_gone_when_the_last_has_left_and_not_before() -> None:
    hall = Hall()
    first, second = hall.enter(), hall.enter()
    first.set()
    await asyncio.sleep(0)
    assert hall.calls == 0
    second.set()
    async with asyncio.timeout(5):
        await hall.called.wait()
    assert hall.calls == 1


async def test_who_comes_back_in_the_grace_starts_it_anew() -> None:
    hall = Hall(600.0)
    hall.enter().set()
    timer = hall.audience._timer
    assert timer is not None
    back = hall.enter()
    assert timer.cancelled()
    back.set()
    assert hall.audience._timer not in {None, timer}
    hall.audience.close()
    assert hall.audience._timer is None


@pytest.mark.parametrize("grace", [None, 0.0])
async def test_an_audience_without_a_grace_or_of_a_turn_that_has_ended_calls_nobody(
    grace: float | None,
) -> None:
    hall = Hall(grace)
    gone = hall.enter()
    if grace is not None:
        hall.audience.close()
    gone.set()
    assert hall.audience._timer is None
    assert hall.calls == 0


async def test_a_sender_who_has_gone_before_its_turn_began_starts_the_grace() -> None:
    hall, gone = Hall(), Gone()
    gone.set()
    hall.audience.join(gone)
    async with asyncio.timeout(5):
        await hall.called.wait()
    assert hall.calls == 1
