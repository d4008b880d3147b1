"""Everything outside a turn: one package per service, plus what they share."""

__version__ = "0.1.0"
