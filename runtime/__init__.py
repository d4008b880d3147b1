"""Everything outside a turn: one package per service, plus what they share."""

import os

# The A2A SDK makes some fifty spans for each message, for a tracer that no service has (measured: a fifth of
# a message's time). It reads this when it is first imported, so it must be said before.
os.environ.setdefault("OTEL_INSTRUMENTATION_A2A_SDK_ENABLED", "false")

__version__ = "0.1.0"
