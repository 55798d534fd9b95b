"""SQLite finds what is under way, and one call's rows, without going through the ledger."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest

from gateway.store import statements as s
from gateway.store.books import runs
from gateway.store.migrations import migrations
from gateway.store.sqlite import calls, clerk

STATEMENTS = {
    "open attempts": calls.LOAD_ATTEMPTS,
    "lapsed attempts": calls.LOAD_LAPSED,
    "left calls": calls.LEFT_CALLS,
    "calls": clerk.LOAD_CALLS,
    "end": calls.END_CALL,
    "first attempt's end": calls.SETTLE_FIRST,
    "later attempt's end": calls.SETTLE_LATER,
    "call's end": calls.CLOSE,
    "lease": calls.KEEP,
    "leases, calls": calls.RENEW[0],
    "leases, first attempts": calls.RENEW[1],
    "leases, later attempts": calls.RENEW[2],
    "call": s.REQUEST,
    "call's attempts": s.ATTEMPTS,
    "calls of a run": runs.CALLS.format(marks="?, ?"),
    "usage of a run": runs.USAGE.format(marks="?, ?"),
    "a caller's calls": f"{s.CLOSED} AND end_user = ?",
    "delete attempts": calls.DELETE_CALL[0],
    "delete call": calls.DELETE_CALL[1],
}


UNDER_WAY = {
    "SCAN calls USING INDEX calls_open",
    "SCAN a USING INDEX later_attempts_open",
    "SCAN later_attempts USING INDEX later_attempts_open",
}
"""Indexes of what is under way: small, however large the ledger."""


@pytest.mark.parametrize("name", STATEMENTS)
def test_no_statement_goes_through_all_calls(name: str) -> None:
    statement = STATEMENTS[name]
    numbered = [int(mark) for mark in re.findall(r"\?(\d+)", statement)]
    marks = max(numbered, default=statement.count("?"))
    with closing(sqlite3.connect(":memory:")) as conn:
        for step in migrations("sqlite"):
            conn.executescript(step.sql)
        found = conn.execute(f"EXPLAIN QUERY PLAN {statement}", [None] * marks)
        plan = [detail for *_, detail in found]
    scans = {step for step in plan if step.startswith("SCAN") and "json_each" not in step}
    if "CO-ROUTINE attempts" in plan:  # reading what a view has found
        scans -= {"SCAN a", "SCAN attempts"}
    assert plan
    assert scans <= UNDER_WAY, plan
