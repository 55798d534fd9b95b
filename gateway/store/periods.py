"""UTC days and months, in which budgets and roll-ups are counted.

A day is its number since 1970-01-01, a month is ``year * 12 + month - 1``: integers that grow.
"""

from __future__ import annotations

from datetime import date
from functools import lru_cache

DAY = 86_400
_EPOCH = date(1970, 1, 1).toordinal()


def day_of(at: float) -> int:
    """The UTC day that holds the Unix time ``at``."""
    return int(at // DAY)


@lru_cache(maxsize=64)
def month_of(day: int) -> int:
    """The month that holds ``day``."""
    there = date.fromordinal(_EPOCH + day)
    return there.year * 12 + there.month - 1


@lru_cache(maxsize=64)
def month_end(day: int) -> int:
    """The first day after the month that holds ``day``."""
    year, month = divmod(month_of(day) + 1, 12)
    return date(year, month + 1, 1).toordinal() - _EPOCH


def day_text(day: int) -> str:
    """``2026-11-30``."""
    return date.fromordinal(_EPOCH + day).isoformat()
