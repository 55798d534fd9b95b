"""Reads a run's events from a place on, and follows them as they are written.

The books are what is read; a notice only says when. So a reader that comes late, comes back, or
is slow sees each event exactly once, in order; and nobody waits for it. One read holds at most a
page: that is the whole buffer of a reader.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

from adapters.canonical.faults import Fault
from gateway.runs.hub import Feed, Told, told_row
from gateway.runs.ledger import Ledger

PAGE = 200
"""Events in one read at most."""
PAGE_BYTES = 96 * 1024
"""One read ends with the event that reaches so much data."""


class Tail:
    """One reader's place in a run. Made by :func:`following`."""

    __slots__ = ("_feed", "_flag", "_ledger", "_run_id", "cursor", "ended")

    def __init__(
        self, ledger: Ledger, run_id: str, cursor: int, feed: Feed, flag: asyncio.Event
    ) -> None:
        self._ledger = ledger
        self._run_id = run_id
        self._feed = feed
        self._flag = flag
        self.cursor = cursor
        self.ended = False

    async def read(self, patience: float) -> list[Told]:
        """The next events; none if there was no news for ``patience`` seconds, or if the run has
        ended (then ``ended`` says so).

        :raises Fault: ``gone`` where the run is silent for it has been deleted, with its end;
            ``store_unavailable``.
        """
        page = await self._page()
        if page or self.ended:
            return page
        try:
            await asyncio.wait_for(self._flag.wait(), patience)
        except TimeoutError:
            row = await self._ledger.store.run(self._run_id)
            if row is None or row.swept:
                raise Fault("gone", "This run has been deleted.") from None
        return await self._page()

    async def _page(self) -> list[Told]:
        self._flag.clear()
        page = self._feed.after(self.cursor, PAGE, PAGE_BYTES)
        if page is None:
            rows = await self._ledger.store.run_events(
                self._run_id, self.cursor, PAGE, max_bytes=PAGE_BYTES
            )
            page = [told_row(row) for row in rows]
        if page:
            self.cursor = page[-1].seq
            self.ended = page[-1].terminal
        return page


@contextlib.contextmanager
def following(ledger: Ledger, run_id: str, cursor: int) -> Iterator[Tail]:
    """A reader that has seen everything up to ``cursor``."""
    with ledger.hub.following(run_id) as (feed, flag):
        yield Tail(ledger, run_id, cursor, feed, flag)
