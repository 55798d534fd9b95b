"""Texts that PostgreSQL can't keep, told in others: the character U+0000, and halves of a pair.

A caller may put them into an id, a provider into a name. SQLite keeps the first, and nobody's row
may stay open, and no outage be told, because of one. So what the database refuses for its values is
tried once more with a replacement character in their place; all else is as it was, and costs
nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gateway.store.postgres.driver import Connection, Row


class Telling:
    """A connection as the books' statements use it, on which all values can be told."""

    def __init__(self, conn: Connection) -> None:
        self._conn = conn

    async def fetch(self, statement: str, *values: Any) -> list[Row]:
        """See :class:`gateway.store.postgres.driver.Connection`."""
        return await self._conn.fetch(statement, *told(values))

    async def execute(self, statement: str, *values: Any) -> str:
        """See :class:`gateway.store.postgres.driver.Connection`."""
        return await self._conn.execute(statement, *told(values))

    async def executemany(self, statement: str, values: Sequence[Sequence[Any]]) -> None:
        """See :class:`gateway.store.postgres.driver.Connection`."""
        await self._conn.executemany(statement, told(values))


def told(value: Any) -> Any:
    """``value``, or what stands for it."""
    if isinstance(value, str):
        return value.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [told(one) for one in value]
    return value
