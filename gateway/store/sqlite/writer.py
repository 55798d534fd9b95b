"""The one writer of an SQLite file: a thread that commits whatever is queued as one group.

Answers are delivered to the event loop after the commit. A job that ``must`` be written (a
settlement) stays queued through a full disk or a locked file until it is. Knows SQLite, not
the ledger.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from itertools import repeat
from operator import attrgetter
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from adapters.canonical.faults import Fault
from gateway.store.books import Apply
from gateway.store.failures import unavailable
from gateway.store.jobs import (
    GROUP,
    PATIENCE,
    PAUSE,
    QUEUE,
    Committed,
    Durability,
    Job,
    Lasting,
    Outcome,
    answer,
    parts,
    strictest,
)

log = logging.getLogger("gateway.store")

BUSY = 5.0
"""Seconds that a group waits for another process's write lock (the command line's)."""

ENOUGH = 16
"""Jobs that are reason to wake the thread although the event loop still brings more."""

# A flag is a number in SQLite and None is NULL. Python's driver knows that, but of each it first
# asks whether anybody would have it otherwise, in three places unless the first has an answer. A
# call's rows hold twenty: that was a seventh of the time that its statements took. (A dictionary
# tells NULL for None without a step of Python.)
NULL: Mapping[None, None] = {None: None}
sqlite3.register_adapter(bool, int)
sqlite3.register_adapter(type(None), NULL.get)


def connection(path: Path) -> sqlite3.Connection:
    """A read-write connection as the writer uses it: transactions are begun by hand.

    :raises sqlite3.Error: for a file that can't be opened, or is no database.
    """
    conn = sqlite3.connect(
        path, timeout=BUSY, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("PRAGMA foreign_keys = ON")
        conn.execute("PRAGMA synchronous = NORMAL")
        conn.execute("PRAGMA cache_size = -8000")
    except sqlite3.Error:
        conn.close()
        raise
    return conn


class Writer:
    """Owns the writing connection and its thread, from :meth:`start` to :meth:`close`.

    :param undone: called in the thread when a group was rolled back.
    """

    _conn: sqlite3.Connection

    def __init__(self, committed: Committed, undone: Callable[[], None]) -> None:
        self._committed = committed
        self._undone = undone
        self._queue: deque[Job] = deque()
        self._wakes: SimpleQueue[bool] = SimpleQueue()
        """True where there is work, false where it is the last."""
        self._at_work = False
        """From the first job until the thread has told of its group; then the next one begins."""
        self._counted = 0
        """How many jobs waited a turn of the event loop ago."""
        self._owed: list[Job] = []
        self._commits: list[tuple[int, float]] = []
        self._synchronous: Durability = "normal"
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self, conn: sqlite3.Connection) -> None:
        """Begin to write on ``conn``; answers go to the running event loop."""
        self._conn = conn
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def close(self) -> None:
        """Write what is queued, then end the thread and the connection."""
        if not self._closing:
            self._closing = True
            self._wakes.put(False)
        if self._loop is not None:
            await asyncio.to_thread(self._thread.join)

    def depth(self) -> int:
        """Jobs that wait, those that could not be written yet included."""
        return len(self._queue) + len(self._owed)

    def submit(
        self,
        apply: Apply,
        entry: Any,
        durability: Durability,
        *,
        must: bool = False,
        undo: Callable[[Any], Any] | None = None,
    ) -> asyncio.Future[Any]:
        """Queue a job; see :meth:`gateway.store.books.Database.write`. A commit in SQLite has
        happened or has not: there is never anything to ``undo``.

        :raises Fault: ``store_unavailable`` where the writer is closed or too far behind.
        """
        loop = self._loop
        if self._closing or loop is None:
            raise unavailable(None, "write")
        if not must and len(self._queue) >= QUEUE:
            raise unavailable(None, "queue")
        future = Lasting(loop=loop) if must else loop.create_future()
        self._queue.append(Job(apply, entry, durability, must, undo, future, time.monotonic()))
        if not self._at_work:
            self._at_work = True
            loop.call_soon(self._wake, loop)
        return future

    def _wake(self, loop: asyncio.AbstractEventLoop) -> None:
        """Wake the thread once a turn of the event loop has brought no further job, or there are
        :data:`ENOUGH`. What comes together is committed together, and the two threads stay out of
        each other's way: while both have work, they wait for one another at every row."""
        jobs = len(self._queue)
        if self._counted < jobs < ENOUGH:
            self._counted = jobs
            loop.call_soon(self._wake, loop)
        else:
            self._counted = 0
            self._wakes.put(True)

    # in the thread

    def _run(self) -> None:
        open_ = True
        while open_:
            open_, group = self._gather()
            self._tell(self._write(group) if group else [])
        owed, self._owed = self._owed, []
        if owed:
            self._tell(self._write(owed))
        if self._owed:
            log.error("store: closed with %d entries unwritten", len(self._owed))
        self._conn.close()

    def _gather(self) -> tuple[bool, list[Job]]:
        """Wait for work; take all there is. What is owed comes first, in its old order."""
        group, self._owed = self._owed, []
        try:
            open_ = self._wakes.get(timeout=PAUSE if group else None)
        except Empty:
            open_ = True
        room = min(len(self._queue), GROUP - len(group))
        group += map(deque.popleft, repeat(self._queue, room))
        if self._queue:
            self._wakes.put(open_)
        return open_ or bool(self._queue), group

    def _write(self, group: list[Job]) -> list[Outcome]:
        try:
            return self._commit(group)
        except Exception as error:  # noqa: BLE001  a defect in one book must not stop the others
            if len(group) == 1 or _passing(error):
                return self._failed(group, error)
        outcomes: list[Outcome] = []
        for job in group:
            outcomes += self._write([job])
        return outcomes

    def _commit(self, group: list[Job]) -> list[Outcome]:
        conn = self._conn
        began = time.perf_counter()
        need = strictest(group)
        if need != self._synchronous:
            conn.execute(f"PRAGMA synchronous = {need}")
            self._synchronous = need
        outcomes: list[Outcome] = []
        conn.execute("BEGIN IMMEDIATE")
        try:
            for apply, jobs in parts(group).items():
                outcomes += zip(jobs, apply(conn, [*map(_entry, jobs)]), strict=True)
            conn.execute("COMMIT")
        except BaseException:
            self._undone()
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            raise
        self._commits.append((len(group), time.perf_counter() - began))
        return outcomes

    def _failed(self, group: list[Job], error: Exception) -> list[Outcome]:
        """Answer a failure; keep what must be written, where trying again makes sense."""
        fault = error if isinstance(error, Fault) else unavailable(error, "write")
        outcomes: list[Outcome] = []
        for job in group:
            owed = job.must and _passing(error)
            if owed:
                self._owed.append(job)
            if not owed or self._closing or time.monotonic() - job.since > PATIENCE:
                outcomes.append((job, fault))
        return outcomes

    def _tell(self, outcomes: list[Outcome]) -> None:
        """Wake the event loop once for a group: each time costs more than a row."""
        commits, self._commits = self._commits, []
        if self._loop is not None:
            try:
                self._loop.call_soon_threadsafe(self._hear, self._loop, outcomes, commits)
            except RuntimeError:
                log.warning("store: a group was written after the event loop had ended")

    def _hear(
        self,
        loop: asyncio.AbstractEventLoop,
        outcomes: list[Outcome],
        commits: list[tuple[int, float]],
    ) -> None:
        """In the event loop. What was queued meanwhile is the next group, with what these answers
        bring about at once."""
        answer(outcomes)
        self._at_work = bool(self._queue)
        if self._at_work:
            loop.call_soon(self._wake, loop)
        for entries, seconds in commits:
            self._committed(entries, seconds)


_entry = attrgetter("entry")
_PASSING = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_LOCKED,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_NOMEM,
        sqlite3.SQLITE_PERM,
        sqlite3.SQLITE_PROTOCOL,
    }
)
"""Primary result codes that blame the file or the disk: the same entry may pass later."""


def _passing(error: Exception) -> bool:
    # The low byte of an extended code is its primary one.
    return getattr(error, "sqlite_errorcode", -1) & 0xFF in _PASSING
