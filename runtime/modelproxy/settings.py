"""What an operator can set for the model proxy: one table, read from the environment in one place."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path  # noqa: TC003  pydantic reads the annotations at run time
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from runtime import layout
from runtime.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

Usd = Annotated[Decimal, Field(ge=0, le=1_000_000, allow_inf_nan=False)]


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
        Decimal(5), alias="MODEL_DAILY_USD", description="What one agent may spend in a UTC day, US dollars."
    )
    price_input_usd_per_mtok: Usd = Field(
        Decimal(3), alias="MODEL_PRICE_INPUT_USD_PER_MTOK", description="US dollars a million input tokens."
    )
    price_output_usd_per_mtok: Usd = Field(
        Decimal(15),
        alias="MODEL_PRICE_OUTPUT_USD_PER_MTOK",
        description="US dollars a million output tokens.",
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

    @property
    def upstream_is_clear_text(self) -> bool:
        """Whether the key would travel unencrypted."""
        return self.upstream_url.startswith("http://")


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
                "environment", 0, 0, ".".join(map(str, item["loc"])), item["msg"], "see the settings page"
            )
            for item in error.errors(include_input=False, include_url=False, include_context=False)
        )
    raise ConfigError(problems)
