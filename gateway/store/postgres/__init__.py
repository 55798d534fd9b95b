"""The store in PostgreSQL: for any number of gateways that share their limits and books.

Who opened a row is told by its lease alone, so nothing is settled at the start: ``expire`` does
it, again and again, on every replica.
"""

from __future__ import annotations

import secrets

from adapters.canonical.clock import Clock
from gateway.settings.snapshot import StoreSettings
from gateway.store.base import StoreError
from gateway.store.books.idempotency import AnswersBook
from gateway.store.books.prompts import PromptsBook
from gateway.store.books.reports import ReportsBook
from gateway.store.books.seals import SealsBook
from gateway.store.jobs import Committed
from gateway.store.postgres.database import Database
from gateway.store.postgres.ear import Ear
from gateway.store.postgres.keys import PostgresKeys
from gateway.store.postgres.ledger import PostgresLedger
from gateway.store.postgres.responses import PostgresResponses
from gateway.store.postgres.runs import CHANNEL, PostgresRuns
from gateway.store.postgres.upkeep import PostgresUpkeep


class PostgresStore(
    PostgresLedger,
    PostgresKeys,
    PostgresResponses,
    PostgresRuns,
    AnswersBook,
    PromptsBook,
    ReportsBook,
    SealsBook,
    PostgresUpkeep,
):
    """See :class:`gateway.store.base.Store`."""

    def __init__(self, settings: StoreSettings, *, clock: Clock, committed: Committed) -> None:
        self._clock = clock
        self._durability = settings.durability
        self._server = Database(settings.url, committed=committed)
        self._db = self._server
        self._ear = Ear(self._server.connect, CHANNEL)
        self._name = secrets.token_hex(6)

    async def open(self) -> None:
        await self._server.open()

    async def close(self) -> None:
        await self._server.close()

    def depth(self) -> int:
        return self._server.depth()

    async def backup(self, path: str) -> None:
        """PostgreSQL has better tools for it.

        :raises StoreError: always, with the command to use.
        """
        raise StoreError(
            f"The store is PostgreSQL ({self._server.name}): make the backup with its own tool, "
            f"which works while the gateway runs: pg_dump --format=custom --file={path} DATABASE."
        )
