"""Housekeeping: readiness, retention, deletion on request. All in small transactions, so that
no call waits long behind them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import isinf
from typing import Any, NamedTuple

from gateway.store import statements as s
from gateway.store.books import Apply, Database, runs, seals
from gateway.store.books import idempotency as answers
from gateway.store.books import responses as kept
from gateway.store.failures import unavailable
from gateway.store.jobs import Durability
from gateway.store.periods import day_of
from gateway.store.retention import CHUNK, cutoffs

READY = 0.8
"""Seconds in which a row has to be written: an orchestrator's probe waits one second where nobody
says otherwise, and an answer says more than none."""


class Clearing(NamedTuple):
    """Rows to delete: the query that finds the keys of at most ``CHUNK`` of them, its values,
    and the statements that are run with each key, in order."""

    find: str
    values: Sequence[Any]
    deletes: Sequence[str]


SWEEPS: Mapping[str, Callable[[float], Clearing]] = {
    "rollups": lambda before: Clearing(s.OLD_DAYS, (day_of(before), CHUNK), (s.DELETE_DAY,)),
    "responses": lambda before: Clearing(kept.OLD_THREADS, (before, CHUNK), kept.DELETE_THREAD),
    "runs": lambda before: Clearing(runs.OLD_RUNS, (before, CHUNK), runs.EMPTY_RUN),
    "run_stubs": lambda before: Clearing(runs.OLD_STUBS, (before, CHUNK), runs.DELETE_RUN),
    "conversations": lambda before: Clearing(
        kept.OLD_CONVERSATIONS, (before, CHUNK), kept.DELETE_CONVERSATION
    ),
    "idempotency": lambda before: Clearing(
        answers.OLD_ANSWERS, (before, before, CHUNK), answers.DELETE_ANSWER
    ),
    "seals": lambda before: Clearing(seals.OLD_SEALS, (before, CHUNK), seals.DELETE_SEAL),
}
"""By table of ``retention.DAYS``: what is older than a time. Calls are missing: each database
deletes them in its own way."""


class UpkeepBook:
    """See :class:`gateway.store.base.Store`."""

    _db: Database

    probe: Apply
    """Writes something that nobody reads."""
    clear: Apply
    """Takes a :class:`Clearing`, answers the number of keys found."""
    delete_call: Sequence[str]
    """Statements that delete a call by its ``seq``, with its attempts."""
    delete_sums: Apply
    """Takes a project; deletes its roll-ups, answers a number."""

    _proof: asyncio.Future[None] | None = None

    async def ready(self) -> None:
        if self._proof is None or self._proof.done():
            self._proof = self._db.write(self.probe, None, "normal")
            self._proof.add_done_callback(_heard)
        proof = self._proof
        try:
            async with asyncio.timeout(READY):
                await asyncio.shield(proof)
        except TimeoutError as error:
            raise unavailable(error, "proof of readiness") from error

    async def sweep(self, now: float, retention: Mapping[str, float]) -> Mapping[str, int]:
        sweeps = {**SWEEPS, "requests": self._old_calls}
        return {
            table: await self._all(sweeps[table](before), "normal")
            for table, before in cutoffs(now, retention).items()
            if not isinf(before)
        }

    def _old_calls(self, before: float) -> Clearing:
        return Clearing(s.OLD_REQUESTS, (before, before, CHUNK), self.delete_call)

    async def forget(self, *, project: str | None = None, end_user: str | None = None) -> int:
        given = {"project": project, "end_user": end_user}
        where = {name: value for name, value in given.items() if value is not None}
        if not where:
            return 0
        deleted = 0
        for find, conditions, deletes in (
            answers.FORGETTING,
            (s.CLOSED, _WHOSE, self.delete_call),
            *kept.FORGETTING,
            runs.FORGETTING,
        ):
            held = [find, *(conditions[name] for name in where)]
            # A condition may ask for its value more than once.
            marks = {name: conditions[name].count("?") for name in where}
            values = [value for name, value in where.items() for _ in range(marks[name])]
            clearing = Clearing(f"{' AND '.join(held)} LIMIT {CHUNK}", values, deletes)
            deleted += await self._all(clearing, "full")
        if end_user is None:
            await self._db.write(self.delete_sums, project, "full")
        return deleted

    async def _all(self, clearing: Clearing, durability: Durability) -> int:
        """Repeat until a chunk is not full."""
        total = 0
        while True:
            deleted: int = await self._db.write(self.clear, clearing, durability)
            total += deleted
            if deleted < CHUNK:
                return total


def _heard(proof: asyncio.Future[None]) -> None:
    """Whoever asked may have gone before the answer came."""
    if not proof.cancelled():
        proof.exception()


_WHOSE = {"project": "project = ?", "end_user": "end_user = ?"}
