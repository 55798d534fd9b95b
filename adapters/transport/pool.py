"""Who may hold a connection: so many at once, the others in the order in which they came.

Nothing here waits or is a task; a call that finds a place pays for a set's entry. Must not know
what is held, nor for how long.
"""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

Holder = TypeVar("Holder")


class Pool(Generic[Holder]):
    """``size`` places; ``holders`` have one each."""

    __slots__ = ("_waiting", "holders", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.holders: set[Holder] = set()
        self._waiting: dict[Holder, asyncio.Future[None]] = {}

    def enter(self, holder: Holder) -> asyncio.Future[None] | None:
        """Give ``holder`` a place. While none is free: what to wait for, to have one."""
        if len(self.holders) < self.size:
            self.holders.add(holder)
            return None
        turn = self._waiting[holder] = asyncio.get_running_loop().create_future()
        return turn

    def leave(self, holder: Holder) -> None:
        """``holder`` has no place any more, nor waits for one. May be called twice."""
        if holder not in self.holders:
            self._waiting.pop(holder, None)
            return
        self.holders.discard(holder)
        while self._waiting:
            first = next(iter(self._waiting))
            turn = self._waiting.pop(first)
            if not turn.done():  # else its wait was cancelled
                self.holders.add(first)
                turn.set_result(None)
                return
