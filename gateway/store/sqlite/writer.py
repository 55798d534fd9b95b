"""The one writer of an SQLite file: a thread that commits whatever is queued as one group.

A job is ``(apply, entry)``: the entries of a group that share an ``apply`` are handed to it
together, inside the transaction. Rules for an ``apply``:

* it answers every entry in its place; a refusal (a :class:`Fault`) is an answer, and then
  nothing was written for that entry;
* if it raises, the group is rolled back and every job is tried alone, so that one bad job
  spoils no other.

Answers are delivered after the commit. A job that ``must`` be written (a settlement) stays
queued through a full disk or a locked file until it is; its caller is told after ``PATIENCE``
seconds. Knows SQLite, not the ledger.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Literal

from adapters.canonical.faults import Fault
from gateway.store.failures import unavailable

log = logging.getLogger("gateway.store")

Durability = Literal["normal", "full"]
Apply = Callable[[sqlite3.Connection, Sequence[Any]], Sequence[Any]]

GROUP = 256
"""Jobs in one transaction at most."""
QUEUE = 20_000
"""Jobs that may wait; beyond it, what need not be written is refused."""
BUSY = 5.0
"""Seconds that a group waits for another process's write lock (the command line's)."""
PATIENCE = 5.0
"""Seconds after which the caller of a ``must`` job hears that the store is unavailable."""
PAUSE = 0.25
"""Seconds between two tries of what could not be written."""


@dataclass(slots=True, eq=False)
class Job:
    """One entry on its way to the file."""

    apply: Apply
    entry: Any
    durability: Durability
    must: bool
    future: asyncio.Future[Any]
    since: float


Outcome = tuple[Job, Any]
"""A job with its answer; an exception is raised to the caller."""


def connection(path: Path) -> sqlite3.Connection:
    """A read-write connection as the writer uses it: transactions are begun by hand."""
    conn = sqlite3.connect(
        path, timeout=BUSY, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    conn.row_factory = sqlite3.Row
    conn.execute("PRAGMA journal_mode = WAL")
    conn.execute("PRAGMA foreign_keys = ON")
    conn.execute("PRAGMA synchronous = NORMAL")
    conn.execute("PRAGMA cache_size = -8000")
    return conn


class Writer:
    """Owns the writing connection and its thread, from :meth:`start` to :meth:`close`."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._queue: SimpleQueue[Job | None] = SimpleQueue()
        self._owed: list[Job] = []
        self._synchronous: Durability = "normal"
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)

    def start(self) -> None:
        """Begin to write; answers go to the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def close(self) -> None:
        """Write what is queued, then end the thread and the connection."""
        if not self._closing:
            self._closing = True
            self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def submit(
        self, apply: Apply, entry: Any, durability: Durability, *, must: bool = False
    ) -> asyncio.Future[Any]:
        """Queue a job; the future has its answer after the commit.

        Cancelling the future does not take the job back.

        :raises Fault: ``store_unavailable`` where the writer is closed or too far behind.
        """
        if self._closing or self._loop is None:
            raise unavailable(None, "write")
        if not must and self._queue.qsize() >= QUEUE:
            raise unavailable(None, "queue")
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put(Job(apply, entry, durability, must, future, time.monotonic()))
        return future

    # in the thread

    def _run(self) -> None:
        open_ = True
        while open_:
            open_, group = self._gather()
            if group:
                self._deliver(self._write(group))
        if self._owed:
            self._deliver(self._write(self._owed))
        if self._owed:
            log.error("store: closed with %d entries unwritten", len(self._owed))
        self._conn.close()

    def _gather(self) -> tuple[bool, list[Job]]:
        """Wait for work; take all there is. What is owed comes first, in its old order."""
        group, self._owed = self._owed, []
        try:
            job = self._queue.get(timeout=PAUSE if group else None)
            while job is not None:
                group.append(job)
                if len(group) >= GROUP:
                    break
                job = self._queue.get_nowait()
            else:
                return False, group
        except Empty:
            pass
        return True, group

    def _write(self, group: list[Job]) -> list[Outcome]:
        try:
            return self._commit(group)
        except (sqlite3.Error, OverflowError, TypeError, Fault) as error:
            if len(group) == 1 or _passing(error):
                return self._failed(group, error)
        outcomes: list[Outcome] = []
        for job in group:
            outcomes += self._write([job])
        return outcomes

    def _commit(self, group: list[Job]) -> list[Outcome]:
        conn = self._conn
        need: Durability = "full" if any(job.durability == "full" for job in group) else "normal"
        if need != self._synchronous:
            conn.execute(f"PRAGMA synchronous = {need}")
            self._synchronous = need
        parts: dict[Apply, list[Job]] = {}
        for job in group:
            parts.setdefault(job.apply, []).append(job)
        outcomes: list[Outcome] = []
        conn.execute("BEGIN IMMEDIATE")
        try:
            for apply, jobs in parts.items():
                answers = apply(conn, [job.entry for job in jobs])
                outcomes += zip(jobs, answers, strict=True)
            conn.execute("COMMIT")
        except BaseException:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            raise
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

    def _deliver(self, outcomes: list[Outcome]) -> None:
        if self._loop is not None and outcomes:
            try:
                self._loop.call_soon_threadsafe(_resolve, outcomes)
            except RuntimeError:
                log.warning("store: %d answers came after the event loop had ended", len(outcomes))


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


def _resolve(outcomes: list[Outcome]) -> None:
    for job, answer in outcomes:
        if job.future.done():
            continue  # its caller has gone, or was told before that it would take longer
        if isinstance(answer, Exception):
            job.future.set_exception(answer)
        else:
            job.future.set_result(answer)
