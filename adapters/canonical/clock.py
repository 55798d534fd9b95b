"""Time and ids, injected so that tests own them."""

from __future__ import annotations

import secrets
import time
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
        """A fresh, unguessable id: ``prefix`` and 24 hexadecimal digits."""
        ...


class SystemClock:
    """The machine's own clock."""

    __slots__ = ()

    wall = staticmethod(time.time)
    monotonic = staticmethod(time.monotonic)

    @staticmethod
    def new_id(prefix: str) -> str:
        return prefix + secrets.token_hex(12)
