"""The store's interface: what the rest of the house may ask of the books.

The rules that every implementation keeps (design promises 6, 8, 9 and section 8):

* ``open_attempt`` is one transaction: take every limit, or none; insert the row. It is
  committed before the request leaves. ``settle_attempt`` is one transaction: settle the row
  exactly once, release what was reserved, add to the roll-ups. It is committed before the
  terminal is sent.
* The store inserts ids and times as given; it makes up neither.
* Whatever fails in the store itself is ``Fault("store_unavailable")``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Literal, NamedTuple, Protocol

from adapters.canonical.record import record
from gateway.settings.snapshot import Limits
from gateway.store.idempotency import IdempotencyBook
from gateway.store.prompts import PromptBook
from gateway.store.responses import ResponseBook
from gateway.store.runs import RunBook
from gateway.store.seals import SealBook

Status = Literal["open", "completed", "failed", "partial", "cancelled", "interrupted"]
UsageSource = Literal["provider", "estimated", "unknown"]


class RequestRow(NamedTuple):
    """One call of a caller, written with its first attempt.

    Rows are tuples in the order of their columns: what waits for the writer goes to the database
    as it is.
    """

    id: str
    at: float
    project: str
    key_id: str
    key_name: str
    alias: str
    origin: str
    stream: bool
    config_hash: str
    end_user: str | None = None
    parent: str | None = None
    prompt: str | None = None
    prompt_hash: str | None = None
    trace_id: str | None = None
    route: str | None = None
    """Why, as JSON: the targets in the order considered, each with what spoke for or against it."""


class AttemptRow(NamedTuple):
    """One try at a provider. ``number`` counts from 1 within the request."""

    id: str
    request_id: str
    number: int
    kind: Literal["first", "retry", "failover", "repair", "more_room", "choice"]
    at: float
    provider: str
    model: str
    dialect: str
    estimated_input: int
    reserved_tokens: int
    reserved_nano: int
    price_table: str


@record(frozen=True, slots=True)
class Opening:
    """An attempt that wants to begin: its rows, and the limits that it has to keep.

    ``request`` is given with a call's first attempt; only that one takes the limits of whole
    calls (``rpm``, ``concurrent``). Tokens and money are taken by each, as its row says. One that
    is not settled by ``lease_until`` (Unix seconds) counts as a crash's.
    """

    request: RequestRow | None
    row: AttemptRow
    key_id: str
    limits: Limits
    lease_until: float


class RateState(NamedTuple):
    """A limit after a reservation, in the order of the ``x-ratelimit-*`` headers; ``reset`` in
    seconds. None of them is negative."""

    limit: int
    remaining: int
    reset: float


Rates = Mapping[str, RateState]
"""The state of ``requests`` and ``tokens``, where they are limited."""


class RequestEnd(NamedTuple):
    """The end of the whole call. ``http_status`` is ``None`` where no answer was sent,
    ``first_cause`` the first attempt's fault, the primary one; ``timings`` is JSON."""

    status: Status
    http_status: int | None = None
    fault: str | None = None
    first_cause: str | None = None
    attempts: int = 1
    timings: str | None = None


class Settlement(NamedTuple):
    """How an attempt ended. Token fields are ``None`` where unknown, never zero.

    ``input_tokens`` are all of the input: what was read from or written to a cache is a part of
    them, as ``reasoning_tokens`` are of the output. ``cost_nano = None`` charges what was
    reserved; a provider that did no work costs ``0``, and then unknown tokens are given back
    too. Negative numbers count as unknown.

    From ``dropped`` to ``counts`` the fields are JSON, ``None`` where there is nothing to tell.

    ``request`` is set on the call's last attempt and closes the request's own row. Where it is
    not the last, ``pause`` is how many seconds the call waits before its next one.
    """

    attempt_id: str
    request_id: str
    ended_at: float
    status: Status
    usage_source: UsageSource
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None
    cost_nano: int | None = None
    usage_invalid: bool = False
    ttft_ms: float | None = None
    total_ms: float | None = None
    finish_reason: str | None = None
    fault: str | None = None
    fault_message: str | None = None
    upstream_status: int | None = None
    upstream_request_id: str | None = None
    model_reported: str | None = None
    dropped: str | None = None
    adjusted: str | None = None
    injected: str | None = None
    timings: str | None = None
    counts: str | None = None
    """Further numbers without text: redactions by kind, trimmed turns, repairs."""
    overrun_nano: int = 0
    request: RequestEnd | None = None
    pause: float = 0.0


