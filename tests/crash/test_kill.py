"""``kill -9`` at random points under load: the books lose nothing and count nothing twice."""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections import Counter
from typing import Any

import aiohttp
import pytest

from adapters.simulator.meter import tokens
from tests.harness import alias

ROUNDS = 10
CALLERS = 16
SECONDS = (0.02, 0.5)
"""How long a round's load runs before the kill."""

TIMEOUTS = {"connect": 5, "first_event": 20, "between_events": 20, "total": 30}
TABLES = (
    alias("quick", ("openai", "echo+quick"), timeouts=TIMEOUTS),
    alias("paced", ("anthropic", "slow-20+paced"), timeouts=TIMEOUTS),
    alias("held", ("chat", "slow-10+held"), commit="complete", timeouts=TIMEOUTS),
    alias(
        "flaky",
        ("openai", "fault-every-2-500+flaky"),
        ("anthropic", "rescue"),
        retries=0,
        timeouts=TIMEOUTS,
        breaker={"streak": 1000, "rate": 1.0, "minimum": 1000},
    ),
    '[facts."openai/echo+quick"]\nprice = { input = 3, output = 15 }\n',
    '[facts."anthropic/slow-20+paced"]\nprice = { input = 3, output = 15 }\n',
)
ALIASES = ("quick", "paced", "held", "flaky")


class Load:
    """Callers that call until the gateway is gone; ``answered`` are the calls whose answer came
    whole. Every call has a name: the ledger has it as the end user, the provider in the prompt.
    """

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self._made = 0
        self.answered: set[str] = set()

    async def run(self, http: aiohttp.ClientSession) -> None:
        """All callers, until the last has lost its connection."""
        await asyncio.gather(*(self._caller(http, number) for number in range(CALLERS)))

    async def _caller(self, http: aiohttp.ClientSession, number: int) -> None:
        while True:
            self._made += 1
            name = f"call-{self._made:06d}"
            stream = (self._made + number) % 2 == 0
            body = {
                "model": ALIASES[self._made % len(ALIASES)],
                "messages": [{"role": "user", "content": f"{name} says a few words"}],
                "user": name,
                "stream": stream,
            }
            try:
                async with self._gateway.post(http, body) as reply:
                    text = await reply.read()
            except (aiohttp.ClientError, ConnectionError):
                return
            assert reply.status == 200, text
            assert not stream or text.endswith(b"data: [DONE]\n\n") or b'"error"' in text
            self.answered.add(name)


@pytest.mark.parametrize(
    "served", ["sqlite", pytest.param("postgres", marks=pytest.mark.all)], indirect=True
)
async def test_the_books_survive_any_crash(served: Any, http: aiohttp.ClientSession) -> None:
    seed = int(os.environ.get("GATEWAY_TEST_SEED", time.time_ns() % 1_000_000))
    print(f"GATEWAY_TEST_SEED={seed}")
    chance = random.Random(seed)
    served.write(*TABLES)
    load = Load(served)
    for number in range(ROUNDS):
        await served.settle_the_dead()
        await served.start()
        if number:
            check(served, load)
        pause = chance.uniform(*SECONDS)
        running = asyncio.create_task(load.run(http))
        await served.simulator.log.wait_for(len(served.simulator.log) + 1, seconds=10)
        await asyncio.sleep(pause)
        await served.kill()
        await running
    await served.settle_the_dead()
    await served.start()
    check(served, load)
    interrupted = served.rows("SELECT * FROM attempts WHERE status = 'interrupted'")
    assert interrupted, "no crash ever met a call: the test tests nothing"
    assert len(load.answered) > ROUNDS


def check(served: Any, load: Load) -> None:
    """The books after a restart, against what callers and the provider saw."""
    no_open_ends(served)
    rows = served.rows(
        "SELECT r.end_user, r.status AS call, r.attempt_count, a.* FROM attempts AS a"
        " JOIN requests AS r ON r.seq = a.request_seq ORDER BY r.seq, a.number"
    )
    told = {row["end_user"] for row in rows if row["call"] == "completed"}
    assert load.answered <= told, "a caller was told of an end that the books do not have"
    seen = Counter(name_of(attempt) for attempt in served.simulator.log)
    written = Counter(row["end_user"] for row in rows)
    assert set(seen) <= set(written), "the provider saw what the books do not have"
    last = {row["end_user"]: row for row in rows}
    for name, count in written.items():
        unsent = count - seen[name]
        assert unsent in (0, 1)
        assert not unsent or last[name]["status"] == "interrupted", "a row without an attempt"
    for row in rows:
        if row["status"] == "interrupted":
            assert row["charged_nano"] == row["reserved_nano"]
            assert row["usage_source"] == "estimated"
        elif row["usage_source"] == "provider":
            assert row["output_tokens"] == tokens(f"{row['end_user']} says a few words")


def no_open_ends(served: Any) -> None:
    """Nothing open, nothing reserved, nothing twice; the roll-ups are the sums of the rows."""
    assert not served.rows("SELECT id FROM requests WHERE status = 'open'")
    assert not served.rows("SELECT id FROM attempts WHERE status = 'open'")
    held = "SELECT * FROM accounts WHERE reserved_nano != 0 OR in_flight != 0"
    assert not served.rows(held)
    assert not served.rows("SELECT id FROM attempts GROUP BY id HAVING count(*) > 1")
    assert not served.rows("SELECT end_user FROM requests GROUP BY end_user HAVING count(*) > 1")
    sums = (
        "coalesce(sum(output_tokens), 0) AS output, coalesce(sum(input_tokens), 0) AS input,"
        " coalesce(sum({cost}), 0) AS cost"
    )
    (rows,) = served.rows(
        f"SELECT count(*) AS attempts, {sums.format(cost='charged_nano')} FROM attempts"
    )
    (rolled,) = served.rows(
        f"SELECT sum(attempts) AS attempts, {sums.format(cost='cost_nano')} FROM rollups"
    )
    assert rows == rolled
    (spent,) = served.rows("SELECT sum(total_nano) AS cost FROM accounts")
    assert spent["cost"] == rows["cost"]
    (calls,) = served.rows("SELECT count(*) AS n FROM requests")
    (counted,) = served.rows("SELECT sum(requests) AS n FROM rollups")
    assert calls == counted


def name_of(attempt: Any) -> str:
    """The call's name, as the provider read it in the prompt."""
    text = attempt.raw.decode()
    start = text.index("call-")
    return text[start : start + len("call-000000")]
