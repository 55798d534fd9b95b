"""A PostgreSQL database as the books use it: one writer, a pool of readers.

Knows connections and migrations; no book's tables.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from gateway.store.base import StoreError
from gateway.store.failures import unavailable
from gateway.store.jobs import Committed
from gateway.store.migrations import migrations, pending
from gateway.store.postgres.driver import (
    BROKEN,
    CONNECT,
    ERRORS,
    UNTOLD,
    Connection,
    Pool,
    connect,
    connect_pool,
)
from gateway.store.postgres.telling import told
from gateway.store.postgres.writer import Writer
from gateway.store.sql import numbered

UNREACHABLE: tuple[type[Exception], ...] = (*ERRORS, ValueError)
"""A URL that makes no sense is a ``ValueError``."""

READERS = 4
"""Connections for reading at most."""
MIGRATING = 0x6C6C6D67
"""The advisory lock under which one process migrates."""

TABLE = """CREATE TABLE IF NOT EXISTS migrations (number BIGINT PRIMARY KEY, name TEXT NOT NULL,
    checksum TEXT NOT NULL)"""


class Database:
    """One database, named by a URL that may hold a password and is never shown."""

    def __init__(self, url: str, *, committed: Committed) -> None:
        self._url = url
        self._writer = Writer(self.connect, committed)
        self.write = self._writer.submit
        self._pool: Pool | None = None

    @property
    def name(self) -> str:
        """The database without user and password, for messages."""
        parts = urlsplit(self._url)
        return f"{parts.hostname or 'localhost'}{parts.path}"

    @property
    def connected_at(self) -> float | None:
        """Monotonic seconds since when the writer's connection stands."""
        return self._writer.connected_at

    async def open(self) -> None:
        """Connect and migrate.

        :raises StoreError: with what to change.
        """
        try:
            conn = await self.connect()
        except UNREACHABLE as error:
            raise StoreError(
                f"PostgreSQL at {self.name} can't be reached ({type(error).__name__}). Check "
                "[store] url, the user's password and right to connect, and that the server runs."
            ) from error
        try:
            await self._migrate(conn)
            self._pool = await connect_pool(self._url, READERS)
        except ERRORS as error:
            conn.terminate()
            raise StoreError(
                f"PostgreSQL at {self.name} can't be prepared ({type(error).__name__}). The "
                "gateway's user must own the database's tables, or be allowed to make them."
            ) from error
        except BaseException:
            conn.terminate()
            raise
        self._writer.start(conn)

    async def close(self) -> None:
        """Write what is queued, then disconnect."""
        await self._writer.close()
        if self._pool is not None:
            pool, self._pool = self._pool, None
            try:
                async with asyncio.timeout(CONNECT):
                    await pool.close()
            except BROKEN:
                pool.terminate()

    def depth(self) -> int:
        """Entries that wait for the writer."""
        return self._writer.depth()

    async def read(self, statement: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """See :class:`gateway.store.books.Database`. A reader whose connection was lost since
        its last use is tried once more, on another; and a value that it can't keep, as what stands
        for it."""
        if self._pool is None:
            raise unavailable(None, "read")
        try:
            try:
                rows = await self._pool.fetch(numbered(statement), *values)
            except (*BROKEN, *UNTOLD):
                rows = await self._pool.fetch(numbered(statement), *told(values))
        except ERRORS as error:
            raise unavailable(error, "read") from error
        return [dict(row.items()) for row in rows]

    async def connect(self) -> Connection:
        """One more connection, which is the caller's to end."""
        return await connect(self._url)

    async def _migrate(self, conn: Connection) -> None:
        """Bring the schema up to date; of several replicas that start, one does it."""
        async with conn.transaction():
            await conn.execute("SELECT pg_advisory_xact_lock($1)", MIGRATING)
            await conn.execute(TABLE)
            rows = await conn.fetch("SELECT number, checksum FROM migrations")
            applied = {row["number"]: row["checksum"] for row in rows}
            for step in pending(migrations("postgres"), applied, self.name):
                await conn.execute(step.sql)
                await conn.execute(
                    "INSERT INTO migrations (number, name, checksum) VALUES ($1, $2, $3)",
                    step.number,
                    step.name,
                    step.checksum,
                )
