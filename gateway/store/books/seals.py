"""The makers of seals; every write is a script of :mod:`gateway.store.books.responses`."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.store import seals as kept
from gateway.store.books import Apply, Database
from gateway.store.books.responses import Script
from gateway.store.seals import Seal
from gateway.store.sql import columns, insert, replaced

_KEEP = f"""{insert("seals", kept.SEAL)}
    ON CONFLICT (digest) DO UPDATE SET {replaced(kept.SEAL[1:])}"""
_READ = "SELECT digest, provider, family FROM seals WHERE digest IN ({marks})"

OLD_SEALS = "SELECT digest FROM seals WHERE at < ? LIMIT ?"
DELETE_SEAL = ("DELETE FROM seals WHERE digest = ?",)
"""Run with what :data:`OLD_SEALS` found."""


class SealsBook:
    """See :class:`gateway.store.seals.SealBook`."""

    _db: Database

    run_script: Apply
    """Takes a :data:`Script`."""

    async def keep_seals(self, seals: Sequence[Seal], at: float) -> None:
        first, *others = [(*seal, at) for seal in seals]
        script: Script = ((_KEEP, [first]), (_KEEP, others))
        await self._db.write(self.run_script, script, "normal")

    async def seals(self, digests: Sequence[bytes]) -> Sequence[Seal]:
        if not digests:
            return []
        found = await self._db.read(_READ.format(marks=columns("?" * len(digests))), digests)
        return [Seal(bytes(row["digest"]), row["provider"], row["family"]) for row in found]
