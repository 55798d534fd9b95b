"""``kill -9`` at random points: no acknowledged row is lost, none is settled twice."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.store.booking import Books

ROOT = Path(__file__).parents[2]
ROUNDS = 4
UNEVEN = """SELECT count(*) AS n FROM attempts WHERE status <> 'open'
    AND (charged_nano IS NULL OR ended_at IS NULL OR usage_source IS NULL)"""


def killed(url: str, after: float) -> list[list[str]]:
    """The acknowledged entries of a process that was killed ``after`` seconds of work."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.store.crashing", url],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    first = process.stdout.readline()
    time.sleep(after)
    process.kill()
    rest = process.stdout.read()  # and not communicate(), which passes over what readline() has
    process.wait(20)
    process.stdout.close()
    whole = rest[: rest.rfind("\n") + 1]  # the last line may be half
    return [line.split() for line in (first + whole).splitlines()]


@pytest.mark.parametrize("seed", range(ROUNDS))
async def test_no_acknowledged_row_is_lost(url: str, seed: int) -> None:
    said = killed(url, random.Random(seed).uniform(0.0, 0.4))
    opened = {words[1] for words in said if words[0] == "open"}
    settled = {words[1]: int(words[2]) for words in said if words[0] == "settled"}
    assert opened
    async with Books(url) as books:
        if url.startswith("postgres"):
            await books.store.expire(books.clock.at + 1000)
        rows = {row["id"]: row for row in await books.sql("SELECT * FROM attempts")}
        assert opened <= rows.keys(), "acknowledged, so it is there"
        assert {i: rows[i]["cost_nano"] for i in settled} == settled
        for row in rows.values():
            assert row["status"] in ("completed", "interrupted")
            if row["status"] == "interrupted":
                assert (row["usage_source"], row["charged_nano"]) == ("estimated", 1000)
        assert (await books.sql(UNEVEN))[0]["n"] == 0
        spent = sum(row["charged_nano"] for row in rows.values())
        account = await books.account()
        assert (account["total_nano"], account["reserved_nano"]) == (spent, 0)
        assert account["in_flight"] == 0
        (sums,) = await books.sql(
            "SELECT sum(cost_nano) AS cost, sum(attempts) AS attempts, sum(requests) AS calls "
            "FROM rollups"
        )
        assert {name: int(value) for name, value in sums.items()} == {
            "cost": spent,
            "attempts": len(rows),
            "calls": len(rows),
        }
