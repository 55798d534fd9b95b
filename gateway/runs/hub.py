"""Who waits for news of a run, within this process.

A notice is only a hint that there is something to read; the books say what. So nothing is lost if
one is missed, and nothing is queued for a reader that is slow: a set flag can't be set twice. The
newest events are kept at hand for all readers of a run together, so that many who follow live cost
one reading of the books, not one each.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from orjson import Fragment

from adapters.wire.json import dumps_kept
from gateway.runs.events import TERMINAL, Event
from gateway.store.runs import EventRow

MAX_RECENT = 256
"""Events kept at hand of a run that has readers."""
MAX_RECENT_BYTES = 512 * 1024


class Told(NamedTuple):
    """An event as readers get it: ``body`` is the envelope's JSON text."""

    seq: int
    type: str
    body: bytes

    @property
    def terminal(self) -> bool:
        """Whether it is the run's last."""
        return self.type in TERMINAL


def told(event: Event) -> Told:
    """``event`` as readers get it."""
    return Told(event.seq, event.type, dumps_kept(event.shown()))


def told_row(row: EventRow) -> Told:
    """An event of the books as readers get it: its data goes as it is."""
    return Told(row.seq, row.type, dumps_kept({**row._asdict(), "data": Fragment(row.data)}))


class Feed:
    """A run's newest events, for its readers. Without a gap, or not at all. ``latest`` is the
    number of the last event that this process has written; ``foreign``: another one may have
    written what the run's worker has not read."""

    __slots__ = ("_bytes", "_recent", "foreign", "latest", "readers")

    def __init__(self) -> None:
        self.readers: set[asyncio.Event] = set()
        self.latest = 0
        self.foreign = True
        self._recent: deque[Told] = deque()
        self._bytes = 0

    def add(self, events: Sequence[Event]) -> None:
        """Take events that are committed, and wake the readers."""
        for event in events:
            if self._recent and self._recent[-1].seq + 1 != event.seq:
                self._drop()
            one = told(event)
            self._recent.append(one)
            self._bytes += len(one.body)
            self.latest = max(event.seq, self.latest)
        while len(self._recent) > MAX_RECENT or self._bytes > MAX_RECENT_BYTES:
            self._bytes -= len(self._recent.popleft().body)
        self.wake()

    def forget(self) -> None:
        """What is at hand may not be all there is."""
        self.foreign = True
        self._drop()

    def _drop(self) -> None:
        self._recent.clear()
        self._bytes = 0

    def wake(self) -> None:
        """There may be news."""
        for reader in self.readers:
            reader.set()

    def after(self, cursor: int, limit: int, max_bytes: int) -> list[Told] | None:
        """The events beyond ``cursor``, ending with the one that reaches ``max_bytes``; ``None``
        where they are not all at hand."""
        if not self._recent or self._recent[0].seq > cursor + 1:
            return None
        if self._recent[-1].seq != self.latest:
            return None
        start = cursor + 1 - self._recent[0].seq
        page: list[Told] = []
        for one in islice(self._recent, start, start + limit):
            page.append(one)
            max_bytes -= len(one.body)
            if max_bytes <= 0:
                break
        return page


class Hub:
    """The feeds of the runs that somebody follows."""

    __slots__ = ("_feeds",)

    def __init__(self) -> None:
        self._feeds: dict[str, Feed] = {}

    def __len__(self) -> int:
        return len(self._feeds)

    @contextlib.contextmanager
    def following(self, run_id: str) -> Iterator[tuple[Feed, asyncio.Event]]:
        """The run's feed, and a flag that is set when there may be news. Follow before reading,
        so that nothing falls between."""
        feed = self._feeds.setdefault(run_id, Feed())
        flag = asyncio.Event()
        feed.readers.add(flag)
        try:
            yield feed, flag
        finally:
            feed.readers.discard(flag)
            if not feed.readers and self._feeds.get(run_id) is feed:
                del self._feeds[run_id]

    def publish(self, run_id: str, events: Sequence[Event]) -> None:
        """Tell of events that have been committed."""
        feed = self._feeds.get(run_id)
        if feed is not None:
            feed.add(events)

    def wake(self, run_id: str) -> None:
        """Another process has written to this run."""
        feed = self._feeds.get(run_id)
        if feed is not None:
            feed.forget()
            feed.wake()

    def wake_all(self) -> None:
        """Another process may have written: everybody looks into the books."""
        for feed in self._feeds.values():
            feed.forget()
            feed.wake()
