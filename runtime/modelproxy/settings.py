"""What an operator can set for the model proxy: one table, read from the environment in one place.

docs/reference/modelproxy-settings.md is written from it by `python -m runtime.modelproxy.settings`, and a
test compares them.
"""

from __future__ import annotations

import re
import sys
from decimal import Decimal, InvalidOperation
from pathlib import Path  # noqa: TC003  pydantic reads the annotations at run time
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from runtime import layout
from runtime.errors import ConfigError, Problem
from runtime.modelproxy.prices import ALIASES, PriceList, Prices

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pydantic.config import JsonDict

Usd = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
Price = Annotated[Decimal, Field(gt=0, le=1_000_000, allow_inf_nan=False)]

PAGE: Final = "docs/reference/modelproxy-settings.md"
MODEL_ID: Final = re.compile(r"[A-Za-z0-9._:/@\[\]-]{1,128}")
DECIMAL_COMMA: Final = re.compile(r"([0-9]{1,7}),([0-9]{1,2})")
MAX_PRICE: Final = 1_000_000
DAY: Final[JsonDict] = {"unit": "US dollars", "example": "5.00"}
MTOK: Final[JsonDict] = {"unit": "US dollars a million tokens", "example": "0.30"}
PRICES: Final[JsonDict] = {**MTOK, "example": "my-model=0.30/1.20"}


