"""An SQLite file as the books use it: one writer, a few readers, opened and closed as one.

Knows files, locks and migrations; no book's tables.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import aiosqlite

from gateway.store.base import StoreError
from gateway.store.failures import unavailable
from gateway.store.jobs import Committed
from gateway.store.migrations import Migration, migrations, pending
from gateway.store.sqlite.lock import FileLock
from gateway.store.sqlite.writer import Writer, connection

READERS = 2
"""Connections for reading, each with its own thread."""


class Database:
    """One file. ``serving`` takes the lock that only one process can have; ``undone`` is called
    in the writer's thread when a group was rolled back."""

    def __init__(
        self, path: Path, *, serving: bool, committed: Committed, undone: Callable[[], None]
    ) -> None:
        self.path = path
        self._serving = serving
        self._lock = FileLock(path)
        self._writer = Writer(committed, undone)
        self.write = self._writer.submit
        self._readers: list[aiosqlite.Connection] = []
        self._free: asyncio.Queue[aiosqlite.Connection] = asyncio.Queue()

    async def open(self) -> None:
        """Lock, migrate, connect.

        :raises StoreError: with what to change.
        """
        try:
            if self._serving:
                self._lock.acquire()
            conn = await asyncio.to_thread(self._prepare)
        except (OSError, sqlite3.Error) as error:
            self._lock.release()
            raise StoreError(
                f"The database {self.path.name} can't be opened ({error}). The gateway needs an "
                f"SQLite file that it may write, in a folder that it may write: see [store] url."
            ) from error
        except StoreError:
            self._lock.release()
            raise
        self._writer.start(conn)
        try:
            await self._connect_readers()
        except BaseException:
            await self.close()
            raise

    async def _connect_readers(self) -> None:
        uri = f"{self.path.absolute().as_uri()}?mode=ro"
        for _ in range(READERS):
            reader = await aiosqlite.connect(uri, uri=True, isolation_level=None)
            reader.row_factory = sqlite3.Row
            self._readers.append(reader)
            self._free.put_nowait(reader)

    async def close(self) -> None:
        """Write what is queued; then close the connections and free the lock.

        The writer's connection goes last: only it can fold the write-ahead log into the file.
        """
        while self._readers:
            await self._readers.pop().close()
        await self._writer.close()
        self._lock.release()

    def depth(self) -> int:
        """Entries that wait for the writer."""
        return self._writer.depth()

    async def read(self, statement: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """See :class:`gateway.store.books.Database`."""
        if not self._readers:
            raise unavailable(None, "read")
        reader = await self._free.get()
        try:
            return [dict(row) for row in await reader.execute_fetchall(statement, values)]
        except (sqlite3.Error, ValueError) as error:
            raise unavailable(error, "read") from error
        finally:
            self._free.put_nowait(reader)

    async def backup(self, target: Path) -> None:
        """Copy what is committed while others go on writing; the copy appears whole or not."""
        await asyncio.to_thread(self._backup, target)

    # in a thread

    def _prepare(self) -> sqlite3.Connection:
        """A connection to the migrated file, made readable by its owner only."""
        if not self.path.exists():
            self.path.touch(mode=0o600)
        conn = connection(self.path)
        try:
            steps = pending(migrations("sqlite"), _applied(conn), self.path.name)
            if steps:
                self._migrate(conn, steps)
        except BaseException:
            conn.close()
            raise
        return conn

    def _migrate(self, conn: sqlite3.Connection, steps: Sequence[Migration]) -> None:
        """A schema may not change under a running gateway: only the lock's holder migrates."""
        lock = FileLock(self.path)
        if not self._serving:
            try:
                lock.acquire()
            except StoreError as error:
                raise StoreError(
                    f"{self.path.name} was made by an older version, and a gateway of that version "
                    "is serving it. Restart that gateway with this version, which brings the file "
                    "up to date; then try again."
                ) from error
        try:
            conn.execute("PRAGMA synchronous = FULL")
            conn.execute("BEGIN IMMEDIATE")
            done = _applied(conn)
            for step in steps:
                if step.number not in done:
                    _apply(conn, step)
            conn.execute("COMMIT")
            conn.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            if conn.in_transaction:
                conn.execute("ROLLBACK")
            raise
        finally:
            lock.release()

    def _backup(self, target: Path) -> None:
        if target.exists():
            raise StoreError(
                f"{target} exists already; a backup never overwrites. Name a new file."
            )
        if not target.parent.is_dir():
            raise StoreError(f"There is no folder {target.parent} to copy to.")
        partial = target.with_name(target.name + ".partial")
        source = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
        try:
            partial.unlink(missing_ok=True)
            partial.touch(mode=0o600)
            copy = sqlite3.connect(partial)
            try:
                source.backup(copy)
                copy.execute("PRAGMA journal_mode = DELETE")
            finally:
                copy.close()
            partial.rename(target)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The backup to {target} failed: {error}.") from error
        finally:
            source.close()
            partial.unlink(missing_ok=True)


def _applied(conn: sqlite3.Connection) -> dict[int, str]:
    """Which migrations a file has: number to checksum."""
    conn.execute(
        "CREATE TABLE IF NOT EXISTS migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL,"
        " checksum TEXT NOT NULL)"
    )
    return dict(tuple(row) for row in conn.execute("SELECT number, checksum FROM migrations"))


def _apply(conn: sqlite3.Connection, step: Migration) -> None:
    """Run one step's statements inside the open transaction (``executescript`` would commit)."""
    statement = ""
    for line in step.sql.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            conn.execute(statement)
            statement = ""
    conn.execute(
        "INSERT INTO migrations (number, name, checksum) VALUES (?, ?, ?)",
        (step.number, step.name, step.checksum),
    )
