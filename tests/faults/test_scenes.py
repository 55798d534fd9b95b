"""Faults that take more than one target's bad day: what the routing makes of them."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.board import Board
from tests.harness import KEYS, PROVIDERS, Harness, alias, gateway
from tests.ports import reserved_port

WIDE = """
[facts."openai/wide"]
window = 1000000
[facts."openai/narrow+fault-context-overflow"]
window = 8000
[facts."openai/tiny"]
window = 60
[facts."chat/small"]
window = 80
"""
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}},
    },
}

ALIASES = (
    alias(
        "flapping",
        ("openai", "fault-for-1.2-503+flapping"),
        ("openai", "steady"),
        retries=0,
        breaker={"rate": 0.9, "minimum": 50, "streak": 2, "cooldown": 0.7, "window": 60},
    ),
    alias(
        "broken",
        ("openai", "fault-n-3-500+broken"),
        ("openai", "steady"),
        retries=0,
        breaker={"rate": 0.9, "minimum": 50, "streak": 2, "cooldown": 2, "window": 60},
    ),
    alias("refused", ("nobody", "any"), ("openai", "after-nobody"), retries=1),
    alias("crowded", ("small", "paced-20-50"), ("openai", "roomy"), retries=0),
    alias(
        "hurried",
        ("small", "paced-20-50"),
        retries=0,
        timeouts={"connect": 5, "first_event": 5, "between_events": 5, "total": 0.3},
    ),
    alias(
        "prefill",
        ("openai", "fault-status-503"),
        ("anthropic", "fault-no-prefill"),
        ("chat", "third"),
        retries=0,
    ),
    alias("prefilled", ("openai", "fault-status-503"), ("chat", "fault-no-prefill"), retries=0),
    alias("overflow", ("openai", "narrow+fault-context-overflow"), ("openai", "wide")),
    alias(
        "filtered",
        ("openai", "fault-content-filter"),
        ("chat", "tolerant"),
        next_on=["content_filtered"],
    ),
    alias(
        "filtered-twice",
        ("openai", "one+fault-content-filter"),
        ("chat", "two+fault-content-filter"),
        ("chat", "three"),
        next_on=["content_filtered"],
    ),
    alias("echoes", ("openai", "first+fault-status-503"), ("chat", "fault-status-400"), retries=0),
    alias("silent-all", *[("openai", f"{n}+fault-no-response") for n in "abcdef"], deadline=1.2),
    alias("patient", ("openai", "fault-status-500+patient"), retries=5, max_attempts=3),
    alias(
        "hints",
        ("openai", "fault-status-429-retry-after-90"),
        ("chat", "fault-status-429-retry-after-40"),
        retries=0,
    ),
    alias("stingy", ("openai", "fault-status-429-retry-after-20"), deadline=3),
    alias("twins", ("chat", "parallel-2+fault-duplicate-ids")),
    alias(
        "hasty",
        ("openai", "fault-slow-headers-3+hasty"),
        deadline=0.5,
        breaker={"rate": 0.5, "minimum": 1, "streak": 1, "cooldown": 60},
    ),
    alias("late", ("openai", "fault-status-500+late"), ("chat", "fault-cut-after-2"), retries=0),
    alias("cramped", ("openai", "tiny"), ("chat", "small")),
    alias("moved", ("openai", "fault-redirect+moved"), retries=0),
    alias("held-cut", ("openai", "slow-150+fault-cut-after-3"), commit="complete", retries=0),
)


@pytest.fixture
async def g(tmp_path: Path) -> AsyncIterator[Harness]:
    """A gateway with a provider that nobody serves, and one with a pool of one."""
    with reserved_port() as nobody:
        async with gateway(tmp_path, config=configured(tmp_path, nobody)) as running:
            yield running


def configured(folder: Path, nobody: int) -> str:
    return (
        "[server]\nping_seconds = 0.2\n"
        '[observe]\nlog_level = "error"\n'
        f'[store]\nurl = "sqlite:///{folder / "gateway.db"}"\n'
        + PROVIDERS
        + f'[providers.nobody]\ndialect = "openai-chat"\nbase_url = "http://127.0.0.1:{nobody}"\n'
        + '[providers.small]\ndialect = "openai-chat"\nbase_url = "{url}/v1"\npool = 1\n'
        + 'api_key = "${KEY_CHAT}"\ntimeouts = { connect = 0.4 }\n'
        + "\n".join(ALIASES)
        + WIDE
        + KEYS
    )


def models(g: Harness) -> list[str | None]:
    """What the provider saw, in order."""
    return [attempt.model for attempt in g.simulator.log]


async def breaker(g: Harness, deployment: str) -> dict[str, Any]:
    rows = (await g.get("/admin/deployments")).json()["deployments"]
    return next(row for row in rows if row["deployment"] == deployment)


async def due(g: Harness, deployment: str) -> None:
    """Wait until a probe may be made."""
    async with asyncio.timeout(20):
        while (await breaker(g, deployment))["state"] != "half_open":
            await asyncio.sleep(0.05)


async def test_flapping_opens_serves_from_the_next_probes_and_returns(
    g: Harness, board: Board
) -> None:
    """The whole life of a breaker, as callers, the provider, metrics and the operator see it."""
    name = "fault-n-3-500+broken"
    for _ in range(4):
        answer = await g.chat("broken")
        assert answer.status == 200
        assert answer.json()["model"] == "steady"
    assert len(g.simulator.log.of(name)) == 2, "left alone once its breaker had opened"
    assert (await breaker(g, f"openai/{name}"))["state"] == "open"
    metrics = (await g.get("/metrics")).body.decode()
    assert f'model="{name}",provider="openai",state="open"}} 1.0' in metrics
    row = await g.explain(answer)
    assert "breaker open" in next(r["why"] for r in row["route"] if r["order"] is None)
    # the first probe comes while it still fails: the breaker stays open, for longer
    await due(g, f"openai/{name}")
    await asyncio.gather(*(g.chat("broken") for _ in range(5)))
    assert len(g.simulator.log.of(name)) == 3, "exactly one probe"
    assert (await breaker(g, f"openai/{name}"))["cooldown_seconds"] == pytest.approx(4)
    await due(g, f"openai/{name}")
    assert (await g.chat("broken")).json()["model"] == name
    assert (await breaker(g, f"openai/{name}"))["state"] == "closed"
    assert (await g.chat("broken")).headers["x-gateway-attempts"] == f"openai/{name}:ok"
    board.tell("flapping: open, next, probe, return", "rescued")


async def test_overload_does_not_open_by_streak(g: Harness) -> None:
    """503 and 429 count for the rate only: a busy provider is not a broken one."""
    for _ in range(3):
        assert (await g.chat("flapping")).status == 200
    assert len(g.simulator.log.of("fault-for-1.2-503+flapping")) == 3


async def test_connection_refused(g: Harness, board: Board) -> None:
    answer = await g.chat("refused")
    assert answer.status == 200
    told = answer.headers["x-gateway-attempts"]
    assert told == "nobody/any:connect_failed, nobody/any:connect_failed, openai/after-nobody:ok"
    first = (await g.explain(answer))["attempts"][0]
    assert (first["fault"], first["cost_nano"]) == ("connect_failed", 0)
    board.tell("connection refused", "rescued")


async def test_connection_pool_full(g: Harness, board: Board) -> None:
    """The pool of one is busy: the second call waits for `connect`, then goes elsewhere."""
    first = asyncio.create_task(g.chat("crowded", stream=True))
    await g.simulator.log.wait_for(1, model="paced-20-50")
    began = time.monotonic()
    second = await g.chat("crowded")
    assert second.status == 200
    assert second.json()["model"] == "roomy"
    assert time.monotonic() - began < 10
    attempt = (await g.explain(second))["attempts"][0]
    assert attempt["fault"] == "upstream_timeout"
    assert "pool" in attempt["fault_message"]
    assert attempt["cost_nano"] == 0, "nothing was sent"
    assert (await first).data()[-1] == "[DONE]"
    assert len(g.simulator.log.of("paced-20-50")) == 1
    board.tell("connection pool full", "rescued")


async def test_what_never_left_costs_nothing_whichever_time_out_ended_it(g: Harness) -> None:
    first = asyncio.create_task(g.chat("crowded", stream=True))
    await g.simulator.log.wait_for(1, model="paced-20-50")
    second = await g.chat("hurried", max_tokens=100)
    assert second.status == 504
    attempt = (await g.explain(second))["attempts"][0]
    assert (attempt["usage_source"], attempt["cost_nano"]) == ("unknown", 0)
    await first


PREFILLED = [
    {"role": "user", "content": "Count to three."},
    {"role": "assistant", "content": "One,"},
]


async def test_a_failover_target_that_rejects_prefill(g: Harness, board: Board) -> None:
    """The facts know that the model can't go on from a prefilled answer: it is passed over."""
    body = {"model": "prefill", "messages": PREFILLED}
    answer = await g.post("/v1/chat/completions", body)
    assert answer.status == 200
    assert models(g) == ["fault-status-503", "third"]
    board.tell("failover target that rejects prefill", "rescued")


