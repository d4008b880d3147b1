"""What the front may ask: the body of `POST /turns`, checked whole before anything is done with it. Pure.

The front faces the internet, so it counts as taken over: whatever it sends, only these six fields in these
shapes get past this file (architecture §3; abuse test D02). Errors name the field and the rule, never the
value.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from runtime.strict_json import StrictJsonError, parse_object

MAX_BODY_BYTES = 320 * 1024
MAX_PROMPT_BYTES = 256 * 1024
ID_PATTERN = r"^[A-Za-z0-9._-]{1,64}$"
DIGEST_PATTERN = r"^[0-9a-f]{64}$"


class BadRequestError(ValueError):
    """The body is not one turn's request; the text is safe to send back."""


class TurnRequest(BaseModel):
    """One turn as the front asks for it (docs/reference/protocols.md, "Front ↔ spawner")."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, hide_input_in_errors=True)

    agent: str = Field(min_length=1, max_length=64)
    definition: str = Field(pattern=DIGEST_PATTERN)
    context: str = Field(pattern=ID_PATTERN)
    visitor: str = Field(pattern=ID_PATTERN)
    prompt: str = Field(min_length=1, max_length=MAX_PROMPT_BYTES)
    timeout_seconds: float = Field(ge=1, le=3600, allow_inf_nan=False)

    @field_validator("prompt")
    @classmethod
    def prompt_fits(cls, untrusted_prompt: str) -> str:
        """Hold the limit in UTF-8 bytes; a lone surrogate is not text."""
        try:
            size = len(untrusted_prompt.encode())
        except UnicodeEncodeError as error:
            raise ValueError("not valid Unicode text") from error
        if size > MAX_PROMPT_BYTES:
            raise ValueError(f"more than {MAX_PROMPT_BYTES} bytes in UTF-8")
        return untrusted_prompt


def parse_turn_request(untrusted_body: bytes) -> TurnRequest:
    """Return the request in `untrusted_body`. Raises BadRequestError with a text that repeats none of it."""
    if len(untrusted_body) > MAX_BODY_BYTES:
        raise BadRequestError(f"more than {MAX_BODY_BYTES} bytes")
    try:
        return TurnRequest.model_validate(parse_object(untrusted_body))
    except StrictJsonError as error:
        raise BadRequestError(str(error)) from error
    except ValidationError as error:
        raise BadRequestError(_explained(error)) from error


def _explained(error: ValidationError) -> str:
    """Name each known field with its rule; unknown names are not repeated, they are the caller's text."""
    known = set(TurnRequest.model_fields)
    parts = []
    for problem in error.errors(include_input=False, include_url=False, include_context=False):
        name = str(problem["loc"][0]) if problem["loc"] else ""
        parts.append(f"{name}: {problem['msg']}" if name in known else "unknown field")
    return "; ".join(sorted(set(parts)))
