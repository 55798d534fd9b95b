"""Callers that leave, at every moment of a call: the provider's socket closes, the row is settled
once, nothing stays reserved (promises 7 and 8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from tests.harness import KEY, Harness

AUTH = {"authorization": f"Bearer {KEY}"}
CEILING = 2.0
"""Seconds within which the provider must see the close; about a millisecond is usual."""

MOMENTS = [
    ("before any byte of the provider's", "silent", True, False),
    ("before any byte, whole", "silent", False, False),
    ("before the first token", "mute", True, False),
    ("in mid-stream", "slow", True, True),
    ("in a stall in mid-stream", "stuck", True, True),
    ("in a whole body", "slow", False, False),
    ("in a held stream", "held", True, False),
]


async def leave(g: Harness, body: bytes, *, after_bytes: bool, path: str) -> None:
    """Call, wait for content if there is to be some, and hang up."""
    asking = asyncio.create_task(g.http.post(g.url + path, data=body, headers=AUTH))
    if after_bytes:
        reply = await asking
        await reply.content.readany()
        await asyncio.sleep(0.1)
        reply.close()
        return
    await g.simulator.log.wait_for(1)
    await asyncio.sleep(0.1)
    if asking.done():
        (await asking).close()
    else:
        asking.cancel()


@pytest.mark.parametrize(
    ("model", "stream", "content"), [m[1:] for m in MOMENTS], ids=[m[0] for m in MOMENTS]
)
async def test_leaving(
    g: Harness, books: Any, eventually: Any, chat_body: Any, model: str, stream: bool, content: bool
) -> None:
    body = chat_body(model, stream=stream)
    await leave(g, body, after_bytes=content, path="/v1/chat/completions")
    seen = g.simulator.log[0]
    assert await eventually(lambda: seen.disconnected is not None, CEILING) < CEILING
    await eventually(lambda: not g.state.live)
    books.balanced(g)
    (row,) = books.rows("SELECT * FROM requests")
    (attempt,) = books.rows("SELECT * FROM attempts")
    assert row["fault"] == attempt["fault"] == "cancelled"
    assert attempt["usage_source"] == "estimated", "the provider has worked on it"
    assert row["status"] == ("partial" if content else "cancelled")
    assert not content or attempt["output_tokens"] > 0


async def test_leaving_between_two_attempts(
    g: Harness, books: Any, eventually: Any, chat_body: Any
) -> None:
    """No attempt is open then; the call itself still is."""
    await leave(g, chat_body("waiting"), after_bytes=False, path="/v1/chat/completions")
    await eventually(lambda: not g.state.live, CEILING)
    books.balanced(g)
    (row,) = books.rows("SELECT * FROM requests")
    assert (row["status"], row["fault"], row["attempt_count"]) == ("cancelled", "cancelled", 1)
    await asyncio.sleep(0.3)
    assert g.simulator.log.total == 1


async def test_many_leave_at_once(g: Harness, books: Any, eventually: Any, chat_body: Any) -> None:
    """Every connection comes back to the pool's count, whatever the moment of the leave."""

    async def one(number: int) -> None:
        model = ("silent", "mute", "slow", "held")[number % 4]
        data = chat_body(model, stream=number % 3 > 0)
        call = asyncio.create_task(
            g.http.post(g.url + "/v1/chat/completions", data=data, headers=AUTH)
        )
        await asyncio.sleep(0.01 * (number % 17))
        if call.done():
            (await call).close()
        call.cancel()

    await asyncio.gather(*(one(number) for number in range(60)))
    await eventually(lambda: not g.state.live)
    books_open = "SELECT id FROM requests WHERE status = 'open'"
    await eventually(lambda: not books.rows(books_open))
    books.balanced(g)
    adapter = g.state.runtime.adapters["openai"]
    await eventually(lambda: adapter.transport.active == 0)
    assert (await g.chat("m-openai")).status == 200


async def test_told_to_stop_while_the_caller_leaves(
    g: Harness, books: Any, eventually: Any, chat_body: Any
) -> None:
    """Two cancellations in a row settle once."""
    call = asyncio.create_task(
        g.http.post(g.url + "/v1/chat/completions", data=chat_body("mute"), headers=AUTH)
    )
    await g.simulator.log.wait_for(1)
    await asyncio.sleep(0.05)
    call.cancel()
    for exchange in list(g.state.live):
        exchange.stop(Fault("no_deployment", "stopping", code="shutting_down"))
    await eventually(lambda: not g.state.live)
    books.balanced(g)
    assert len(books.rows("SELECT * FROM attempts")) == 1


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"model": "slow", "input": "hi", "stream": True}),
        (
            "/v1/messages",
            {
                "model": "slow",
                "max_tokens": 1000,
                "messages": [{"role": "user", "content": "hi"}],
                "stream": True,
            },
        ),
    ],
)
async def test_the_other_protocols_close_too(
    g: Harness, books: Any, eventually: Callable[..., Any], path: str, body: Any
) -> None:
    async with g.http.post(g.url + path, json=body, headers=AUTH) as reply:
        await reply.content.readany()
        reply.close()
    seen = g.simulator.log[0]
    await eventually(lambda: seen.disconnected is not None, CEILING)
    await eventually(lambda: not g.state.live)
    books.balanced(g)
