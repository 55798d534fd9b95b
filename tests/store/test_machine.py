"""Hypothesis plays with the ledger: whatever happens in whatever order, the sums are right.

The model is a few Python numbers; after every step the database must agree with them, and with
itself (roll-ups are the sums of rows, accounts the sums of what is open).
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import Limits
from gateway.store.base import RequestEnd
from gateway.store.rows import ROLLUP_SUMS
from tests.store.booking import Books, Ticket

T = TypeVar("T")

BUDGET = 20_000
LIMITS = Limits(nano_per_day=BUDGET, concurrent=4, rpm=60, tpm=100_000)
NOTHING = {"usage_source": "unknown", "input_tokens": None, "output_tokens": None}

SUMS_OF_ROWS = """
    SELECT count(*) AS attempts, coalesce(sum(charged_nano), 0) AS cost_nano,
           coalesce(sum(overrun_nano), 0) AS overrun_nano,
           coalesce(sum(input_tokens), 0) AS input_tokens,
           coalesce(sum(output_tokens), 0) AS output_tokens,
           coalesce(sum(CASE WHEN fault IS NOT NULL THEN 1 ELSE 0 END), 0) AS faults
    FROM attempts WHERE status <> 'open'"""
SUMS_OF_ROLLUPS = (
    "SELECT " + ", ".join(f"coalesce(sum({n}), 0) AS {n}" for n in ROLLUP_SUMS) + " FROM rollups"
)
CLOSED_CALLS = "SELECT count(*) AS n FROM requests WHERE status <> 'open'"
OPEN_SUMS = """SELECT coalesce(sum(reserved_nano), 0) AS nano, count(*) AS n FROM attempts
    WHERE status = 'open'"""
OPEN_CALLS = "SELECT count(*) AS n FROM requests WHERE status = 'open'"
BY_DAY = """SELECT day, sum(charged_nano) AS spent, sum(overrun_nano) AS overrun FROM attempts
    WHERE status <> 'open' GROUP BY day"""


class LedgerMachine(RuleBasedStateMachine):
    """Reserve, settle, retry, refuse, lapse, crash, restart, and a clock that jumps."""

    tickets = Bundle("tickets")

    def __init__(self, url: str) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.books = Books(url)
        self.charged: dict[str, int] = {}
        self.open: dict[str, Ticket] = {}
        self.run(self.books.__aenter__())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return self.runner.run(work)

    def teardown(self) -> None:
        self.run(self.books.__aexit__())
        self.runner.close()

    @rule(target=tickets, nano=st.integers(0, 9_000), tokens=st.integers(0, 5_000))
    def reserve(self, nano: int, tokens: int) -> Any:
        try:
            ticket = self.run(self.books.open(LIMITS, nano=nano, tokens=tokens))
        except Fault:
            return multiple()
        self.open[ticket.attempt.id] = ticket
        return ticket

    @rule(target=tickets, before=consumes(tickets), nano=st.integers(0, 3_000))
    def fail_and_retry(self, before: Ticket, nano: int) -> Any:
        self._settled(before, 0)
        self.run(
            self.books.settle(
                before, last=False, status="failed", fault="connect_failed", cost_nano=0, **NOTHING
            )
        )
        try:
            ticket = self.run(self.books.again(before, LIMITS, reserved_nano=nano))
        except Fault:
            row = self.books.request(id=before.request_id)
            self.run(self.books.store.record_refusal(row, RequestEnd("failed", 402)))
            return multiple()
        self.open[ticket.attempt.id] = ticket
        return ticket

    @rule(ticket=consumes(tickets), cost=st.one_of(st.none(), st.integers(0, 12_000)))
    def settle(self, ticket: Ticket, cost: int | None) -> None:
        self._settled(ticket, ticket.attempt.reserved_nano if cost is None else cost)
        self.run(self.books.settle(ticket, cost_nano=cost))

    @rule(ticket=tickets)
    def settle_twice_at_once(self, ticket: Ticket) -> None:
        async def both() -> None:
            settle = self.books.settle
            await asyncio.gather(settle(ticket, cost_nano=5), settle(ticket, cost_nano=5))

        self._settled(ticket, 5)
        self.run(both())

    @rule(seconds=st.sampled_from([-90_000, -61, -1, 0.5, 10, 61, 90_000]))
    def clock_jumps(self, seconds: float) -> None:
        self.books.clock.at += seconds

    @rule()
    def leases_lapse(self) -> None:
        for ticket in list(self.open.values()):
            self._settled(ticket, ticket.attempt.reserved_nano)
        self.run(self.books.store.expire(self.books.clock.at + 200_000))

    @rule()
    def crash_and_restart(self) -> None:
        for ticket in list(self.open.values()):
            self._settled(ticket, ticket.attempt.reserved_nano)
        self.run(self.books.store.close())
        self.run(self.books.__aenter__())
        self.run(self.books.store.expire(self.books.clock.at + 200_000))

    def _settled(self, ticket: Ticket, charge: int) -> None:
        """The first settlement stands."""
        if self.open.pop(ticket.attempt.id, None) is not None:
            self.charged[ticket.attempt.id] = charge

    @invariant()
    def the_sums_are_right(self) -> None:
        self.run(self._check())

    async def _check(self) -> None:
        books = self.books
        rows = (await books.sql(SUMS_OF_ROWS))[0]
        sums = (await books.sql(SUMS_OF_ROLLUPS))[0]
        assert rows["cost_nano"] == sum(self.charged.values())
        assert rows["attempts"] == len(self.charged)
        assert {name: sums[name] for name in rows} == rows
        assert sums["requests"] == (await books.sql(CLOSED_CALLS))[0]["n"]
        account = await books.account()
        if not account:
            return
        open_ = (await books.sql(OPEN_SUMS))[0]
        assert (account["reserved_nano"], open_["n"]) == (open_["nano"], len(self.open))
        assert account["reserved_nano"] == sum(t.attempt.reserved_nano for t in self.open.values())
        assert account["in_flight"] == (await books.sql(OPEN_CALLS))[0]["n"] <= 4
        assert account["total_nano"] == sum(self.charged.values())
        for day in await books.sql(BY_DAY):
            # What was granted never exceeds the budget; what providers took beyond their
            # reservation is the overrun, and nothing else is.
            assert day["spent"] - day["overrun"] <= BUDGET


@pytest.mark.parametrize(("database", "examples"), [("sqlite", 30), ("postgres", 8)])
def test_whatever_happens_the_sums_are_right(
    database: str, examples: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    fresh: Callable[[], str]
    if database == "sqlite":
        numbers = itertools.count()
        fresh = lambda: f"sqlite:///{tmp_path}/gateway-{next(numbers)}.db"  # noqa: E731
    else:
        fresh = request.getfixturevalue("postgres").database
    run_state_machine_as_test(
        lambda: LedgerMachine(fresh()),
        settings=settings(
            max_examples=examples,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
