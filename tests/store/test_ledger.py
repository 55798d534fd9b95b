"""Promises 8 and 9 on both databases: a row per attempt, settled once; all limits or none."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import Limits
from gateway.store.base import RateState, RequestEnd, UsageQuery
from tests.store.booking import NOON, Books, Ticket


async def test_a_call_is_written_when_it_begins_and_when_it_ends(books: Books) -> None:
    ticket = await books.open(
        end_user="u1", trace_id="t1", route='[{"target":"openai/gpt","why":"first"}]', stream=True
    )
    row = await books.shown(ticket)
    assert (row["status"], row["ended_at"], row["attempts"][0]["status"]) == ("open", None, "open")
    await books.settle(
        ticket,
        cache_read_tokens=3,
        cache_write_tokens=0,
        timings='{"reserved":1.5}',
        dropped='["seed"]',
        counts='{"email":2}',
        finish_reason="stop",
        request=RequestEnd("completed", 200, timings='{"total":9.5}'),
    )
    row = await books.shown(ticket)
    attempt = row["attempts"][0]
    assert row["route"] == [{"target": "openai/gpt", "why": "first"}]
    assert row["stream"] is True
    assert (row["status"], row["http_status"], row["attempt_count"]) == ("completed", 200, 1)
    assert row["timings"] == {"total": 9.5}
    assert (attempt["status"], attempt["finish_reason"]) == ("completed", "stop")
    assert (attempt["input_tokens"], attempt["cache_read_tokens"]) == (10, 3)
    assert attempt["cache_write_tokens"] == 0
    assert attempt["reasoning_tokens"] is None
    assert (attempt["cost_nano"], attempt["charged_nano"], attempt["overrun_nano"]) == (600, 600, 0)
    assert (attempt["dropped"], attempt["adjusted"]) == (["seed"], ())
    assert (attempt["timings"], attempt["counts"]) == ({"reserved": 1.5}, {"email": 2})


async def test_a_call_of_another_project_is_not_found(books: Books) -> None:
    ticket = await books.open(project="ours")
    assert await books.store.request(ticket.request_id, "theirs") is None
    assert await books.store.request(ticket.request_id, "ours") is not None
    assert await books.store.request("req_unknown", None) is None


@pytest.mark.parametrize("crashed", [False, True])
async def test_a_first_attempt_keeps_its_number(books: Books, crashed: bool) -> None:
    """Of several choices, the one that was refused had the number before it."""
    call = books.request()
    row = books.attempt(call.id, number=2, kind="choice")
    await books.store.open_attempt(books.opening(call, row))
    ticket = Ticket(row, {})
    await books.settle(await books.again(ticket), last=False)
    await (books.crash() if crashed else books.settle(ticket))
    told = await books.store.request(call.id, None)
    assert told is not None
    found = [
        (attempt["number"], attempt["kind"], attempt["status"]) for attempt in told["attempts"]
    ]
    first = "interrupted" if crashed else "completed"
    assert found == [(2, "choice", first), (3, "retry", "completed")]
    assert told["status"] == first


async def test_settling_gives_back_what_was_not_used(books: Books) -> None:
    ticket = await books.open(nano=1000)
    assert (await books.account())["reserved_nano"] == 1000
    await books.settle(ticket, cost_nano=600)
    account = await books.account()
    assert account["reserved_nano"] == 0
    assert account["in_flight"] == 0
    assert account["day_nano"] == account["month_nano"] == account["total_nano"] == 600


async def test_a_second_settlement_changes_nothing(books: Books) -> None:
    ticket = await books.open()
    await books.settle(ticket, cost_nano=600)
    await asyncio.gather(*(books.settle(ticket, cost_nano=900, status="failed") for _ in range(5)))
    assert (await books.shown(ticket))["attempts"][0]["cost_nano"] == 600
    assert (await books.account())["total_nano"] == 600
    (line,) = await books.store.usage(UsageQuery(by=()))
    assert (line["requests"], line["attempts"], line["cost_nano"]) == (1, 1, 600)


async def test_settlements_in_one_group_settle_once(books: Books) -> None:
    ticket = await books.open()
    await asyncio.gather(*(books.settle(ticket) for _ in range(20)))
    assert (await books.account())["total_nano"] == 600


async def test_what_costs_more_than_it_reserved_is_charged_and_shown(books: Books) -> None:
    ticket = await books.open(nano=1000)
    await books.settle(ticket, cost_nano=1500)
    attempt = (await books.shown(ticket))["attempts"][0]
    assert (attempt["charged_nano"], attempt["overrun_nano"]) == (1500, 500)
    assert (await books.account())["total_nano"] == 1500


async def test_an_unknown_cost_is_charged_as_reserved(books: Books) -> None:
    ticket = await books.open(nano=1000)
    unknown: dict[str, Any] = dict.fromkeys(("input_tokens", "output_tokens", "cost_nano"))
    await books.settle(ticket, status="partial", usage_source="unknown", **unknown)
    attempt = (await books.shown(ticket))["attempts"][0]
    assert (attempt["cost_nano"], attempt["charged_nano"]) == (None, 1000)
    assert attempt["input_tokens"] is None
    (line,) = await books.store.usage(UsageQuery(by=()))
    assert (line["unknown_usage"], line["cost_nano"], line["estimated_nano"]) == (1, 1000, 1000)


async def test_negative_numbers_lower_no_sum(books: Books) -> None:
    """Case A09."""
    ticket = await books.open(nano=1000)
    await books.settle(ticket, input_tokens=-1_000_000, output_tokens=-5, cost_nano=-900)
    attempt = (await books.shown(ticket))["attempts"][0]
    assert attempt["usage_invalid"] is True
    assert attempt["input_tokens"] is None
    assert (await books.account())["total_nano"] == 1000
    (line,) = await books.store.usage(UsageQuery(by=()))
    assert (line["input_tokens"], line["cost_nano"]) == (0, 1000)


async def test_each_attempt_of_a_call_has_its_row(books: Books) -> None:
    limits = Limits(rpm=1, concurrent=1, tpm=1000)
    first = await books.open(limits)
    nothing = {"usage_source": "unknown", "input_tokens": None, "output_tokens": None}
    await books.settle(
        first, last=False, status="failed", fault="connect_failed", cost_nano=0, **nothing
    )
    second = await books.again(first, limits)
    assert (await books.account())["in_flight"] == 1, "the call keeps its place between attempts"
    await books.settle(second)
    row = await books.shown(first)
    assert [a["number"] for a in row["attempts"]] == [1, 2]
    assert [a["status"] for a in row["attempts"]] == ["failed", "completed"]
    assert (row["status"], row["attempt_count"]) == ("completed", 2)
    assert (await books.account())["in_flight"] == 0
    (line,) = await books.store.usage(UsageQuery(by=()))
    assert (line["requests"], line["attempts"], line["faults"]) == (1, 2, 1)


@pytest.mark.parametrize(
    ("limits", "kind", "named"),
    [
        (Limits(rpm=1), "rate_limited", "rpm"),
        (Limits(tpm=150), "rate_limited", "tpm"),
        (Limits(concurrent=1), "rate_limited", "concurrent"),
        (Limits(nano_per_day=1999), "budget_exceeded", "usd_per_day"),
        (Limits(nano_per_month=1999), "budget_exceeded", "usd_per_month"),
        (Limits(nano_total=1999), "budget_exceeded", "usd_total"),
    ],
)
async def test_a_refusal_names_its_limit_and_takes_nothing(
    books: Books, limits: Limits, kind: str, named: str
) -> None:
    await books.open(limits)
    before = await books.account()
    with pytest.raises(Fault) as refused:
        await books.open(replace(limits, rpm=limits.rpm or 100))
    assert (refused.value.kind, refused.value.data) == (kind, {"limit": named})
    assert refused.value.retry_after is not None
    assert refused.value.retry_after > 0
    assert await books.account() == before
    assert (await books.sql("SELECT count(*) AS n FROM requests"))[0]["n"] == 1


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        (Limits(rpm=0), "rate_limited"),
        (Limits(tpm=0), "rate_limited"),
        (Limits(concurrent=0), "rate_limited"),
        (Limits(nano_per_day=0), "budget_exceeded"),
        (Limits(nano_per_month=0), "budget_exceeded"),
        (Limits(nano_total=0), "budget_exceeded"),
    ],
)
async def test_zero_blocks_everything_for_ever(books: Books, limits: Limits, kind: str) -> None:
    """Case A15: also a call that costs nothing."""
    with pytest.raises(Fault) as refused:
        await books.open(limits, tokens=0, nano=0)
    assert (refused.value.kind, refused.value.retry_after) == (kind, None)


async def test_a_call_larger_than_the_limit_is_told_that_waiting_is_no_use(books: Books) -> None:
    with pytest.raises(Fault, match="waiting does not help") as refused:
        await books.open(Limits(tpm=50), tokens=100)
    assert refused.value.retry_after is None


async def test_retry_after_is_exact(books: Books) -> None:
    limits = Limits(rpm=2)
    await books.open(limits)
    books.clock.at += 20.25
    await books.open(limits)
    with pytest.raises(Fault) as refused:
        await books.open(limits)
    wait = refused.value.retry_after
    assert wait is not None
    books.clock.at += wait - 0.01
    with pytest.raises(Fault):
        await books.open(limits)
    books.clock.at += 0.01
    await books.open(limits)


async def test_the_day_and_the_month_renew_a_budget(books: Books) -> None:
    limits = Limits(nano_per_day=1000, nano_per_month=1500)
    await books.settle(await books.open(limits), cost_nano=1000)
    with pytest.raises(Fault) as refused:
        await books.open(limits)
    assert refused.value.data == {"limit": "usd_per_month"}, "the one that lasts longer"
    with pytest.raises(Fault) as refused:
        await books.open(limits, nano=500)
    assert refused.value.data == {"limit": "usd_per_day"}
    assert refused.value.retry_after == NOON // 86_400 * 86_400 + 86_400 - NOON
    books.clock.at += refused.value.retry_after
    await books.settle(await books.open(limits, nano=500), cost_nano=500)
    books.clock.at += 31 * 86_400
    await books.open(limits)


async def test_a_call_over_midnight_is_charged_to_the_day_it_began(books: Books) -> None:
    books.clock.at = 20_001 * 86_400 - 10
    ticket = await books.open()
    books.clock.at += 20
    other = await books.open()
    await books.settle(ticket, cost_nano=600)
    await books.settle(other, cost_nano=50)
    lines = await books.store.usage(UsageQuery(by=("day",)))
    assert [(line["day"], line["cost_nano"]) for line in lines] == [
        ("2024-10-04", 600),
        ("2024-10-05", 50),
    ]
    assert (await books.account())["day_nano"] == 50


async def test_two_hundred_at_a_budget_for_ten(books: Books) -> None:
    limits = Limits(nano_total=10_000)

    async def call() -> bool:
        try:
            ticket = await books.open(limits)
        except Fault:
            return False
        await asyncio.sleep(0)
        await books.settle(ticket, cost_nano=1000)
        return True

    passed = await asyncio.gather(*(call() for _ in range(200)))
    assert sum(passed) == 10
    account = await books.account()
    assert (account["total_nano"], account["reserved_nano"], account["in_flight"]) == (10_000, 0, 0)


async def test_two_hundred_at_ten_a_minute_and_three_at_once(books: Books) -> None:
    """Case P01: refused ones cost nothing, the gauge ends at 0."""
    limits = Limits(rpm=10, concurrent=3)
    flying = most = accepted = 0

    async def call() -> None:
        nonlocal flying, most, accepted
        for _ in range(20):
            try:
                ticket = await books.open(limits)
            except Fault as refused:
                if refused.data == {"limit": "rpm"}:
                    return
                await asyncio.sleep(0.001)
                continue
            accepted += 1
            flying += 1
            most = max(most, flying)
            await asyncio.sleep(0.002)
            flying -= 1
            await books.settle(ticket)

    await asyncio.gather(*(call() for _ in range(200)))
    assert (accepted, most) == (10, 3)
    assert (await books.account())["in_flight"] == 0


async def test_tokens_settle_to_what_was_really_used(books: Books) -> None:
    limits = Limits(tpm=1000)
    ticket = await books.open(limits, tokens=900)
    assert ticket.rates["tokens"] == RateState(1000, 100, 61.0)
    await books.settle(ticket, input_tokens=100, output_tokens=50, cache_read_tokens=50)
    rates = await books.store.rates("key_1", limits, books.clock.at)
    assert rates == {"tokens": RateState(1000, 850, 61.0)}, "what was cached is a part of the input"
    books.clock.at += 61
    assert (await books.store.rates("key_1", limits, books.clock.at))["tokens"].remaining == 1000


async def test_what_did_no_work_gives_its_tokens_back(books: Books) -> None:
    """A refusal by the provider: nothing is known of tokens, and it cost nothing."""
    limits = Limits(tpm=1000)
    ticket = await books.open(limits, tokens=900)
    unknown = {"usage_source": "unknown", "input_tokens": None, "output_tokens": None}
    await books.settle(ticket, status="failed", fault="upstream_server", cost_nano=0, **unknown)
    assert (await books.store.rates("key_1", limits, books.clock.at))["tokens"].remaining == 1000


async def test_unknown_tokens_stay_reserved(books: Books) -> None:
    limits = Limits(tpm=1000)
    ticket = await books.open(limits, tokens=900)
    await books.settle(
        ticket, usage_source="unknown", input_tokens=None, output_tokens=None, cost_nano=None
    )
    assert (await books.store.rates("key_1", limits, books.clock.at))["tokens"].remaining == 100


async def test_a_refused_call_has_its_row(books: Books) -> None:
    row = books.request()
    await books.store.record_refusal(row, RequestEnd("failed", 429, fault="rate_limited"))
    await books.store.record_refusal(row, RequestEnd("failed", 500, fault="internal"))
    shown = await books.store.request(row.id, None)
    assert shown is not None
    assert (shown["status"], shown["http_status"], shown["fault"]) == (
        "failed",
        429,
        "rate_limited",
    )
    assert shown["attempts"] == []
    (line,) = await books.store.usage(UsageQuery(by=("provider",)))
    assert (line["provider"], line["requests"], line["refused"]) == ("", 1, 1)


async def test_a_call_that_gives_up_between_attempts_frees_its_place(books: Books) -> None:
    ticket = await books.open(Limits(concurrent=1))
    await books.settle(ticket, last=False, status="failed")
    await books.store.record_refusal(
        books.request(id=ticket.request_id), RequestEnd("failed", 504, fault="deadline")
    )
    assert (await books.shown(ticket))["fault"] == "deadline"
    assert (await books.account())["in_flight"] == 0
    (line,) = await books.store.usage(UsageQuery(by=()))
    assert (line["requests"], line["refused"]) == (1, 0)


async def test_a_caller_that_leaves_while_a_row_is_opened_owes_nothing(books: Books) -> None:
    tasks = [asyncio.create_task(books.open(Limits(concurrent=50))) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await books.store.ready()
    account = await books.account()
    assert (account["in_flight"], account["reserved_nano"], account["total_nano"]) == (0, 0, 0)
    statuses = await books.sql("SELECT status, count(*) AS n FROM requests GROUP BY status")
    assert statuses == [{"status": "cancelled", "n": 20}]


async def test_a_settlement_is_written_though_its_caller_is_cancelled(books: Books) -> None:
    ticket = await books.open()
    task = asyncio.create_task(books.settle(ticket))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await books.store.ready()
    assert (await books.shown(ticket))["status"] == "completed"


async def test_a_lease_that_ran_out_is_charged_as_reserved(books: Books) -> None:
    lost = await books.open(nano=1000)
    kept = await books.open(nano=1000)
    books.clock.at += 59
    await books.store.renew([kept.attempt.id], books.clock.at + 60)
    assert await books.store.expire(books.clock.at) == 0
    books.clock.at += 2
    assert await books.store.expire(books.clock.at) == 1
    row = await books.shown(lost)
    attempt = row["attempts"][0]
    assert (row["status"], attempt["status"]) == ("interrupted", "interrupted")
    assert (attempt["usage_source"], attempt["charged_nano"]) == ("estimated", 1000)
    assert attempt["input_tokens"] is None
    account = await books.account()
    assert (account["reserved_nano"], account["total_nano"], account["in_flight"]) == (
        1000,
        1000,
        1,
    )
    await books.settle(lost)
    assert (await books.account())["total_nano"] == 1000, "one ending: too late is too late"
    await books.settle(kept)


async def test_a_crash_between_two_attempts_ends_the_call(books: Books) -> None:
    ticket = await books.open()
    await books.settle(ticket, last=False, status="failed")
    await books.crash()
    row = await books.shown(ticket)
    assert (row["status"], row["attempts"][0]["status"]) == ("interrupted", "failed")
    assert (await books.account())["in_flight"] == 0


async def test_a_doubled_id_spoils_no_other_call(books: Books) -> None:
    """One bad entry makes its group fail; each of the others is then written alone."""
    twice = books.request(id="req_twice")

    async def open_twice() -> None:
        row = books.attempt(twice.id)
        await books.store.open_attempt(books.opening(twice, row))

    await open_twice()
    results = await asyncio.gather(
        books.open(), open_twice(), books.open(), books.open(), return_exceptions=True
    )
    failed = [r for r in results if isinstance(r, BaseException)]
    assert [r.kind for r in failed if isinstance(r, Fault)] == ["store_unavailable"]
    assert len(failed) == 1
    account = await books.account()
    assert (account["in_flight"], account["reserved_nano"]) == (4, 4000)


async def test_what_can_never_be_written_stops_nobody(books: Books) -> None:
    """A number beyond 64 bits, a defect in a book: its caller is told, the others go on."""
    tickets = [await books.open() for _ in range(3)]
    results = await asyncio.gather(
        books.settle(tickets[0]),
        books.settle(tickets[1], input_tokens=2**70),
        books.store._db.write(lambda conn, entries: 1 / 0, None, "normal", must=True),
        books.settle(tickets[2]),
        return_exceptions=True,
    )
    kinds = [r.kind if isinstance(r, Fault) else r for r in results]
    assert kinds == [None, "store_unavailable", "store_unavailable", None]
    await books.store.ready()
    assert (await books.account())["reserved_nano"] == 1000, "until its lease runs out"
    assert await books.store.expire(books.clock.at + 61) == 1


async def test_keys_have_accounts_of_their_own(books: Books) -> None:
    limits = Limits(rpm=1)
    await books.open(limits, key_id="key_1")
    await books.open(limits, key_id="key_2")
    with pytest.raises(Fault):
        await books.open(limits, key_id="key_2")


async def test_after_close_the_store_says_so(url: str) -> None:
    async with Books(url) as books:
        await books.open()
    with pytest.raises(Fault) as fault:
        await books.open()
    assert fault.value.kind == "store_unavailable"
    with pytest.raises(Fault):
        await books.store.usage(UsageQuery())
