"""Points in time as people type them: ``7d`` ago, ``2026-11-30``, ``2026-11-30T08:00``."""

from __future__ import annotations

import argparse
import re
import time
from datetime import UTC, datetime

from gateway.settings.bounds import LONGEST

_SPAN = re.compile(r"(\d{1,12})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}


def past(text: str) -> float:
    """Unix seconds of a moment: a span counts back from now, a date is UTC."""
    return _moment(text, -1)


def future(text: str) -> float:
    """Unix seconds of a moment to come: a span counts on from now, a date is UTC."""
    moment, now = _moment(text, 1), time.time()
    if not now < moment <= now + LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not within the next hundred years")
    return moment


def _moment(text: str, direction: int) -> float:
    span = _SPAN.fullmatch(text)
    if span is not None:
        return time.time() + direction * int(span.group(1)) * _SECONDS[span.group(2)]
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no moment: write a span like 7d or 12h, or a day like 2026-11-30"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def shown(seconds: float | None) -> str | None:
    """Unix seconds as ``2026-11-30 08:00:00`` UTC; beyond the calendar, as they are."""
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, tz=UTC)
    except (ValueError, OverflowError, OSError):
        return f"{seconds:.0f} s"
    return moment.strftime("%Y-%m-%d %H:%M:%S")
