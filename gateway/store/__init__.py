"""The books: one interface, SQLite and PostgreSQL behind it.

The only room that knows SQL. Money is integer nano-dollars, times are Unix seconds as floats.
"""

from __future__ import annotations

from adapters.canonical.clock import Clock, SystemClock
from gateway.settings.snapshot import StoreSettings
from gateway.store.base import Store, StoreError
from gateway.store.jobs import Committed
from gateway.store.pepper import pepper
from gateway.store.sqlite import PREFIX, SqliteStore

__all__ = ["Store", "StoreError", "connect", "pepper"]


POSTGRES = ("postgresql://", "postgres://")


def _unheard(entries: int, seconds: float) -> None:
    """For a process that does not count its commits."""


def connect(
    settings: StoreSettings,
    *,
    serving: bool = True,
    clock: Clock | None = None,
    committed: Committed = _unheard,
) -> Store:
    """The store that ``settings.url`` names; call ``open()`` on it before use.

    :param serving: whether this process serves calls. The command line reads and writes beside
        a running gateway with ``serving=False``: it takes no lock and settles nobody's rows.
    :param committed: told of each committed group: its entries, and the seconds it took.
    :raises StoreError: a URL of no known kind.
    """
    clock = clock if clock is not None else SystemClock()
    if settings.url.startswith(PREFIX):
        return SqliteStore(settings, serving=serving, clock=clock, committed=committed)
    if settings.url.startswith(POSTGRES):
        # asyncpg takes 50 ms to import: only those who use it wait for it.
        from gateway.store.postgres import PostgresStore  # noqa: PLC0415

        return PostgresStore(settings, clock=clock, committed=committed)
    raise StoreError(
        f"[store] url begins with {settings.url.partition(':')[0]!r}. "
        "Use sqlite:///FILE or postgresql://USER@HOST/DATABASE."
    )
