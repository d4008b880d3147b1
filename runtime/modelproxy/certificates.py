"""Whom the model proxy trusts when it asks the real Messages API."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from runtime.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path


def trust(ca_file: Path | None) -> ssl.SSLContext:
    """Return a context that trusts the system's authorities and those in `ca_file`.

    Raises HostError when the file cannot be used.
    """
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        try:
            context.load_verify_locations(ca_file)
        except OSError as error:  # ssl.SSLError is one
            raise HostError(
                f"the certificates in {ca_file} cannot be used: {error}", "give a PEM file"
            ) from None
    return context