async def test_a_refusal_nobody_foresaw_is_only_an_echo(g: Harness, board: Board) -> None:
    """Where facts do not tell, the second target refuses, and the first cause is told."""
    body = {"model": "prefilled", "messages": PREFILLED}
    answer = await g.post("/v1/chat/completions", body)
    assert answer.status == 503
    assert answer.json()["error"]["code"] == "upstream_overloaded"
    assert models(g) == ["fault-status-503", "fault-no-prefill"]
    row = await g.explain(answer)
    assert [a["fault"] for a in row["attempts"]] == ["upstream_overloaded", "bad_request"]
    assert row["first_cause"] == "upstream_overloaded"
    board.tell("failover target refuses, nobody knew", "clean error")


async def test_context_overflow_goes_to_a_wider_window_only(g: Harness, board: Board) -> None:
    answer = await g.chat("overflow")
    assert answer.status == 200
    assert models(g) == ["narrow+fault-context-overflow", "wide"]
    board.tell("context overflow, wider window second", "rescued")


async def test_where_no_window_is_wide_enough_each_is_named(g: Harness) -> None:
    """A phrase for each target, and one word of advice, as docs/routing.md has it."""
    answer = await g.chat("cramped", "word " * 300, max_tokens=10)
    error = answer.json()["error"]
    assert (answer.status, error["code"]) == (400, "context_length_exceeded")
    assert re.fullmatch(
        r"No deployment of 'cramped' can take this request\. openai/tiny: window 60 < \d+ needed; "
        r"chat/small: window 80 < \d+ needed\. Shorten the messages, .* a wider window\.",
        error["message"],
    )
    assert len(g.simulator.log) == 0


