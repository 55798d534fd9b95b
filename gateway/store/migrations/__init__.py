"""Numbered, forward-only changes of the schema: ``sqlite/0001_name.sql`` and its PostgreSQL twin.

A released file never changes again: its checksum is in every database that it was applied to.
To change the schema, add the next number to both folders, a dump of the schema before it to
the tests, and the new columns to ``docs/ledger.md``. Knows no driver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Literal

from adapters.canonical.record import record
from gateway.store.base import StoreError


@record(frozen=True, slots=True)
class Migration:
    """One step, with the SHA-256 of its text."""

    number: int
    name: str
    sql: str
    checksum: str


@lru_cache(maxsize=2)
def migrations(database: Literal["sqlite", "postgres"]) -> tuple[Migration, ...]:
    """All steps for ``database``, in order from 1 without a gap."""
    folder = resources.files(__name__) / database
    found = []
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql"):
            continue
        number, _, name = file.name.removesuffix(".sql").partition("_")
        sql = file.read_text("utf-8")
        checksum = hashlib.sha256(sql.encode()).hexdigest()
        found.append(Migration(int(number), name, sql, checksum))
    if [step.number for step in found] != list(range(1, len(found) + 1)):
        raise StoreError(f"The numbers of the {database} migrations have a gap or a double.")
    return tuple(found)


def pending(
    known: tuple[Migration, ...], applied: Mapping[int, str], where: str
) -> tuple[Migration, ...]:
    """The steps still to take in a database where ``applied`` (number to checksum) are taken.

    :param where: the database, for the message.
    :raises StoreError: the database is newer than the program, or a released step was edited.
    """
    newest = max(applied, default=0)
    if newest > len(known):
        raise StoreError(
            f"{where} has schema {newest}; this version of the gateway knows up to "
            f"{len(known)}. Start the newer version again, or restore the backup made before it."
        )
    for step in known[:newest]:
        if applied.get(step.number) != step.checksum:
            raise StoreError(
                f"{where} was made with another text of migration {step.number} "
                f"({step.name}). Use the release that made it: released migrations never change."
            )
    return known[newest:]
