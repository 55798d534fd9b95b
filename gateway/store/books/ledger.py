"""The ledger: attempts, calls, and what keys have used."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from adapters.canonical.clock import Clock
from gateway.settings.snapshot import Limits
from gateway.store import statements
from gateway.store.base import (
    Opening,
    Rates,
    RequestEnd,
    RequestRow,
    Settlement,
)
from gateway.store.books import Apply, Database
from gateway.store.entries import Close, never_sent
from gateway.store.jobs import Durability
from gateway.store.limits import Account


class LedgerBook:
    """See :class:`gateway.store.base.Store`."""

    _db: Database
    _clock: Clock
    _durability: Durability

    enter: Apply
    """Enters ``Opening``, ``Settlement`` and ``Close``."""
    renew_leases: Apply
    """Takes ``(attempt ids, lease)``."""
    settle_lapsed: Apply
    """Takes ``(leases that end before this, time of the settlement)``, answers a count."""

    async def open_attempt(self, opening: Opening) -> Rates:
        future = self._db.write(self.enter, opening, self._durability, undo=self._unsent)
        try:
            rates: Rates = await future
        except asyncio.CancelledError:
            # The row may be there by now, and nobody is left to settle it: the queue is in
            # order, so this settlement finds the row if it was written.
            self._db.write(self.enter, self._unsent(opening), self._durability, must=True)
            raise
        return rates

    def _unsent(self, opening: Opening) -> Settlement:
        return never_sent(opening, self._clock.wall())

    def settle_attempt(self, settlement: Settlement) -> asyncio.Future[None]:
        return self._db.write(self.enter, settlement, self._durability, must=True)

    async def record_refusal(self, request: RequestRow, end: RequestEnd) -> None:
        entry = Close(request.id, self._clock.wall(), end, request)
        await self._db.write(self.enter, entry, self._durability, must=True)

    async def renew(self, attempt_ids: Sequence[str], lease_until: float) -> None:
        if attempt_ids:
            entry = (tuple(attempt_ids), lease_until)
            await self._db.write(self.renew_leases, entry, self._durability)

    async def expire(self, now: float) -> int:
        settled: int = await self._db.write(self.settle_lapsed, (now, now), self._durability)
        return settled

    async def rates(self, key_id: str, limits: Limits, now: float) -> Rates:
        account = Account(key_id)
        for row in await self._db.read(f"{statements.ACCOUNTS} key_id = ?", (key_id,)):
            account = Account.loaded(tuple(row.values()))
        account.advance(now)
        return account.rates(limits, now)
