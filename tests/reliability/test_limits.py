"""Limits as callers meet them over HTTP: they hold under concurrency, and say what to do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import KeySettings, Secret
from tests.harness import ADMIN, KEY, Harness


async def post(g: Harness, key: str, model: str = "m-openai", **fields: Any) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": "one two three"}], **fields}
    return await g.post("/v1/chat/completions", body, key=key)


OPENED = """SELECT at, ended_at, cost_nano, reserved_nano FROM attempts
    WHERE request_seq IN (SELECT seq FROM requests WHERE key_id NOT LIKE 'file:%')"""


async def test_200_callers_at_a_budget_for_10_calls(g: Harness, books: Any, make_key: Any) -> None:
    """All at once, with `max_tokens` set and used up: the money is reserved before a call leaves,
    so that what is spent and promised together never passes the budget. A call that ends leaves
    what it did not use to those that come later, so how many may go depends on their order."""
    probe = await g.explain(await g.chat("priced", "one two three", max_tokens=100))
    nano = probe["attempts"][0]["reserved_nano"]
    assert nano > 0
    budget = 10 * nano
    key = await make_key(limits={"usd_total": budget / 1e9})
    before = g.simulator.log.total

    async def watch() -> None:
        while True:
            for row in books.rows("SELECT * FROM accounts WHERE key_id NOT LIKE 'file:%'"):
                assert row["total_nano"] + row["reserved_nano"] <= budget
            await asyncio.sleep(0.01)

    watching = asyncio.create_task(watch())
    answers = await asyncio.gather(
        *(post(g, key, "priced", max_tokens=100, stream=n % 2 == 0) for n in range(200))
    )
    assert not watching.done(), watching.exception()
    watching.cancel()
    passed = [a for a in answers if a.status == 200]
    refused = [a for a in answers if a.status == 402]
    assert len(passed) + len(refused) == 200
    calls = books.rows(OPENED)
    assert len(calls) == len(passed) >= 10
    first_end = min(call["ended_at"] for call in calls)
    assert sum(call["at"] < first_end for call in calls) <= 10, "nothing was given back by then"
    for call in calls:  # whoever came later was paid for by what the others had not used
        at = call["at"]
        used = sum(c["cost_nano"] for c in calls if c["ended_at"] <= at)
        promised = sum(c["reserved_nano"] for c in calls if c["at"] <= at < c["ended_at"])
        assert used + promised <= budget
    assert g.simulator.log.total - before == len(passed)
    for answer in refused:
        error = answer.json()["error"]
        assert (error["code"], error["limit"]) == ("budget_exceeded", "usd_total")
    (account,) = books.rows("SELECT * FROM accounts WHERE key_id NOT LIKE 'file:%'")
    assert 0 < account["total_nano"] <= budget
    books.balanced(g)


@pytest.mark.parametrize("model", ["m-openai", "m-claude", "m-chat"])
async def test_cached_input_counts_once(g: Harness, books: Any, make_key: Any, model: str) -> None:
    """It is a part of the input: in the row, in the sums, and of the tokens a minute."""
    key = await make_key(limits={"tpm": 100_000})
    text = {"type": "text", "text": "a long text " * 500, "cache_control": {"type": "ephemeral"}}
    body = {
        "model": model,
        "messages": [{"role": "user", "content": [text]}],
        "prompt_cache_key": "same",
        "max_tokens": 5,
    }
    told = [(await g.post("/v1/chat/completions", body, key=key)).json()["usage"] for _ in "ab"]
    read = told[1]["prompt_tokens_details"]["cached_tokens"]
    assert read > 1000
    (principal,) = (p for p in g.state.keyring.principals() if not p.from_file)
    now = g.state.runtime.clock.wall()
    rates = await g.state.store.rates(principal.key_id, principal.limits, now)
    assert rates["tokens"].remaining == 100_000 - sum(usage["total_tokens"] for usage in told)
    rows = books.rows("SELECT input_tokens, cache_read_tokens FROM attempts ORDER BY at")
    assert [row["input_tokens"] for row in rows] == [usage["prompt_tokens"] for usage in told]
    assert rows[1]["cache_read_tokens"] == read


async def test_a_budget_of_zero_blocks_everything(g: Harness, make_key: Any) -> None:
    answer = await post(g, await make_key(limits={"usd_per_day": 0}), "priced")
    assert answer.status == 402
    assert "retry-after" not in answer.headers, "tomorrow it is 0 again"
    assert answer.headers["x-should-retry"] == "false"
    assert g.simulator.log.total == 0


async def test_requests_per_minute(g: Harness, make_key: Any) -> None:
    key = await make_key(limits={"rpm": 3})
    answers = [await post(g, key) for _ in range(4)]
    assert [a.status for a in answers] == [200, 200, 200, 429]
    left = [a.headers["x-ratelimit-remaining-requests"] for a in answers]
    assert left == ["2", "1", "0", "0"]
    refused = answers[-1]
    assert refused.json()["error"]["code"] == "rate_limit_exceeded"
    assert refused.json()["error"]["limit"] == "rpm"
    assert 1 <= int(refused.headers["retry-after"]) <= 61
    assert refused.headers["x-ratelimit-limit-requests"] == "3"
    assert refused.headers["x-ratelimit-reset-requests"].endswith("s")
    assert len(g.simulator.log) == 3


async def test_requests_per_minute_under_concurrency(g: Harness, make_key: Any) -> None:
    key = await make_key(limits={"rpm": 7})
    answers = await asyncio.gather(*(post(g, key) for _ in range(60)))
    assert sum(a.status == 200 for a in answers) == 7
    assert sum(a.status == 429 for a in answers) == 53
    assert len(g.simulator.log) == 7


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_tokens_per_minute(g: Harness, make_key: Any, stream: bool) -> None:
    key = await make_key(limits={"tpm": 1000})
    first = await post(g, key, max_tokens=400, stream=stream)
    assert first.status == 200
    assert int(first.headers["x-ratelimit-remaining-tokens"]) < 600
    # the answer was far shorter than its limit: what was not used is given back
    second = await post(g, key, max_tokens=800, stream=stream)
    assert second.status == 200
    third = await post(g, key, max_tokens=2000, stream=stream)
    assert third.status == 429
    assert third.json()["error"]["limit"] == "tpm"
    assert "retry-after" not in third.headers, "it will never fit"
    assert third.headers["x-ratelimit-limit-tokens"] == "1000"
    assert int(third.headers["x-ratelimit-remaining-tokens"]) > 900


async def test_concurrent_calls(g: Harness, make_key: Any, eventually: Any) -> None:
    key = await make_key(limits={"concurrent": 2})
    running = [asyncio.create_task(post(g, key, "slow", stream=True)) for _ in range(2)]
    await g.simulator.log.wait_for(2)
    refused = await post(g, key)
    assert refused.status == 429
    assert refused.json()["error"]["limit"] == "concurrent"
    assert refused.headers["retry-after"] == "1"
    running[0].cancel()
    await eventually(lambda: len(g.state.live) == 1)
    assert (await post(g, key)).status == 200, "a place is free as soon as its call is gone"
    assert (await running[1]).status == 200


async def test_a_failed_call_gives_its_reservation_back(
    g: Harness, books: Any, make_key: Any
) -> None:
    key = await make_key(limits={"usd_total": 1, "concurrent": 1, "tpm": 10_000})
    for _ in range(3):
        answer = await post(g, key, "failing", max_tokens=100)
        assert answer.status == 502
        assert answer.headers["x-ratelimit-limit-tokens"] == "10000", "also on errors"
    (account,) = books.rows("SELECT * FROM accounts")
    assert account["total_nano"] == 0
    books.balanced(g)


async def test_the_limit_is_told_in_each_protocol(g: Harness, make_key: Any) -> None:
    key = await make_key(limits={"rpm": 0})
    messages = {
        "model": "m-claude",
        "max_tokens": 10,
        "messages": [{"role": "user", "content": "a"}],
    }
    answer = await g.post("/v1/messages", messages, key=key)
    assert answer.status == 429
    assert answer.json()["error"]["type"] == "rate_limit_error"
    answer = await g.post("/v1/responses", {"model": "m-openai", "input": "a"}, key=key)
    assert answer.status == 429
    assert answer.json()["error"]["code"] == "rate_limit_exceeded"
    assert len(g.simulator.log) == 0


async def test_refusals_are_in_the_books(g: Harness, books: Any, make_key: Any) -> None:
    await post(g, await make_key(limits={"rpm": 0}))
    (row,) = books.rows("SELECT * FROM requests")
    assert (row["status"], row["fault"], row["http_status"]) == ("failed", "rate_limited", 429)
    (rolled,) = books.rows("SELECT * FROM rollups")
    assert (rolled["requests"], rolled["refused"], rolled["attempts"]) == (1, 1, 0)


async def test_allowed_models(g: Harness, make_key: Any) -> None:
    key = await make_key(models=["m-openai"])
    assert (await post(g, key)).status == 200
    refused = await post(g, key, "m-claude")
    assert refused.status in (403, 404)
    listed = (await g.get("/v1/models", key=key)).json()["data"]
    assert [model["id"] for model in listed] == ["m-openai"]
    assert len(g.simulator.log) == 1


async def test_expiry(g: Harness, make_key: Any) -> None:
    key = await make_key(expires_in=2)
    assert (await post(g, key)).status == 200
    async with asyncio.timeout(20):
        while (refused := await post(g, key)).status == 200:
            await asyncio.sleep(0.1)
    assert refused.status == 401
    assert refused.json()["error"]["code"] == "expired_api_key"


async def test_default_limits_are_for_keys_that_say_nothing(g: Harness) -> None:
    """Of the file's keys and of stored ones; `null` in the store is "says nothing", too."""
    from gateway.settings.snapshot import Limits

    keys = (
        KeySettings("plain", Secret(KEY)),
        KeySettings("own", Secret("own-key"), limits=Limits(rpm=5)),
        KeySettings("boss", Secret(ADMIN), role="admin"),
    )
    g.state.keyring.use_file(keys, Limits(rpm=1))
    assert [(await post(g, KEY)).status for _ in range(2)] == [200, 429]
    assert [(await post(g, "own-key")).status for _ in range(2)] == [200, 200]


def test_faults_of_limits_are_the_callers() -> None:
    for kind in ("rate_limited", "budget_exceeded"):
        assert Fault(kind, "").row.blame == "caller"
