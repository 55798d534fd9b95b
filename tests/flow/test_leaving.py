"""A caller may leave at any moment: between two attempts, too. Nothing stays open."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from pathlib import Path

from tests.harness import KEY, alias, gateway

FAILING = alias(
    "failing",
    ("openai", "slow-3+fault-status-503"),
    ("chat", "fault-once-500"),
    ("anthropic", "paced-5-3"),
    retries=2,
)


async def test_leaving_at_any_moment_leaves_nothing_open(tmp_path: Path) -> None:
    body = json.dumps(
        {"model": "failing", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    ).encode()
    async with gateway(tmp_path, FAILING) as g:
        g.state.runtime.random.random = lambda: 0.02  # type: ignore[method-assign]

        async def leave_after(seconds: float) -> None:
            with contextlib.suppress(TimeoutError):
                async with (
                    asyncio.timeout(seconds),
                    g.http.post(
                        g.url + "/v1/chat/completions",
                        data=body,
                        headers={"authorization": f"Bearer {KEY}"},
                    ) as reply,
                ):
                    await reply.read()

        for start in range(10):
            await asyncio.gather(*(leave_after(0.021 + start / 400 + n / 2000) for n in range(20)))
        async with asyncio.timeout(10):
            while g.state.live:
                await asyncio.sleep(0.01)
        with contextlib.closing(sqlite3.connect(tmp_path / "gateway.db")) as books:
            counts = dict(books.execute("SELECT status, count(*) FROM requests GROUP BY status"))
            held = books.execute("SELECT sum(reserved_nano), sum(in_flight) FROM accounts")
            reserved, slots = held.fetchone()
    assert "open" not in counts, counts
    assert counts["cancelled"] > 10, "callers did leave"
    assert (reserved, slots) == (0, 0)
