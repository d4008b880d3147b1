"""What the spawner tells the model proxy: open this turn's door, close it (docs/reference/protocols.md)."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING, Annotated, Final

import structlog
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from runtime.bodies import ClientGone, read_body
from runtime.modelproxy import ledger
from runtime.modelproxy.door import Door, DoorStopped
from runtime.modelproxy.doors import DoorExists, TooManyDoors
from runtime.modelproxy.grammar import Terms
from runtime.modelproxy.prices import exact
from runtime.strict_json import StrictJsonError, parse_object

if TYPE_CHECKING:
    from starlette.requests import Request

    from runtime.modelproxy.doors import Doors
    from runtime.modelproxy.prices import PriceList, Prices

log = structlog.get_logger("modelproxy")

MAX_BODY_BYTES: Final = 16 * 1024
BODY_SECONDS: Final = 3.0  # the spawner waits no longer for its answer
MAX_SECONDS: Final = 3600.0

PRICE_IT: Final = "set MODEL_PRICES, or use a model of the table (docs/explanation/money.md)"

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Model = Annotated[str, Field(pattern=r"^[A-Za-z0-9._:/@\[\]-]{1,128}$")]


class LimitsBody(BaseModel):
    """A turn's budget, as architecture §2 derives it from the pack."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    requests: Annotated[int, Field(ge=1, le=1000)]
    body_bytes: Annotated[int, Field(ge=1024, le=32 * 1024 * 1024)]
    input_tokens: Annotated[int, Field(ge=1, le=100_000_000)]
    output_tokens: Annotated[int, Field(ge=1, le=128_000)]


class TurnBody(BaseModel):
    """The body of `PUT /turns/{turn}`. `deadline` is Unix time in seconds."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    agent: Name
    context: Name
    visitor: Name
    model: Model
    limits: LimitsBody
    deadline: Annotated[float, Field(allow_inf_nan=False)]


def parse_turn(body: bytes) -> TurnBody:
    """Return the body checked. Raises StrictJsonError or ValidationError on anything else."""
    return TurnBody.model_validate(parse_object(body))


def _error(status: int, error: str, detail: str) -> Response:
    return JSONResponse({"error": error, "detail": detail}, status_code=status)


def _fault(error: StrictJsonError | ValidationError) -> str:
    if isinstance(error, StrictJsonError):
        return str(error)
    return "; ".join(
        f"{'.'.join(map(str, item['loc']))}: {item['msg']}"
        for item in error.errors(include_input=False, include_url=False, include_context=False)
    )


class Control:
    """The three calls the spawner makes."""

    def __init__(self, doors: Doors, prices: PriceList) -> None:
        self._doors = doors
        self._prices = prices

    async def turn(self, request: Request) -> Response:
        """Answer `PUT` and `DELETE /turns/{turn}`."""
        turn = request.path_params["turn"]
        if len(turn) != 32 or not set(turn) <= set("0123456789abcdef"):
            return _error(400, "bad-request", "turn: not 32 hex digits")
        if request.method == "PUT":
            return await self._put(turn, request)
        usage = await self._doors.close(turn)
        if usage is None:
            return _error(404, "unknown-turn", "no such door")
        return JSONResponse(dataclasses.asdict(usage))

    async def _put(self, turn: str, request: Request) -> Response:
        try:
            body = await read_body(request.receive, MAX_BODY_BYTES, seconds=BODY_SECONDS)
        except (TimeoutError, ClientGone):
            return _error(400, "bad-request", "the body did not come to its end")
        if body.too_long:
            return _error(400, "bad-request", f"body over {MAX_BODY_BYTES} bytes")
        try:
            asked = parse_turn(body.data)
        except (StrictJsonError, ValidationError) as error:
            return _error(400, "bad-request", _fault(error))
        if not 0 < asked.deadline - time.time() <= MAX_SECONDS:
            return _error(400, "bad-request", f"deadline: not within the next {MAX_SECONDS:.0f} seconds")
        model = exact(asked.model)
        prices = self._prices.of(model)
        if prices is None:
            log.error("model_without_a_price", turn=turn, agent=asked.agent, model=model, mend=PRICE_IT)
            return _error(422, "no-price", f"{model} has no price: {PRICE_IT}")
        try:
            await self._doors.open(_door(turn, asked, model, prices))
        except DoorExists:
            return _error(409, "known-turn", "this turn has a door already")
        except DoorStopped:
            return _error(409, "closed-turn", "this turn was closed before its door was open")
        except TooManyDoors:
            return _error(503, "too-many-doors", "close some first")
        except OSError as error:
            return _error(503, "no-folder", f"cannot listen in the turn's folder: {error.strerror}")
        return JSONResponse({}, status_code=201)

    async def health(self, _request: Request) -> Response:
        """Answer `GET /health`."""
        return JSONResponse({"status": "ok", "demo": self._prices.demo})


def _door(turn: str, asked: TurnBody, model: str, prices: Prices) -> Door:
    limits = asked.limits
    return Door(
        turn=turn,
        agent=asked.agent,
        context=asked.context,
        terms=Terms(model, asked.visitor, limits.output_tokens),
        prices=prices,
        limits=ledger.Limits(limits.requests, limits.input_tokens, limits.output_tokens),
        body_bytes=limits.body_bytes,
        deadline=asked.deadline,
    )


def control_app(doors: Doors, prices: PriceList) -> Starlette:
    """Build the app behind `ctl-model/control.sock`."""
    control = Control(doors, prices)
    return Starlette(
        routes=[
            Route("/turns/{turn}", control.turn, methods=["PUT", "DELETE"]),
            Route("/health", control.health, methods=["GET"]),
        ]
    )