@record(frozen=True, slots=True)
class KeyRow:
    """A key as stored: never the key itself, only its HMAC."""

    id: str
    name: str
    digest: bytes
    role: Literal["caller", "admin"]
    project: str
    created_at: float
    models: tuple[str, ...] | None = None
    limits: Limits = field(default_factory=Limits)
    expires_at: float | None = None
    revoked_at: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)


@record(frozen=True, slots=True)
class UsageQuery:
    """``by``: any of ``key alias provider model day project prompt``; times are Unix seconds."""

    by: tuple[str, ...] = ("key",)
    since: float | None = None
    until: float | None = None
    project: str | None = None


class Store(ResponseBook, IdempotencyBook, PromptBook, RunBook, SealBook, Protocol):
    """The books. Every method may raise ``Fault("store_unavailable")``."""

    async def open(self) -> None:
        """Connect, migrate, settle what a crash left open (``interrupted``, charged with its
        reservation, ``usage_source = estimated``).

        :raises StoreError: a newer schema, a locked file: with what to do about it.
        """
        ...

    async def close(self) -> None:
        """Flush what is queued, then disconnect."""
        ...

    async def ready(self) -> None:
        """Prove that a ledger row could be written now (``/readyz``). Who asks while a proof is
        under way shares it.

        :raises Fault: ``store_unavailable``, also where no proof comes within a second.
        """
        ...

    def depth(self) -> int:
        """Entries that wait to be written, for the metrics."""
        ...

    # the ledger

    async def open_attempt(self, opening: Opening) -> Rates:
        """Reserve and write the rows. The rates are as they stand after it.

        :raises Fault: ``rate_limited`` (``retry_after``, and ``data`` naming the limit) or
            ``budget_exceeded``; then nothing was taken and nothing written.
        """
        ...

    def settle_attempt(self, settlement: Settlement) -> asyncio.Future[None]:
        """Settle once; a second settlement of the same attempt changes nothing. It is under way
        when this returns, and committed when the future is done. Who waits for that hears of a
        cancellation only then, or after :data:`gateway.store.jobs.PATIENCE`."""
        ...

    async def record_refusal(self, request: RequestRow, end: RequestEnd) -> None:
        """End a call outside of any attempt: one that never reached a provider (refused by a
        limit, no deployment) is written, one that gave up between two attempts is closed and
        frees its place. A call that has ended stays as it is."""
        ...

    async def renew(self, attempt_ids: Sequence[str], lease_until: float) -> None:
        """Keep the leases of attempts that are still under way."""
        ...

    async def expire(self, now: float) -> int:
        """Settle as ``interrupted`` what no process has renewed or settled in time; the number
        of rows. Call it every few seconds: on PostgreSQL it is how a dead replica's
        reservations are given back."""
        ...

    async def rates(self, key_id: str, limits: Limits, now: float) -> Rates:
        """The state of a key's rate limits, without taking anything."""
        ...

    async def request(self, request_id: str, project: str | None) -> Mapping[str, Any] | None:
        """One call with its attempts, for ``GET /admin/requests/{id}``."""
        ...

    async def usage(self, query: UsageQuery) -> list[Mapping[str, Any]]:
        """Sums from the daily roll-ups, one row a group."""
        ...

    # keys

    async def add_key(self, row: KeyRow) -> bool:
        """Add a key, unless one that is not revoked has its name: then ``False``."""
        ...

    async def keys(self) -> list[KeyRow]: ...
    async def revoke_key(self, key_id: str, at: float) -> bool: ...
    async def keys_version(self) -> int:
        """Grows with every change of the keys, by whichever process."""
        ...

    # housekeeping

    async def sweep(self, now: float, retention: Mapping[str, float]) -> Mapping[str, int]:
        """Delete what is past its days; rows deleted by table."""
        ...

    async def backup(self, path: str) -> None: ...
    async def forget(self, *, project: str | None = None, end_user: str | None = None) -> int:
        """Delete a project's or an end user's rows."""
        ...


class StoreError(Exception):
    """The store can't be used as configured; the message says what to change."""