async def test_a_content_filter_is_passed_where_the_alias_says_so(g: Harness, board: Board) -> None:
    assert (await g.chat("filtered")).status == 200
    assert models(g) == ["fault-content-filter", "tolerant"]
    board.tell("content filter, next_on", "rescued")


async def test_two_filters_are_evidence_about_the_request(g: Harness) -> None:
    answer = await g.chat("filtered-twice")
    assert answer.status == 400
    assert answer.json()["error"]["code"] == "content_filter"
    assert models(g) == ["one+fault-content-filter", "two+fault-content-filter"]


async def test_the_first_cause_is_primary(g: Harness) -> None:
    answer = await g.chat("echoes")
    assert answer.status == 503
    assert answer.headers["x-gateway-attempts"] == (
        "openai/first+fault-status-503:upstream_overloaded, chat/fault-status-400:bad_request"
    )


async def test_what_cuts_a_stream_is_told_though_another_target_failed_first(g: Harness) -> None:
    """Whoever has read a part of the answer asks what became of that."""
    answer = await g.chat("late", "one two three four five", stream=True)
    assert answer.status == 200
    assert answer.data()[-1]["error"]["code"] == "stream_truncated"
    row = await g.explain(answer)
    assert (row["fault"], row["first_cause"]) == ("stream_truncated", "upstream_server")
    assert row["status"] == "partial"


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_one_deadline_over_all_targets(g: Harness, board: Board, stream: bool) -> None:
    began = time.monotonic()
    answer = await g.chat("silent-all", stream=stream)
    seconds = time.monotonic() - began
    assert answer.status == 504
    assert 1.0 < seconds < 6
    assert "retry-after" not in answer.headers
    row = await g.explain(answer)
    assert len(row["attempts"]) == len(g.simulator.log)
    for attempt in g.simulator.log:
        async with asyncio.timeout(2):
            await attempt.ended.wait()
        assert attempt.disconnected is not None
    board.tell("silence everywhere: one deadline", "clean error")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_deadline_is_not_held_against_the_provider(g: Harness, stream: bool) -> None:
    """The call's time was short, not the provider slow: its breaker stays as it is."""
    answer = await g.chat("hasty", stream=stream)
    assert (answer.status, answer.json()["error"]["code"]) == (504, "deadline")
    name = "openai/fault-slow-headers-3+hasty"
    assert answer.headers["x-gateway-attempts"] == f"{name}:deadline"
    row = await breaker(g, name)
    assert (row["state"], row["failures"], row["first_content_seconds"]) == ("closed", 0, None)


