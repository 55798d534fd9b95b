"""What is used of asyncpg, with types, and which of its errors pass by themselves.

The only module that imports it (it has no types of its own).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import asyncpg  # type: ignore[import-untyped]

CONNECT = 5.0
"""Seconds to connect."""
COMMAND = 15.0
"""Seconds for one statement, as seen from here; the server gives up a little earlier."""
SERVER = {
    "application_name": "llm-gateway",
    "statement_timeout": "12000",
    "lock_timeout": "5000",
    "idle_in_transaction_session_timeout": "30000",
    "jit": "off",
}

LOST: tuple[type[Exception], ...] = (
    OSError,
    TimeoutError,
    # asyncpg can raise it after the server was killed, in the middle of its own bookkeeping.
    asyncpg.InternalClientError,
    asyncpg.PostgresConnectionError,
    asyncpg.OperatorInterventionError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)
"""After these the connection is not used again; a commit that was under way may have happened."""

BROKEN: tuple[type[Exception], ...] = (*LOST, asyncpg.InterfaceError)
"""The same and, besides, what asyncpg says of a closed connection as of a wrong call."""

TAKEN_BACK: tuple[type[Exception], ...] = (asyncpg.TransactionRollbackError,)
"""The server has taken a transaction back for another's sake (a deadlock): nothing was written, and
the same may be written again at once."""

UNTOLD: tuple[type[Exception], ...] = (asyncpg.DataError,)
"""A value is none that the database can keep."""

PASSING: tuple[type[Exception], ...] = (
    *LOST,
    *TAKEN_BACK,
    asyncpg.InsufficientResourcesError,
    asyncpg.LockNotAvailableError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.PostgresSystemError,
)
"""The same entry may pass later."""

ERRORS: tuple[type[Exception], ...] = (*PASSING, asyncpg.InterfaceError, asyncpg.PostgresError)
"""All that the server or the way to it can raise."""


Heard = Callable[[object, int, str, str], None]
"""Told of a notice: the connection, who sent it, the channel, the text."""


class Row(Protocol):
    """A row: its values in order, and by name."""

    def __getitem__(self, name: str) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def items(self) -> Iterator[tuple[str, Any]]: ...


class Transaction(Protocol):
    """A transaction that is begun and ended by hand."""

    async def start(self) -> None: ...
    async def commit(self) -> None: ...
    async def rollback(self) -> None: ...
    async def __aenter__(self) -> None: ...
    async def __aexit__(self, *error: object) -> None: ...


class Connection(Protocol):
    """One connection."""

    async def fetch(self, statement: str, *values: Any) -> list[Row]: ...
    async def execute(self, statement: str, *values: Any) -> str: ...
    async def executemany(self, statement: str, values: Sequence[Sequence[Any]]) -> None: ...
    def transaction(self) -> Transaction: ...
    async def add_listener(self, channel: str, heard: Heard) -> None: ...
    def add_termination_listener(self, ended: Callable[[object], None]) -> None: ...
    def is_closed(self) -> bool: ...
    def terminate(self) -> None: ...


class Pool(Protocol):
    """Connections for reading."""

    async def fetch(self, statement: str, *values: Any) -> list[Row]: ...
    async def close(self) -> None: ...
    def terminate(self) -> None: ...


async def connect(url: str) -> Connection:
    """A connection to the database that ``url`` names."""
    conn: Connection = await asyncpg.connect(
        url, timeout=CONNECT, command_timeout=COMMAND, server_settings=SERVER
    )
    return conn


async def connect_pool(url: str, most: int) -> Pool:
    """A pool of at most ``most`` connections, made when they are needed."""
    pool: Pool = await asyncpg.create_pool(
        url,
        min_size=0,
        max_size=most,
        timeout=CONNECT,
        command_timeout=COMMAND,
        server_settings=SERVER,
    )
    return pool
