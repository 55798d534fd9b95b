"""The one writer of this gateway in PostgreSQL: a task that commits what is queued as one group.

Other replicas have their own; row locks keep them apart. A lost connection is made anew, with
a growing pause; meanwhile what ``must`` be written waits and the rest is refused. If the
connection is lost during a commit, nobody can tell whether it happened: entries that must be
written are written again (each finds for itself that it was there already), the others' callers
hear that the store is unavailable, and their ``undo`` is queued. What the server has taken back so
that another replica could go on is written again at once, entry by entry.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable
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
from gateway.store.postgres.driver import (
    BROKEN,
    ERRORS,
    LOST,
    PASSING,
    TAKEN_BACK,
    UNTOLD,
    Connection,
)
from gateway.store.postgres.telling import Telling

log = logging.getLogger("gateway.store")

Connect = Callable[[], Awaitable[Connection]]

LONGEST_PAUSE = 2.0
"""Seconds between two tries to connect, at most."""
AGAIN = (*TAKEN_BACK, *UNTOLD)
TRIES = 5
"""How often an entry is written again that the server takes back each time, before it counts as one
that can't be written now. All but the first try are with values that the database can keep."""
CLOSING = 10.0
"""Seconds that the last groups may take."""


class _CommitLost(Exception):
    """The connection went while a commit was under way."""


class Writer:
    """Owns the writing connection and its task, from :meth:`start` to :meth:`close`."""

    def __init__(self, connect: Connect, committed: Committed) -> None:
        self._connect = connect
        self._committed = committed
        self._conn: Connection | None = None
        self._queue: deque[Job] = deque()
        self._owed: list[Job] = []
        self._work = asyncio.Event()
        self._closing = False
        self._pause = PAUSE
        self._task: asyncio.Task[None] | None = None
        self.connected_at: float | None = None
        """Monotonic seconds since when the connection stands."""

    def start(self, conn: Connection) -> None:
        """Begin to write on ``conn``."""
        self._adopt(conn)
        self._task = asyncio.create_task(self._run(), name="store-writer")

    async def close(self) -> None:
        """Write what is queued, then end; within ``CLOSING`` seconds."""
        self._closing = True
        self._work.set()
        if self._task is not None:
            await asyncio.wait([self._task], timeout=CLOSING)
            self._task.cancel()
            await asyncio.wait([self._task])
        left = [*self._owed, *self._queue]
        if left:
            log.error("store: closed with %d entries unwritten", len(left))
            answer([(job, unavailable(None, "write")) for job in left])
        self._drop()

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
        """Queue a job; see :meth:`gateway.store.books.Database.write`.

        :raises Fault: ``store_unavailable`` where the writer is closed or too far behind.
        """
        if self._closing:
            raise unavailable(None, "write")
        if not must and len(self._queue) >= QUEUE:
            raise unavailable(None, "queue")
        loop = asyncio.get_running_loop()
        future = Lasting(loop=loop) if must else loop.create_future()
        self._queue.append(Job(apply, entry, durability, must, undo, future, time.monotonic()))
        self._work.set()
        return future

    # the task

    async def _run(self) -> None:
        while self._queue or self._owed or not self._closing:
            group = await self._gather()
            if group:
                answer(await self._write(group))
                if self._owed and self._closing:
                    return

    async def _gather(self) -> list[Job]:
        """Wait for work; take all there is. What is owed comes first, in its old order."""
        if self._owed:
            await asyncio.sleep(self._pause)
        elif not self._queue:
            self._work.clear()
            await self._work.wait()
        group, self._owed = self._owed, []
        while self._queue and len(group) < GROUP:
            group.append(self._queue.popleft())
        return group

    async def _write(self, group: list[Job], tries: int = TRIES) -> list[Outcome]:
        try:
            conn = await self._connection()
            return await self._commit(conn, group, conn if tries == TRIES else Telling(conn))
        except _CommitLost as error:
            self._drop()
            return self._failed(group, error, passing=True)
        except Exception as error:  # noqa: BLE001  a defect in one book must not stop the others
            passing = isinstance(error, PASSING)
            if isinstance(error, LOST) or self._conn is None or self._conn.is_closed():
                self._drop()
                passing = True
            again = isinstance(error, AGAIN) and tries > 1
            if not again and (len(group) == 1 or passing):
                return self._failed(group, error, passing=passing)
        outcomes: list[Outcome] = []
        for job in group:
            outcomes += await self._write([job], tries - 1)
        return outcomes

    async def _commit(
        self, conn: Connection, group: list[Job], books: Connection | Telling
    ) -> list[Outcome]:
        began = time.perf_counter()
        outcomes: list[Outcome] = []
        transaction = conn.transaction()
        await transaction.start()
        try:
            if strictest(group) == "full":
                await conn.execute("SET LOCAL synchronous_commit = on")
            for apply, jobs in parts(group).items():
                answers = await apply(books, [job.entry for job in jobs])
                outcomes += zip(jobs, answers, strict=True)
        except BaseException:
            if not conn.is_closed():
                await transaction.rollback()
            raise
        try:
            await transaction.commit()
        except BROKEN as error:
            raise _CommitLost from error
        self._committed(len(group), time.perf_counter() - began)
        return outcomes

    def _failed(self, group: list[Job], error: Exception, *, passing: bool) -> list[Outcome]:
        """Answer a failure; keep what must be written, where trying again makes sense."""
        cause = error.__cause__ if isinstance(error, _CommitLost) else error
        fault = error if isinstance(error, Fault) else unavailable(cause, "write")
        outcomes: list[Outcome] = []
        for job in group:
            owed = job.must and passing
            if owed:
                self._owed.append(job)
            elif isinstance(error, _CommitLost) and job.undo is not None:
                self._owed.append(_undoing(job))
            if not owed or self._closing or time.monotonic() - job.since > PATIENCE:
                outcomes.append((job, fault))
        return outcomes

    async def _connection(self) -> Connection:
        if self._conn is not None and not self._conn.is_closed():
            return self._conn
        self._drop()
        try:
            self._adopt(await self._connect())
        except ERRORS:
            self._pause = min(self._pause * 2, LONGEST_PAUSE)
            raise
        assert self._conn is not None
        return self._conn

    def _adopt(self, conn: Connection) -> None:
        self._conn, self._pause = conn, PAUSE
        self.connected_at = time.monotonic()

    def _drop(self) -> None:
        if self._conn is not None:
            self._conn.terminate()
        self._conn = self.connected_at = None


def _undoing(job: Job) -> Job:
    """The job that takes back what may have been written."""
    assert job.undo is not None
    future = asyncio.get_running_loop().create_future()
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return Job(job.apply, job.undo(job.entry), job.durability, True, None, future, time.monotonic())