async def test_a_redirect_costs_nothing(g: Harness) -> None:
    answer = await g.chat("moved")
    assert answer.status == 502
    (attempt,) = (await g.explain(answer))["attempts"]
    assert (attempt["upstream_status"], attempt["fault"]) == (302, "upstream_rejected")
    assert (attempt["usage_source"], attempt["input_tokens"], attempt["cost_nano"]) == (
        "unknown",
        None,
        0,
    )


async def test_a_cap_on_all_attempts(g: Harness) -> None:
    answer = await g.chat("patient")
    assert answer.status == 502
    assert len(g.simulator.log) == 3


async def test_the_shortest_hint_is_passed_on(g: Harness) -> None:
    answer = await g.chat("hints")
    assert answer.status == 429
    assert answer.headers["retry-after"] == "40"


async def test_a_hint_beyond_the_deadline_is_not_waited_for(g: Harness) -> None:
    began = time.monotonic()
    answer = await g.chat("stingy")
    assert time.monotonic() - began < 10
    assert answer.status == 429
    assert answer.headers["retry-after"] == "20"
    assert len(g.simulator.log) == 1


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_calls_under_one_id_stay_two_calls(g: Harness, board: Board, stream: bool) -> None:
    answer = await g.chat("twins", "weather", tools=[TOOL], stream=stream)
    if not stream:
        calls = answer.json()["choices"][0]["message"]["tool_calls"]
        assert len(calls) == 2
        board.tell("duplicate ids", "rescued")
        return
    found: dict[int, str] = {}
    for chunk in answer.data()[:-1]:
        for choice in chunk["choices"]:
            for call in choice["delta"].get("tool_calls", ()):
                found[call["index"]] = found.get(call["index"], "") + call["function"].get(
                    "arguments", ""
                )
    assert sorted(found) == [0, 1]
    assert all(json.loads(arguments) for arguments in found.values())


async def test_a_held_stream_that_fails_after_its_pings_fails_in_band(
    g: Harness, board: Board
) -> None:
    """The status went out with the first ping, so that the fault can only be told in-band."""
    answer = await g.chat("held-cut", "a b c d e f", stream=True)
    assert answer.status == 200
    assert answer.body.startswith(b": ping")
    (error,) = answer.data()
    assert error["error"]["code"] == "stream_truncated"
    assert "x-gateway-attempts" not in answer.headers
    board.tell("held stream that fails after pings", "clean error")


ENDINGS = (
    ("fault-length-cut", "length"),
    ("fault-only-reasoning", "length"),
    ("fault-window-full", "length"),
    ("fault-filtered", "content_filter"),
    ("fault-unknown-reason", None),
)


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_unfinished_work_never_looks_finished(tmp_path: Path, stream: bool) -> None:
    """Limits, filters and reasons that nobody knows are no plain ``stop`` (fault kind K02)."""
    providers = ("openai", "anthropic", "chat")
    rows = [alias(f"{p}-{word}", (p, word)) for word, _ in ENDINGS for p in providers]
    async with gateway(tmp_path, *rows, '[observe]\nlog_level = "error"\n') as g:
        for word, wanted in ENDINGS:
            for provider in providers:
                answer = await g.chat(f"{provider}-{word}", stream=stream)
                parts = answer.data()[:-1] if stream else [answer.json()]
                reasons = [c.get("finish_reason") for p in parts for c in p["choices"]]
                (reason,) = [reason for reason in reasons if reason is not None]
                assert reason != "stop", (provider, word)
                assert wanted is None or reason == wanted, (provider, word)
