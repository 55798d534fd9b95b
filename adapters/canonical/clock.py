"""Time and ids, injected so that tests own them."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator
from itertools import count
from typing import Protocol


class Clock(Protocol):
    """Wall time for books, monotonic time for measuring, and fresh ids."""

    def wall(self) -> float:
        """Seconds since the Unix epoch, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds on a clock that never goes back."""
        ...

    def new_id(self, prefix: str) -> str:
        """A fresh, unguessable id: ``prefix`` and 24 hexadecimal digits, of which 14 are random.
        Those that are made later mostly sort later."""
        ...


_RANDOM = 14
_BATCH = 256

_pieces = re.compile(f".{{{_RANDOM}}}").findall


class SystemClock:
    """The machine's own clock.

    Randomness is fetched from the system for many ids at once, because each fetch lets go of the
    interpreter's lock (measured: an id in 0.4 µs instead of 2, and without a switch of threads).
    They begin with the time at which that was and count on from there, so that what is kept by id
    is written behind what was written last, and not all over an index.
    """

    __slots__ = ("_fresh", "_next")

    def __init__(self) -> None:
        self._fresh: Iterator[str] = iter(())
        self._next = 0

    wall = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    def new_id(self, prefix: str) -> str:
        # Taking the next one runs no code of Python's, so no two threads are given the same.
        digits = next(self._fresh, None)
        if digits is None:
            many, first = secrets.token_hex(_BATCH * _RANDOM // 2), int(self.wall() * 256)
            first = max(first, self._next)  # more than 256 a second run ahead of the time
            self._next = first + _BATCH
            fresh = map("%010x%s".__mod__, zip(count(first), _pieces(many), strict=False))
            self._fresh, digits = fresh, next(fresh)
        return prefix + digits
