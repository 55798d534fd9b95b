"""The keys. Always written in full: a revoked key stays revoked after a power cut."""

from __future__ import annotations

from gateway.store import keyrows, statements
from gateway.store.base import KeyRow
from gateway.store.books import Apply, Database

VERSION = "keys_version"
"""The counter that grows with every change."""


class KeysBook:
    """See :class:`gateway.store.base.Store`."""

    _db: Database

    write_key: Apply
    """Takes a ``KeyRow``, answers whether its name was free."""
    write_revocation: Apply
    """Takes ``(key id, time)``, answers whether the key was there and not yet revoked."""

    async def add_key(self, row: KeyRow) -> bool:
        added: bool = await self._db.write(self.write_key, row, "full")
        return added

    async def keys(self) -> list[KeyRow]:
        return [keyrows.key_row(row) for row in await self._db.read(statements.KEYS)]

    async def revoke_key(self, key_id: str, at: float) -> bool:
        revoked: bool = await self._db.write(self.write_revocation, (key_id, at), "full")
        return revoked

    async def keys_version(self) -> int:
        (row,) = await self._db.read(statements.COUNTER, (VERSION,))
        return int(row["value"])
