"""Short words for what the tests of the store do all the time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from gateway.settings.snapshot import Limits, StoreSettings
from gateway.store import connect
from gateway.store.base import (
    AttemptRow,
    Opening,
    Rates,
    RequestEnd,
    RequestRow,
    Settlement,
)

NOON = 20_000 * 86_400 + 43_200.0
"""A moment in the middle of a day, and of a month."""
FREE = Limits()


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, at: float = NOON) -> None:
        self.at = at

    def wall(self) -> float:
        return self.at

    def monotonic(self) -> float:
        return self.at

    def new_id(self, prefix: str) -> str:
        return f"{prefix}{next(_numbers):024x}"


_numbers = itertools.count(1)


@dataclass
class Ticket:
    """An attempt that was opened, and what the store answered."""

    attempt: AttemptRow
    rates: Rates

    @property
    def request_id(self) -> str:
        return self.attempt.request_id


@dataclass
class Books:
    """A store with a clock and defaults."""

    url: str
    clock: ManualClock = field(default_factory=ManualClock)
    serving: bool = True
    durability: Any = "normal"
    store: Any = None

    async def __aenter__(self) -> Books:
        settings = StoreSettings(url=self.url, durability=self.durability)
        self.store = connect(settings, serving=self.serving, clock=self.clock)
        self.store.settled_after = 0.0  # on PostgreSQL: lapsed leases are settled at once
        await self.store.open()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.store.close()

    async def crash(self) -> None:
        """Another process takes over: what this one left open is settled."""
        await self.store.close()
        await self.__aenter__()
        await self.store.expire(self.clock.at + 10_000)

    def request(self, **fields: Any) -> RequestRow:
        given = {
            "id": self.clock.new_id("req_"),
            "at": self.clock.at,
            "project": "default",
            "key_id": "key_1",
            "key_name": "dev",
            "alias": "smart",
            "origin": "openai-chat",
            "stream": False,
            "config_hash": "abc",
        }
        return RequestRow(**{**given, **fields})

    def attempt(self, request_id: str, **fields: Any) -> AttemptRow:
        given = {
            "id": self.clock.new_id("att_"),
            "request_id": request_id,
            "number": 1,
            "kind": "first",
            "at": self.clock.at,
            "provider": "openai",
            "model": "gpt",
            "dialect": "openai-responses",
            "estimated_input": 10,
            "reserved_tokens": 100,
            "reserved_nano": 1000,
            "price_table": "t1",
        }
        return AttemptRow(**{**given, **fields})

    def opening(
        self,
        request: RequestRow | None,
        row: AttemptRow,
        limits: Limits = FREE,
        key_id: str = "key_1",
    ) -> Opening:
        return Opening(request, row, key_id, limits, self.clock.at + 60)

    async def open(
        self, limits: Limits = FREE, *, tokens: int = 100, nano: int = 1000, **request: Any
    ) -> Ticket:
        """Begin a call with its first attempt."""
        call = self.request(**request)
        row = self.attempt(call.id, reserved_tokens=tokens, reserved_nano=nano)
        opening = self.opening(call, row, limits, call.key_id)
        return Ticket(row, await self.store.open_attempt(opening))

    async def again(self, before: Ticket, limits: Limits = FREE, **row: Any) -> Ticket:
        """The next attempt of the same call."""
        number = before.attempt.number + 1
        given = {"number": number, "kind": "retry", **row}
        attempt = self.attempt(before.request_id, **given)
        return Ticket(attempt, await self.store.open_attempt(self.opening(None, attempt, limits)))

    async def settle(self, ticket: Ticket, *, last: bool = True, **fields: Any) -> None:
        """End an attempt, and its call unless it is not the ``last``."""
        given = {
            "attempt_id": ticket.attempt.id,
            "request_id": ticket.request_id,
            "ended_at": self.clock.at,
            "status": "completed",
            "usage_source": "provider",
            "input_tokens": 10,
            "output_tokens": 20,
            "cost_nano": 600,
            "request": RequestEnd("completed", 200, attempts=ticket.attempt.number),
        }
        if not last:
            given["request"] = None
        await self.store.settle_attempt(Settlement(**{**given, **fields}))

    async def sql(self, query: str, *values: Any) -> list[dict[str, Any]]:
        return await self.store._db.read(query, values)

    async def account(self, key_id: str = "key_1") -> dict[str, Any]:
        rows = await self.sql("SELECT * FROM accounts WHERE key_id = ?", key_id)
        return rows[0] if rows else {}

    async def shown(self, ticket: Ticket) -> Mapping[str, Any]:
        row = await self.store.request(ticket.request_id, None)
        assert row is not None
        return row
