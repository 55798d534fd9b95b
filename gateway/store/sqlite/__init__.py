"""The store in one SQLite file: for one gateway process, with no server to run.

To add a book: a module with a class like :class:`LedgerBook`, a base class here, a migration.
"""

from __future__ import annotations

from math import inf
from pathlib import Path

from adapters.canonical.clock import Clock
from gateway.settings.snapshot import StoreSettings
from gateway.store.base import StoreError
from gateway.store.sqlite.database import Database
from gateway.store.sqlite.keys import KeysBook
from gateway.store.sqlite.ledger import LedgerBook
from gateway.store.sqlite.reports import ReportsBook

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


class SqliteStore(LedgerBook, KeysBook, ReportsBook):
    """See :class:`gateway.store.base.Store`."""

    def __init__(self, settings: StoreSettings, *, serving: bool, clock: Clock) -> None:
        self._clock = clock
        self._durability = settings.durability
        self._serving = serving
        self._db = Database(database_path(settings.url), serving=serving)

    async def open(self) -> None:
        await self._db.open()
        if self._serving:
            # The lock proves that whoever opened these rows is dead, whatever their leases say.
            try:
                await self._settle_lapsed(inf, self._clock.wall())
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        await self._db.close()
