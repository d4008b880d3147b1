"""What the spawner counts, for `ops/spawner.sock`. Labels are closed sets, never a visitor or a turn."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram


class Metrics:
    """The spawner's metrics in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.turns = Counter("gatehouse_turns", "Turns that ended.", ["reason"], registry=self.registry)
        self.refused = Counter(
            "gatehouse_turns_refused", "Turns not started.", ["reason"], registry=self.registry
        )
        self.running = Gauge("gatehouse_turns_running", "Turns that run now.", registry=self.registry)
        self.reaped = Counter(
            "gatehouse_containers_reaped", "Containers removed by the reaper.", registry=self.registry
        )
        self.start_seconds = Histogram(
            "gatehouse_turn_start_seconds",
            "From the request to the running container.",
            buckets=(0.05, 0.1, 0.2, 0.3, 0.5, 1, 2, 5, 10),
            registry=self.registry,
        )
