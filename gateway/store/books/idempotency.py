"""Answers under their keys; every write is a script of :mod:`gateway.store.books.responses`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from gateway.store import idempotency as idem
from gateway.store.books import Apply, Database
from gateway.store.books.responses import Script
from gateway.store.idempotency import Claim, Kept
from gateway.store.jobs import Durability
from gateway.store.sql import columns, insert, replaced

_CLAIM = f"""{insert("idempotency", idem.CLAIM)}
    ON CONFLICT (project, key) DO UPDATE SET {replaced(idem.CLAIM[2:])},
        status = NULL, headers = NULL, body = NULL
    WHERE (idempotency.status IS NULL AND idempotency.held_until <= ?) OR idempotency.at < ?"""
_READ = f"SELECT {columns(idem.ANSWER)} FROM idempotency WHERE project = ? AND key = ?"  # noqa: S608
_HIS = " WHERE project = ? AND key = ? AND request_id = ?"
_EXTEND = f"UPDATE idempotency SET held_until = ?{_HIS} AND status IS NULL"  # noqa: S608
_KEEP = f"UPDATE idempotency SET status = ?, headers = ?, body = ?, at = ?{_HIS}"  # noqa: S608
_RELEASE = f"DELETE FROM idempotency{_HIS} AND status IS NULL"  # noqa: S608
_RELEASE_ALL = "DELETE FROM idempotency WHERE status IS NULL"

OLD_ANSWERS = """SELECT project, key FROM idempotency
    WHERE at < ? AND (status IS NOT NULL OR held_until < ?) LIMIT ?"""
"""Answers past their days, and the claims of those who died with their call."""
DELETE_ANSWER = ("DELETE FROM idempotency WHERE project = ? AND key = ?",)
"""Run with what :data:`OLD_ANSWERS` found."""

FORGETTING: tuple[str, Mapping[str, str], Sequence[str]] = (
    "SELECT project, key FROM idempotency WHERE status IS NOT NULL",
    {
        "project": "project = ?",
        "end_user": "request_id IN (SELECT id FROM requests WHERE end_user = ?)",
    },
    DELETE_ANSWER,
)
"""As in :mod:`gateway.store.books.responses`; to be run while the calls are still there."""


class AnswersBook:
    """See :class:`gateway.store.idempotency.IdempotencyBook`."""

    _db: Database
    _durability: Durability

    run_script: Apply
    """Takes a :data:`Script`."""

    async def claim_key(self, claim: Claim, since: float) -> Kept | None:
        values = (*idem.claim_values(claim), claim.at, since)
        while not await self._script(((_CLAIM, [values]),)):
            rows = await self._db.read(_READ, (claim.project, claim.key))
            if rows:
                return idem.kept_row(rows[0])
        return None

    async def extend_claim(self, claim: Claim, until: float) -> None:
        await self._script(((_EXTEND, [(until, *_whose(claim))]),))

    async def keep_answer(self, claim: Claim, kept: Kept, at: float) -> None:
        values = (kept.status, idem.headers_text(kept.headers), kept.body, at, *_whose(claim))
        await self._script(((_KEEP, [values]),))

    async def release_key(self, claim: Claim) -> None:
        await self._script(((_RELEASE, [_whose(claim)]),))

    async def release_keys(self) -> None:
        await self._script(((_RELEASE_ALL, [()]),))

    async def _script(self, script: Script) -> bool:
        met: bool = await self._db.write(self.run_script, script, self._durability)
        return met


def _whose(claim: Claim) -> tuple[Any, ...]:
    return claim.project, claim.key, claim.request_id
