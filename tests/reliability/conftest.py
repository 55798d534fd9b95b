"""What tests of the books share: a gateway with quick pings, and the ledger as SQL sees it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.harness import ADMIN, KEYS, PROVIDERS, Harness, alias, aliases, gateway

TIMEOUTS = {"connect": 2, "first_event": 5, "between_events": 5, "total": 8}
PRICED = "".join(
    f'[facts."openai/{model}"]\nprice = {{ input = 1000, output = 1000 }}\n'
    for model in (
        "weigh-4+fault-slow-headers-0.6+priced",
        "paced-100-30+priced",
        "fault-status-500+priced",
    )
)


@dataclass(frozen=True)
class Books:
    """The ledger's file, read beside the running gateway."""

    path: Path

    def rows(self, sql: str, *values: Any) -> list[dict[str, Any]]:
        connection = sqlite3.connect(f"file:{self.path}?mode=ro", uri=True)
        connection.row_factory = sqlite3.Row
        try:
            return [dict(row) for row in connection.execute(sql, values)]
        finally:
            connection.close()

    def balanced(self, g: Harness) -> None:
        """Nothing is open or reserved; the rows add up; the provider saw as many attempts."""
        assert not self.rows("SELECT id FROM requests WHERE status = 'open'")
        assert not self.rows("SELECT id FROM attempts WHERE status = 'open'")
        held = self.rows("SELECT * FROM accounts WHERE reserved_nano != 0 OR in_flight != 0")
        assert not held
        (rows,) = self.rows(
            "SELECT count(*) AS attempts, coalesce(sum(charged_nano), 0) AS cost,"
            " coalesce(sum(output_tokens), 0) AS output FROM attempts"
        )
        (rolled,) = self.rows(
            "SELECT coalesce(sum(attempts), 0) AS attempts, coalesce(sum(cost_nano), 0) AS cost,"
            " coalesce(sum(output_tokens), 0) AS output FROM rollups"
        )
        assert rows == rolled
        (spent,) = self.rows("SELECT coalesce(sum(total_nano), 0) AS cost FROM accounts")
        assert spent["cost"] == rows["cost"]
        (left,) = self.rows(
            "SELECT count(*) AS attempts FROM attempts"
            " WHERE fault IS NOT 'cancelled' OR charged_nano != 0 OR usage_source != 'unknown'"
        )
        assert left["attempts"] == g.simulator.log.total, "but for those that never left"
        again = self.rows(
            "SELECT request_seq, number FROM attempts GROUP BY 1, 2 HAVING count(*) > 1"
        )
        assert not again


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    """The running gateway."""
    rows = [
        alias("slow", ("openai", "paced-100-30+priced"), timeouts=TIMEOUTS),
        alias("silent", ("openai", "fault-no-response"), timeouts=TIMEOUTS),
        alias("mute", ("openai", "fault-slow-first-token-9"), timeouts=TIMEOUTS),
        alias("stuck", ("openai", "fault-stall-after-1"), timeouts=TIMEOUTS),
        alias("held", ("openai", "paced-100-30+held"), commit="complete", timeouts=TIMEOUTS),
        alias(
            "waiting",
            ("openai", "fault-status-429-retry-after-20"),
            retries=3,
            timeouts=TIMEOUTS,
        ),
        alias(
            "patient",
            ("openai", "fault-status-429-retry-after-400"),
            retry_after_cap=500,
            timeouts=TIMEOUTS,
        ),
        alias("endless", ("openai", "burst-100000"), timeouts=TIMEOUTS),
        alias("large", ("openai", "burst-4000"), timeouts={**TIMEOUTS, "total": 30}),
        alias("quick-held", ("openai", "echo+held"), commit="complete"),
        alias("priced", ("openai", "weigh-4+fault-slow-headers-0.6+priced")),
        alias("failing", ("openai", "fault-status-500+priced"), retries=0),
    ]
    config = (
        "[server]\nping_seconds = 0.2\ndrain_seconds = 0.3\n"
        '[observe]\nlog_level = "error"\n'
        f'[store]\nurl = "sqlite:///{tmp_path / "gateway.db"}"\n'
        + PROVIDERS
        + aliases(rows)
        + PRICED
        + KEYS
    )
    async with gateway(tmp_path, config=config) as running:
        yield running


@pytest.fixture
def books(tmp_path: Path) -> Books:
    """The ledger of :func:`g`."""
    return Books(tmp_path / "gateway.db")


@pytest.fixture
def make_key(g: Harness) -> Callable[..., Any]:
    """``await make_key(limits={"rpm": 2})``: a fresh caller's key."""
    made = 0

    async def make(**fields: Any) -> str:
        nonlocal made
        made += 1
        answer = await g.post("/admin/keys", {"name": f"key-{made}", **fields}, key=ADMIN)
        assert answer.status == 201, answer.body
        return answer.json()["key"]

    return make


async def eventually(check: Callable[[], Any], ceiling: float = 5.0) -> float:
    """Wait until ``check()`` holds; the seconds that it took."""
    began = time.monotonic()
    while not check():
        assert time.monotonic() - began < ceiling, "it never came true"
        await asyncio.sleep(0.01)
    return time.monotonic() - began


@pytest.fixture(name="eventually")
def _eventually() -> Callable[..., Any]:
    return eventually


def chat_body(model: str, *, stream: bool = True, **fields: Any) -> bytes:
    """A chat call as bytes."""
    messages = [{"role": "user", "content": "one two three"}]
    return json.dumps({"model": model, "messages": messages, "stream": stream, **fields}).encode()


@pytest.fixture(name="chat_body")
def _chat_body() -> Callable[..., bytes]:
    return chat_body
