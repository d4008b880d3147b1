"""What the model proxy counts for operators. No label holds a turn, a visitor or any text."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge


class Metrics:
    """The proxy's counters, on a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "gatehouse_model_requests",
            "Requests that came through a door, by status and control.",
            ["status", "control"],
            registry=self.registry,
        )
        self.tokens = Counter(
            "gatehouse_model_tokens", "Tokens settled.", ["agent", "kind"], registry=self.registry
        )
        self.spent = Counter(
            "gatehouse_model_micro_usd", "Micro-USD settled.", ["agent"], registry=self.registry
        )
        self.upstream_failures = Counter(
            "gatehouse_model_upstream_failures", "Failed tries.", ["reason"], registry=self.registry
        )
        self.doors = Gauge("gatehouse_model_doors", "Doors open now.", registry=self.registry)
