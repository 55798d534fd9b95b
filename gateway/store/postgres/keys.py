"""The keys in PostgreSQL."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.store import statements as s
from gateway.store.base import KeyRow
from gateway.store.books.keys import VERSION, KeysBook
from gateway.store.keyrows import key_values
from gateway.store.postgres.driver import Connection
from gateway.store.sql import numbered


async def _add(conn: Connection, entries: Sequence[KeyRow]) -> list[bool]:
    # Counted before the names are looked at: the counter's row lets one writer in at a time.
    await conn.execute(numbered(s.COUNT), VERSION)
    answers = []
    for row in entries:
        free = not await conn.fetch(numbered(s.KEY_NAMED), row.name)
        if free:
            await conn.execute(numbered(s.ADD_KEY), *key_values(row))
        answers.append(free)
    return answers


async def _revoke(conn: Connection, entries: Sequence[tuple[str, float]]) -> list[bool]:
    statement = f"{numbered(s.REVOKE_KEY)} RETURNING id"
    answers = [bool(await conn.fetch(statement, at, key_id)) for key_id, at in entries]
    if any(answers):
        await conn.execute(numbered(s.COUNT), VERSION)
    return answers


class PostgresKeys(KeysBook):
    """:class:`KeysBook` in PostgreSQL."""

    write_key = staticmethod(_add)
    write_revocation = staticmethod(_revoke)
