"""The routing page says what the fault table says."""

from __future__ import annotations

import re
from pathlib import Path

from adapters.canonical.faults import KINDS
from gateway.routing.breaker import PROBE_BOUND
from gateway.routing.plan import RANKINGS
from gateway.routing.retry import BACKOFF_BASE, BACKOFF_CAP
from gateway.routing.stats import FAILED, STALE
from gateway.settings.snapshot import Alias, BreakerPolicy

PAGE = (Path(__file__).parents[2] / "docs" / "routing.md").read_text()

AGAIN = {"no": "no", "yes": "yes", "after": "after `Retry-After`", "reask": "re-asked"}
NEXT = {"no": "no", "yes": "yes", "wider": "to a wider window", "alias": "if in `next_on`"}
TRIPS = {"no": "no", "yes": "yes", "soft": "rate only"}


def test_the_table_of_faults_is_the_code_s() -> None:
    documented = dict(re.findall(r"^\| `(\w+)` (\|.*\|.*\|.*\|)$", PAGE, re.MULTILINE))
    expected = {
        kind: f"| {AGAIN[row.again]} | {NEXT[row.next]} | {TRIPS[row.trips]} |"
        for kind, row in KINDS.items()
        if (row.again, row.next, row.trips) != ("no", "no", "no")
    }
    rows = {kind: row for kind, row in documented.items() if kind in KINDS}
    assert rows == expected


def test_strategies_and_numbers_are_the_code_s() -> None:
    for strategy in RANKINGS:
        assert f"| `{strategy}` |" in PAGE
    alias, breaker = Alias("x", ()), BreakerPolicy()
    for text in (
        f"retries = {alias.retries} ",
        f"max_attempts = {alias.max_attempts} ",
        f"deadline = {alias.deadline:g} ",
        f"retry_after_cap = {alias.retry_after_cap:g} ",
        f"rate = {breaker.rate:g}, window = {breaker.window:g}, minimum = {breaker.minimum}, "
        f"streak = {breaker.streak}, cooldown = {breaker.cooldown:g}, "
        f"max_cooldown = {breaker.max_cooldown:g}",
        f"up to {BACKOFF_BASE:g} s",
        f"{BACKOFF_CAP:g} s. A provider's",
        f"after {PROBE_BOUND:g} s",
        f"counts as {FAILED:g} s",
    ):
        assert text in PAGE, text
    assert STALE == 300.0, "the page says five minutes"
