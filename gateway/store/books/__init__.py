"""The books as the house sees them: one class for each, the same over both databases.

A book says *what* is written and read, its twins in ``sqlite`` and ``postgres`` say *how*. To
add a book: its protocol in ``base``, a module here, a module in each of the two packages and a
line in their store classes, a migration for each, and its tables in ``retention`` and
``docs/ledger.md``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from gateway.store.jobs import Durability

Apply = Callable[..., Any]
"""Writes the entries of a group that share it; see :class:`gateway.store.jobs.Job`."""


class Database(Protocol):
    """What a book needs of the database beneath it."""

    def write(
        self,
        apply: Apply,
        entry: Any,
        durability: Durability,
        *,
        must: bool = False,
        undo: Callable[[Any], Any] | None = None,
    ) -> asyncio.Future[Any]:
        """Queue an entry for the next group; the future has its answer after the commit.

        Cancelling the future does not take the entry back.

        :raises Fault: ``store_unavailable``.
        """
        ...

    async def read(self, statement: str, values: Sequence[Any] = ()) -> list[dict[str, Any]]:
        """The rows of a query with ``?`` marks, from what is committed.

        :raises Fault: ``store_unavailable``.
        """
        ...
