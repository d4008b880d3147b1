"""What a failure of the A2A client or the connection means to who asked: a sentence, a mend and an exit code.

8 says that there is no working agent at the address, 1 that the agent is there and refuses.
"""

from __future__ import annotations

from typing import Final

import httpx
from a2a.client.errors import A2AClientError
from a2a.utils.errors import A2AError
from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]  # it has no types

from runtime.cli.said import line_of
from runtime.errors import GatehouseError, ServiceUnreachable

# What the SDK raises when a server sends something else than A2A: its own errors, and whatever its parsers
# and dictionaries meet in JSON of another shape (seen, a2a-sdk 1.3.0).
NOT_A2A: Final = (
    A2AError,
    httpx.HTTPError,
    httpx.InvalidURL,
    ParseError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
    ArithmeticError,
)


def failure_of(error: BaseException, url: str, *, own: bool) -> GatehouseError:
    """Return the failure that an error of NOT_A2A stands for, with the agent at `url`.

    `own` says that it is this checkout's stack.
    """
    found: BaseException | None = error
    while found is not None and not isinstance(found, httpx.HTTPError):
        found = found.__cause__
    found = found or error
    if isinstance(found, httpx.HTTPStatusError):
        return _refused(found.response, url, own=own)
    if isinstance(found, httpx.TimeoutException):
        return ServiceUnreachable(f"{url} did not answer in time", "is the address right?")
    if isinstance(found, httpx.ConnectError):
        return _unreachable(found, url, own=own)
    if isinstance(found, httpx.HTTPError | httpx.InvalidURL):
        return ServiceUnreachable(
            f"the connection to {url} failed: {_why(found)}", "ask again; the turn may have ended"
        )
    if isinstance(error, A2AError) and not isinstance(error, A2AClientError):
        return GatehouseError(f"the agent refused the question: {line_of(error.message)}")
    return ServiceUnreachable(
        f"what answers at {url} is no A2A agent: {_why(error)}", "is the address right?"
    )


def _refused(response: httpx.Response, url: str, *, own: bool) -> ServiceUnreachable:
    status = response.status_code
    if response.is_redirect:
        target = line_of(response.headers.get("location", ""), 200)
        return ServiceUnreachable(f"{url} sends its callers to {target}", "give that address")
    if status == httpx.codes.NOT_FOUND and response.request.method == "GET":
        return ServiceUnreachable(f"there is no agent card at {url}", "is it the address of an A2A agent?")
    if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
        return ServiceUnreachable(
            f"{url} wants to know who asks (HTTP {status})", "ask it with a client that can sign in"
        )
    mend = "./gatehouse status" if own and status >= httpx.codes.INTERNAL_SERVER_ERROR else "ask again later"
    return ServiceUnreachable(f"{url} answers with HTTP {status}", mend)


def _unreachable(error: httpx.ConnectError, url: str, *, own: bool) -> ServiceUnreachable:
    why = _why(error)
    if "certificate" in why.lower():
        return ServiceUnreachable(
            f"{url} has a certificate that this host does not trust: {why}",
            "set SSL_CERT_FILE to a bundle that holds its authority",
        )
    if "SSL" in why or "TLS" in why:
        return ServiceUnreachable(f"{url} does not speak TLS: {why}", "is it http:// there?")
    if own:
        return ServiceUnreachable(f"no stack answers at {url}", "./gatehouse up, or set AGENT_PORT")
    return ServiceUnreachable(f"nothing answers at {url}: {why}", "is the address right?")


def _why(error: BaseException) -> str:
    return line_of(str(error), 300) or type(error).__name__
