"""What the ``gateway runs`` commands share: a run in the books, and how to name it."""

from __future__ import annotations

import argparse
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

from gateway.cli.books import add_store, with_store
from gateway.cli.exits import CommandError

if TYPE_CHECKING:
    from gateway.runs.ledger import Ledger
    from gateway.settings.snapshot import Snapshot
    from gateway.store.base import Store

T = TypeVar("T")


def add_run(parser: argparse.ArgumentParser) -> None:
    """``RUN``, and whose books it is in."""
    parser.add_argument("run_id", metavar="RUN", help="the run's id")
    add_store(parser)


def with_ledger(args: argparse.Namespace, work: Callable[[Ledger], Awaitable[T]]) -> T:
    """What ``work`` makes of the runs in the store that ``args`` names, beside a gateway that may
    be running: it hears of what is written within a second.

    :raises CommandError: for what a run does not allow, in its own words.
    """

    async def worked(snapshot: Snapshot, store: Store) -> T:
        from adapters.canonical.clock import SystemClock
        from adapters.canonical.faults import Fault
        from gateway.runs.hub import Hub
        from gateway.runs.ledger import Ledger, Lost

        ttl = snapshot.extra["runs"]["run_ttl"]
        try:
            return await work(Ledger(store, SystemClock(), Hub(), lambda: ttl))
        except Lost as lost:
            raise CommandError(f"There is no run {lost} in these books.") from None
        except Fault as fault:
            if fault.kind == "store_unavailable":
                raise
            raise CommandError(fault.message) from None

    return with_store(args, worked)
