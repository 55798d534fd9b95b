"""The tries under way in this process, so that nobody takes them for a crash's.

A row's lease ends some time after its try's longest time. A caller that reads slowly may stretch a
try beyond that, so leases are renewed as long as their try lasts. Must not know the store's rows.
"""

from __future__ import annotations

from gateway.store.base import Store

EVERY = 10.0
"""Seconds between two renewals; then also the rows of dead replicas are settled."""

SECONDS = 60.0
"""How long a renewed lease holds."""


class Leases:
    """Ids of open attempts; whoever opens one adds it and whoever settles it takes it out."""

    __slots__ = ("_open",)

    def __init__(self) -> None:
        self._open: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, attempt_id: str, until: float) -> None:
        """An attempt was opened with a lease until then (Unix seconds)."""
        self._open[attempt_id] = until

    def discard(self, attempt_id: str) -> None:
        """It was settled."""
        self._open.pop(attempt_id, None)

    async def keep(self, store: Store, now: float) -> None:
        """Renew what would end before the next renewal but one, then settle what is nobody's.

        :raises Fault: ``store_unavailable``.
        """
        ending = [one for one, until in self._open.items() if until < now + SECONDS / 2]
        if ending:
            await store.renew(ending, now + SECONDS)
            self._open.update(dict.fromkeys(self._open.keys() & set(ending), now + SECONDS))
        await store.expire(now)
