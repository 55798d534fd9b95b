"""The store in one SQLite file: for one gateway process, with no server to run."""

from __future__ import annotations

from pathlib import Path

from adapters.canonical.clock import Clock
from gateway.settings.snapshot import StoreSettings
from gateway.store.base import StoreError
from gateway.store.books.idempotency import AnswersBook
from gateway.store.books.prompts import PromptsBook
from gateway.store.books.reports import ReportsBook
from gateway.store.books.seals import SealsBook
from gateway.store.jobs import Committed
from gateway.store.sqlite.clerk import Clerk
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.keys import SqliteKeys
from gateway.store.sqlite.ledger import SqliteLedger
from gateway.store.sqlite.responses import SqliteResponses
from gateway.store.sqlite.runs import SqliteRuns
from gateway.store.sqlite.upkeep import SqliteUpkeep

PREFIX = "sqlite:///"


def database_path(url: str) -> Path:
    """The file that ``sqlite:///relative.db`` or ``sqlite:////absolute.db`` names.

    :raises StoreError: the URL names no file.
    """
    name = url.removeprefix(PREFIX)
    if name == url or name in ("", ":memory:") or name.endswith("/"):
        raise StoreError(
            f"[store] url = {url!r} names no file. Write sqlite:///gateway.db for a file beside "
            "the working directory, or sqlite:////var/lib/gateway/gateway.db."
        )
    return Path(name)


class SqliteStore(
    SqliteLedger,
    SqliteKeys,
    SqliteResponses,
    SqliteRuns,
    AnswersBook,
    PromptsBook,
    ReportsBook,
    SealsBook,
    SqliteUpkeep,
):
    """See :class:`gateway.store.base.Store`."""

    def __init__(
        self, settings: StoreSettings, *, serving: bool, clock: Clock, committed: Committed
    ) -> None:
        clerk = Clerk()
        super().__init__(clerk)
        self._clock = clock
        self._durability = settings.durability
        self._serving = serving
        self._file = Database(
            database_path(settings.url), serving=serving, committed=committed, undone=clerk.forget
        )
        self._db = self._file

    async def open(self) -> None:
        await self._file.open()
        if self._serving:
            try:
                await self.settle_orphans()
                await self.release_keys()
                await self.free_runs()
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        await self._file.close()

    def depth(self) -> int:
        return self._file.depth()

    async def backup(self, path: str) -> None:
        await self._file.backup(Path(path))
