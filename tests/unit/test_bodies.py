from __future__ import annotations

from typing import TYPE_CHECKING, Any

import anyio
import pytest

from runtime.bodies import Body, ClientGone, read_body

if TYPE_CHECKING:
    from starlette.types import Message, Receive


def arriving(*pieces: bytes, then: str = "end") -> Receive:
    """Hand over `pieces`; then the body ends, the client goes on for ever, leaves, or says nothing more."""
    left = list(pieces)

    async def receive() -> Message:
        if left or then == "endless":
            piece = left.pop(0) if left else b"x" * 10
            return {"type": "http.request", "body": piece, "more_body": bool(left) or then != "end"}
        if then == "leaves":
            return {"type": "http.disconnect"}
        await anyio.sleep_forever()
        raise AssertionError

    return receive


async def read(receive: Receive, **more: Any) -> Body:
    with anyio.fail_after(5):
        return await read_body(receive, 10, **{"seconds": 3.0, **more})


async def test_a_body_up_to_the_cap_is_whole() -> None:
    assert await read(arriving(b"12345", b"67890")) == Body(b"1234567890", 10, ended=True, too_long=False)
    assert await read(arriving(b"")) == Body(b"", 0, ended=True, too_long=False)


async def test_one_byte_more_is_too_long_and_nothing_of_it_is_kept() -> None:
    assert await read(arriving(b"12345", b"678901")) == Body(b"", 11, ended=True, too_long=True)


async def test_a_body_without_an_end_is_left_after_the_cap_and_what_may_be_drained() -> None:
    assert await read(arriving(then="endless")) == Body(b"", 20, ended=False, too_long=True)
    drained = await read(arriving(then="endless"), drain_bytes=25)
    assert drained == Body(b"", 40, ended=False, too_long=True)


async def test_a_client_that_leaves_is_told_apart_from_one_that_is_slow() -> None:
    with pytest.raises(ClientGone):
        await read(arriving(b"1", then="leaves"))
    with pytest.raises(TimeoutError):
        await read(arriving(b"1", then="silent"), seconds=0.01)
