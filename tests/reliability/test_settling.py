"""The end of an attempt is written once, and says what really happened."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.canonical.events import Event
from gateway.flow.complete import complete
from gateway.flow.context import Call, Head
from gateway.northbound.openai_chat import CHAT
from tests.harness import Harness


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
    asked = CHAT.parse(body, {})
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
    g: Harness, books: Any, chat_body: Any, stream: bool
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
    await asyncio.sleep(0.1)
    books.balanced(g)
    (row,) = books.rows("SELECT * FROM requests")
    (attempt,) = books.rows("SELECT * FROM attempts")
    assert (row["status"], row["fault"]) == ("completed", None)
    assert (attempt["status"], attempt["usage_source"]) == ("completed", "provider")
