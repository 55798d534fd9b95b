"""The end of an attempt is written once, and says what really happened."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.canonical.events import Event
from adapters.canonical.faults import Fault
from gateway.flow.complete import complete
from gateway.flow.context import Call, Head
from gateway.flow.leases import SECONDS, Leases
from gateway.northbound.base import Limits
from gateway.northbound.openai_chat import CHAT
from tests.harness import KEY, Harness


class Stuck:
    """A sink whose caller reads nothing."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()

    def use(self, head: Head) -> None:
        pass

    async def send(self, events: list[Event]) -> None:
        self.reached.set()
        await asyncio.Event().wait()


def call_of(g: Harness, body: bytes) -> Call:
    runtime = g.state.runtime
    asked = CHAT.parse(body, {}, Limits(choices=8))
    (principal,) = (p for p in g.state.keyring.principals() if p.key_name == "caller")
    return Call(
        id=runtime.clock.new_id("req_"),
        principal=principal,
        request=asked.request,
        alias=runtime.snapshot.aliases[asked.request.model],
        runtime=runtime,
        started=runtime.clock.monotonic(),
        at=runtime.clock.wall(),
        size=len(body),
    )


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_leaving_after_the_proven_end_is_a_success(
    g: Harness, books: Any, chat_body: Any, eventually: Any, stream: bool
) -> None:
    """The provider's answer was whole and is paid for: what the caller does later is its own
    affair (case A04). A cancellation twice in a row changes nothing."""
    sink = Stuck()
    body = chat_body("quick-held", stream=stream)
    task = asyncio.create_task(complete(call_of(g, body), sink))
    await asyncio.wait_for(sink.reached.wait(), 5)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await eventually(lambda: not books.rows("SELECT id FROM requests WHERE status = 'open'"))
    books.balanced(g)
    (row,) = books.rows("SELECT * FROM requests")
    (attempt,) = books.rows("SELECT * FROM attempts")
    assert (row["status"], row["fault"]) == ("completed", None)
    assert (attempt["status"], attempt["usage_source"]) == ("completed", "provider")


async def test_a_try_that_lasts_keeps_its_lease(
    g: Harness, books: Any, chat_body: Any, eventually: Any
) -> None:
    """A slow reader may stretch a try beyond its lease: nobody may take it for a crash's."""
    leases, store = g.state.runtime.leases, g.state.store
    headers = {"authorization": f"Bearer {KEY}"}
    async with g.http.post(
        g.url + "/v1/chat/completions", data=chat_body("slow"), headers=headers
    ) as reply:
        await reply.content.readany()
        (attempt,) = books.rows("SELECT id, lease_until FROM attempts")
        assert len(leases) == 1
        soon = attempt["lease_until"] - 10
        await leases.keep(store, soon)
        (renewed,) = books.rows("SELECT lease_until FROM attempts")
        assert renewed["lease_until"] == soon + SECONDS > attempt["lease_until"]
        await leases.keep(store, attempt["lease_until"] + 5)
        assert books.rows("SELECT status FROM attempts") == [{"status": "open"}]
    await eventually(lambda: not g.state.live)
    assert len(leases) == 0


async def test_a_row_that_nobody_keeps_is_settled(
    g: Harness, books: Any, chat_body: Any, eventually: Any
) -> None:
    """As of a replica that died."""
    headers = {"authorization": f"Bearer {KEY}"}
    async with g.http.post(
        g.url + "/v1/chat/completions", data=chat_body("slow"), headers=headers
    ) as reply:
        await reply.content.readany()
        (attempt,) = books.rows("SELECT lease_until FROM attempts")
        await Leases().keep(g.state.store, attempt["lease_until"] + 1)
        assert books.rows("SELECT status FROM attempts") == [{"status": "interrupted"}]
    await eventually(lambda: not g.state.live)
    assert books.rows("SELECT status FROM attempts") == [{"status": "interrupted"}]
    books.balanced(g)


async def test_a_call_that_waits_for_its_provider_is_not_taken_for_a_dead_one(
    g: Harness, books: Any, chat_body: Any, eventually: Any
) -> None:
    """However long the pause before the next try is: the call's own lease covers it."""
    call = asyncio.create_task(g.post("/v1/chat/completions", chat_body("patient")))
    await eventually(lambda: books.rows("SELECT id FROM attempts WHERE status = 'failed'"))
    (row,) = books.rows("SELECT lease_until, ended_at FROM attempts")
    await g.state.store.expire(row["ended_at"] + 405)
    assert books.rows("SELECT status FROM requests") == [{"status": "open"}]
    await g.state.store.expire(row["ended_at"] + 600)
    assert books.rows("SELECT status FROM requests") == [{"status": "interrupted"}]
    call.cancel()
    await eventually(lambda: not g.state.live)
    books.balanced(g)


@pytest.mark.parametrize("model", ["slow", "waiting"], ids=["in a try", "between two"])
async def test_a_cancellation_stays_one_though_the_store_is_away(
    g: Harness, chat_body: Any, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    """The store owes the row and writes it when it can; the task ends as it was told."""

    async def away(*_: Any) -> None:
        raise Fault("store_unavailable", "away")

    task = asyncio.create_task(complete(call_of(g, chat_body(model)), Stuck()))
    await g.simulator.log.wait_for(1)
    await asyncio.sleep(0.1)
    monkeypatch.setattr(type(g.state.store), "settle_attempt", away)
    monkeypatch.setattr(type(g.state.store), "record_refusal", away)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