class Settings(BaseModel):
    """Every setting of the model proxy; the alias is the name of its environment variable."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: Literal["", "demo"] = Field(
        "", alias="MODEL", description="`demo` allows the demo model on a stack that has run live."
    )
    key_file: Path = Field(
        layout.MODEL_KEY_FILE,
        alias="MODEL_API_KEY_FILE",
        description="File with the model API key; an empty file means the demo model.",
    )
    auth_header: Literal["x-api-key", "bearer"] = Field(
        "x-api-key", alias="MODEL_AUTH_HEADER", description="How the key is sent upstream."
    )
    upstream_url: str = Field(
        "https://api.anthropic.com",
        alias="MODEL_UPSTREAM_URL",
        description="Base URL of the Messages API; http is taken with a warning (the key travels in clear).",
    )
    ca_file: Path | None = Field(
        None, alias="MODEL_CA_FILE", description="PEM file of certificates to trust besides the usual ones."
    )
    proxy_from_environment: bool = Field(
        False,  # noqa: FBT003  pydantic's default argument
        alias="MODEL_PROXY_FROM_ENVIRONMENT",
        description="Whether HTTPS_PROXY, HTTP_PROXY and NO_PROXY are obeyed.",
    )
    daily_usd: Usd = Field(
        Decimal(5),
        alias="MODEL_DAILY_USD",
        description="What one agent may spend in a UTC day.",
        json_schema_extra=DAY,
    )
    prices: dict[str, Prices] = Field(
        {},
        alias="MODEL_PRICES",
        description="Prices of models by exact id, `id=input/output,id=input/output`; they win over the"
        " built-in table (docs/explanation/money.md).",
        json_schema_extra=PRICES,
    )
    price_input_usd_per_mtok: Price | None = Field(
        None,
        alias="MODEL_PRICE_INPUT_USD_PER_MTOK",
        description="Price of input for every model that neither MODEL_PRICES nor the table names; needs the"
        " next one too. Without both, such a model is refused.",
        json_schema_extra=MTOK,
    )
    price_output_usd_per_mtok: Price | None = Field(
        None,
        alias="MODEL_PRICE_OUTPUT_USD_PER_MTOK",
        description="The same for output.",
        json_schema_extra=MTOK,
    )
    state: Path = Field(layout.STATE, alias="MODEL_STATE_DIR", description="Where the ledger is kept.")
    control_socket: Path = Field(
        layout.MODEL_CONTROL_SOCKET, alias="MODEL_CONTROL_SOCKET", description="Where the spawner asks."
    )
    doors: Path = Field(layout.DOORS, alias="MODEL_DOORS_DIR", description="Where each turn's folder is.")
    ops: Path = Field(layout.OPS, alias="MODEL_OPS_DIR", description="Where the ops socket is.")

    @field_validator("upstream_url")
    @classmethod
    def _plain_url(cls, value: str) -> str:
        """Take scheme, host, port and path only: userinfo or a query would travel with every request."""
        parts = urlsplit(value)
        port_is_fine = parts.port is None or 0 < parts.port < 65536
        if parts.scheme not in {"http", "https"} or not parts.hostname or not port_is_fine:
            raise ValueError("must be an http or https URL with a host")
        if "@" in parts.netloc or parts.query or parts.fragment or "?" in value or "#" in value:
            raise ValueError("must have no user, password, query or fragment")
        if not value.isascii() or not value.isprintable() or " " in value:
            raise ValueError("must be printable ASCII without spaces")
        return value.rstrip("/")

    @field_validator("prices", mode="before")
    @classmethod
    def _price_of_each(cls, value: object) -> object:
        """Read `id=input/output` entries; a mistake is told by its place, an id may be a pasted key."""
        if not isinstance(value, str):
            return value
        found: dict[str, Prices] = {}
        for place, entry in enumerate(value.split(","), start=1):
            model, _, amounts = entry.strip().partition("=")
            given, slash, out = amounts.partition("/")
            if not MODEL_ID.fullmatch(model) or not slash:
                raise ValueError(f"entry {place} is not id=input/output")
            if model in ALIASES:
                raise ValueError(f"entry {place} prices an alias: name the exact id, {ALIASES[model]}")
            if model in found:
                raise ValueError(f"entry {place} prices a model again")
            found[model] = Prices(_amount(given, place), _amount(out, place))
        return found

    @model_validator(mode="after")
    def _both_or_neither(self) -> Self:
        """Refuse half a price: the other half would be free."""
        if (self.price_input_usd_per_mtok is None) != (self.price_output_usd_per_mtok is None):
            raise ValueError("MODEL_PRICE_INPUT_USD_PER_MTOK and MODEL_PRICE_OUTPUT_USD_PER_MTOK: set both")
        return self

    def price_list(self, *, demo: bool) -> PriceList:
        """Return the prices in force."""
        given, out = self.price_input_usd_per_mtok, self.price_output_usd_per_mtok
        other = None if given is None or out is None else Prices(given, out)
        return PriceList(self.prices, other, demo=demo)

    @property
    def upstream_is_clear_text(self) -> bool:
        """Whether the key would travel unencrypted."""
        return self.upstream_url.startswith("http://")


def _amount(text: str, place: int) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or not 0 < amount <= MAX_PRICE:
        raise ValueError(f"entry {place} has a price that is no number above 0, at most {MAX_PRICE}")
    return amount


def read_settings(environ: Mapping[str, str]) -> Settings:
    """Return the settings in `environ`; an empty variable counts as unset, variables of others are ignored.

    Raises ConfigError with every mistake at once, without the values: one of them may be a pasted key.
    """
    names = [str(field.alias) for field in Settings.model_fields.values()]
    given: dict[str, Any] = {name: environ[name] for name in names if environ.get(name)}
    try:
        return Settings.model_validate(given)
    except ValidationError as error:
        problems = tuple(
            Problem(
                "environment", 0, 0, ".".join(map(str, item["loc"])), item["msg"], _mend(item["loc"], given)
            )
            for item in error.errors(include_input=False, include_url=False, include_context=False)
        )
    raise ConfigError(problems)


def _mend(place: tuple[int | str, ...], given: Mapping[str, str]) -> str:
    """Return how to mend the setting at `place`. An amount with a decimal comma is shown; no key looks so."""
    comma = DECIMAL_COMMA.fullmatch(given.get(str(place[0]), "").strip()) if place else None
    if comma:
        return f"write {comma[1]}.{comma[2]}; see {PAGE}"
    for field in Settings.model_fields.values():
        if place and field.alias == place[0]:
            extra = field.json_schema_extra
            example = extra.get("example") if isinstance(extra, dict) else None
            return f"write it like {example}, or leave it unset; see {PAGE}" if example else f"see {PAGE}"
    return f"see {PAGE}"


def settings_page() -> str:
    """Return docs/reference/modelproxy-settings.md."""
    rows = []
    for field in Settings.model_fields.values():
        default = "empty" if field.default in (None, "", {}) else f"`{field.default}`"
        extra = field.json_schema_extra
        unit = extra["unit"] if isinstance(extra, dict) else ""
        rows.append(f"| `{field.alias}` | {default} | {unit} | {field.description} |")
    head = [
        "# Settings of the model proxy",
        "",
        "Written by `python -m runtime.modelproxy.settings` from `runtime/modelproxy/settings.py`.",
        "They are environment variables of the `modelproxy` service; one that is set to nothing is not set.",
        "",
        "| variable | default | unit | meaning |",
        "|---|---|---|---|",
    ]
    return "\n".join([*head, *rows, ""])


if __name__ == "__main__":
    sys.stdout.write(settings_page())
