"""Resident memory of each service of a stack that has just started."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.numbers import Row
from tests.bench.proc import resident_bytes
from tests.bench.wanted import AT_REST_MB
from tests.harness.stack import docker

if TYPE_CHECKING:
    from tests.harness.stack import Stack


def resident_mb(stack: Stack, service: str) -> float:
    """Return the resident memory of a service's processes in MB (10^6 bytes)."""
    rows = docker("top", stack.service(service), "-o", "pid,args").splitlines()[1:]
    return sum(resident_bytes(int(row.split()[0])) for row in rows) / 1e6


def measure(stack: Stack) -> list[Row]:
    """Return the memory of every service."""
    return [
        Row(f"memory at rest, {service}", resident_mb(stack, service), "MB", digits=0, wanted=wanted)
        for service, wanted in AT_REST_MB.items()
    ]
