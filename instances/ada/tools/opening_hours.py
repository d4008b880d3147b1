"""Prints the office hours of a weekday or a date, so that no model has to work out which weekday a date is.

A granted tool (see agent.yaml): read-only, standard library, no file and no network. The hours are those of
grounding/office-hours.md; a test compares the two.
"""

from __future__ import annotations

import argparse
import datetime as dt
import sys

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
HOURS = {"tuesday": "14:00 to 16:00", "thursday": "14:00 to 16:00"}
CLOSED_MONTH = 8  # August
YEAR_END = ((12, 24), (1, 1))  # closed from the first to the second, month and day


def hours_of(day: str) -> str:
    """Return one sentence about `day`, an English weekday or a date as YYYY-MM-DD; ValueError otherwise."""
    word = day.strip().lower()
    if word in WEEKDAYS:
        return _sentence(word.capitalize() + "s", HOURS.get(word))
    date = dt.date.fromisoformat(word)
    name = f"{WEEKDAYS[date.weekday()].capitalize()} {date.isoformat()}"
    first, last = YEAR_END
    closed = date.month == CLOSED_MONTH or (date.month, date.day) >= first or (date.month, date.day) <= last
    return _sentence(name, None if closed else HOURS.get(WEEKDAYS[date.weekday()]))


def _sentence(name: str, hours: str | None) -> str:
    return f"{name}: {hours}, London time." if hours else f"{name}: no office hours."


def main(argv: list[str] | None = None) -> int:
    """Run the command line; 0 and the answer on stdout, or 2 and a sentence on stderr."""
    parser = argparse.ArgumentParser(
        prog="opening_hours", description="Print office hours.", allow_abbrev=False
    )
    parser.add_argument("--day", help="weekday in English, or date as YYYY-MM-DD; default: all hours")
    day = parser.parse_args(argv).day
    try:
        lines = [hours_of(day)] if day is not None else [hours_of(name) for name in HOURS]
    except ValueError:
        parser.error("--day takes a weekday such as thursday, or a date such as 2026-03-05")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
