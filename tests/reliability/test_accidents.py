"""An accident within a call, a mistake of ours or a store that goes away: nothing stays open."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from adapters.canonical.events import Event
from adapters.canonical.faults import Fault
from gateway.flow.complete import complete
from gateway.flow.context import Head
from gateway.flow.meter import Meter
from tests.harness import Harness
from tests.reliability.test_settling import call_of

SAY_HI = [{"role": "user", "content": "hi"}]


class Broken:
    """A sink with a mistake in it."""

    def use(self, head: Head) -> None:
        pass

    async def send(self, events: list[Event]) -> None:
        raise KeyError("a mistake of ours")


async def away(*_: Any) -> None:
    raise Fault("store_unavailable", "away")


@pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
async def test_a_mistake_of_ours_leaves_no_row_open(
    g: Harness, books: Any, chat_body: Any, stream: bool
) -> None:
    with pytest.raises(KeyError):
        await complete(
            call_of(g, chat_body("slow" if stream else "m-openai", stream=stream)), Broken()
        )
    books.balanced(g)
    assert len(g.state.runtime.leases) == 0
    (row,) = books.rows("SELECT status, fault, http_status FROM requests")
    (attempt,) = books.rows("SELECT fault, usage_source FROM attempts")
    assert (row["fault"], row["http_status"], attempt["fault"]) == ("internal", 500, "internal")
    assert attempt["usage_source"] == ("estimated" if stream else "provider")


async def test_a_mistake_in_one_choice_ends_them_all(
    g: Harness, books: Any, chat_body: Any
) -> None:
    with pytest.raises(KeyError):
        await complete(call_of(g, chat_body("slow", n=3)), Broken())
    books.balanced(g)
    assert len(g.state.runtime.leases) == 0
    assert len(books.rows("SELECT id FROM attempts")) == 3
    assert books.rows("SELECT fault FROM requests") == [{"fault": "internal"}]
    others = [task for task in asyncio.all_tasks() if "_Choices" in repr(task)]
    assert not others, "every choice has ended"


async def test_choices_end_where_the_store_goes_away(
    g: Harness, books: Any, chat_body: Any, make_key: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One choice could not be written; the one that could waits for nobody."""
    store = type(g.state.store)
    opening = store.open_attempt

    async def second_fails(self: Any, wanted: Any) -> Any:
        if wanted.request is None:
            raise Fault("store_unavailable", "away")
        return await opening(self, wanted)

    monkeypatch.setattr(store, "open_attempt", second_fails)
    monkeypatch.setattr(store, "rates", away)
    key = await make_key(limits={"tpm": 1_000_000})
    answer = await g.post("/v1/chat/completions", chat_body("slow", n=2), key=key)
    assert answer.status == 503
    books.balanced(g)
    (row,) = books.rows("SELECT status, fault FROM requests")
    assert (row["status"], row["fault"]) == ("failed", "store_unavailable")


async def test_a_call_whose_retry_was_never_made_is_closed(
    g: Harness, books: Any, chat_body: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store went away in between: the call's own row is closed as soon as it is back."""
    store = type(g.state.store)
    settling = store.settle_attempt

    async def late(self: Any, settlement: Any) -> None:
        await settling(self, settlement)
        raise Fault("store_unavailable", "told after its patience, and written later")

    monkeypatch.setattr(store, "settle_attempt", late)
    answer = await g.post("/v1/chat/completions", chat_body("waiting", stream=False))
    assert answer.status == 503
    books.balanced(g)
    assert books.rows("SELECT fault FROM requests") == [{"fault": "store_unavailable"}]


@pytest.mark.parametrize("after", [0, 3], ids=["before any byte", "in mid-stream"])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses", "/v1/messages"])
async def test_a_stream_that_we_break_says_so(
    g: Harness, books: Any, monkeypatch: pytest.MonkeyPatch, after: int, path: str
) -> None:
    """In the protocol's own words, and never by an end that looks like the answer's."""
    seen = 0
    feed = Meter.feed

    def breaks(self: Meter, events: list[Event]) -> list[Event]:
        nonlocal seen
        seen += 1
        if seen > after:
            raise KeyError("a mistake of ours")
        return feed(self, events)

    monkeypatch.setattr(Meter, "feed", breaks)
    text = {"input": "hi"} if path.endswith("responses") else {"messages": SAY_HI}
    body = {"model": "slow", "stream": True, "max_tokens": 100, **text}
    if path.endswith("responses"):
        body["max_output_tokens"] = body.pop("max_tokens")
    answer = await g.post(path, body)
    assert b'"code":"internal"' in answer.body.replace(b'": "', b'":"')
    assert answer.status == (200 if after else 500)
    for end in (b"[DONE]", b"response.completed", b"message_stop"):
        assert end not in answer.body
    books.balanced(g)
