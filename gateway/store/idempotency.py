"""Answers kept under a caller's ``Idempotency-Key``: what the house may ask of the book.

A key belongs to a project. It is claimed before work begins, in one atomic step, so that of two
calls under one key only one works, whichever replica they meet. A claim ends with the answer, with
a release, or with its lease: whoever crashed frees it that way. Must not know what an answer holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from adapters.canonical.record import record
from adapters.wire.json import dumps, loads

CLAIM = ["project", "key", "digest", "request_id", "at", "held_until"]
ANSWER = ["digest", "request_id", "status", "headers", "body"]
"""Columns that a claim writes, and those that a reader gets."""


@record(frozen=True, slots=True)
class Claim:
    """Who claims: the key, what was sent under it, and the call that works.

    ``digest`` is of everything that makes two calls the same. ``at`` and ``held_until`` are Unix
    seconds.
    """

    project: str
    key: str
    digest: bytes
    request_id: str
    at: float
    held_until: float


class Kept(NamedTuple):
    """What stands under a key. ``status`` is ``None`` while the work is under way, ``body`` is
    ``None`` also where the answer was not kept."""

    digest: bytes
    request_id: str
    status: int | None
    headers: Mapping[str, str]
    body: bytes | None


class IdempotencyBook(Protocol):
    """The part of the store that keeps answers under their keys."""

    async def claim_key(self, claim: Claim, since: float) -> Kept | None:
        """Take the key, or tell what stands under it.

        :param since: Unix seconds; an answer from before is forgotten.
        :returns: ``None`` where the key is taken now.
        """
        ...

    async def extend_claim(self, claim: Claim, until: float) -> None:
        """The work goes on: hold the key until ``until``."""
        ...

    async def keep_answer(self, claim: Claim, kept: Kept, at: float) -> None:
        """Put the answer under the key; it counts from ``at``."""
        ...

    async def release_key(self, claim: Claim) -> None:
        """There will be no answer: the key is free again. Nothing if it has one."""
        ...

    async def release_keys(self) -> None:
        """Free every key without an answer: for a process that knows that nobody else works."""
        ...


def claim_values(claim: Claim) -> tuple[Any, ...]:
    """The values of :data:`CLAIM`."""
    return (
        claim.project,
        claim.key,
        claim.digest,
        claim.request_id,
        claim.at,
        claim.held_until,
    )


def headers_text(headers: Mapping[str, str]) -> str:
    """Headers as the book writes them."""
    return dumps(headers).decode()


def kept_row(row: Mapping[str, Any]) -> Kept:
    """From a row of :data:`ANSWER`."""
    headers = {} if row["headers"] is None else loads(row["headers"])
    body = None if row["body"] is None else bytes(row["body"])
    return Kept(bytes(row["digest"]), row["request_id"], row["status"], headers, body)
