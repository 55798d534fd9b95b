"""Kept responses and conversations, in both databases."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.store import Store
from gateway.store import responses as kept
from gateway.store.responses import Addition, Conversation, Item, KeptResponse
from tests.store.booking import Books

DAY = 86_400.0


def items(*texts: str) -> list[Item]:
    return [Item(f"msg_{text}", {"role": "user", "content": text}) for text in texts]


def response(name: str, previous: str | None = None, **fields: Any) -> KeptResponse:
    about: dict[str, Any] = {"project": "p", "thread": previous or name, "at": 1_000.0, **fields}
    said = {"input": items(f"{name}-in"), "output": items(f"{name}-out")}
    return KeptResponse(
        id=name, body={"id": name, "output": []}, previous=previous, **said, **about
    )


@pytest.fixture
def store(books: Books) -> Store:
    return books.store


async def texts(store: Store, conversation: str = "c") -> list[str]:
    return [item.data["content"] for item in await store.conversation_items("p", conversation)]


async def test_a_chain_is_told_oldest_first(store: Store) -> None:
    await store.keep_response(response("r1"))
    await store.keep_response(response("r2", "r1"))
    await store.keep_response(response("r3", "r2", thread="r1"))
    chain = await store.chain("p", "r3")
    assert chain is not None
    assert [i.data["content"] for i in chain.earlier] == ["r1-in", "r1-out", "r2-in", "r2-out"]
    assert (chain.last, chain.whole) == (response("r3", "r2", thread="r1"), True)
    assert chain.size > 6 * len('{"role":"user","content":"r1-in"}')


async def test_a_response_is_kept_once(store: Store) -> None:
    """By its maker and by who continues it; each has made up ids of his own for its items."""
    for number in range(2):
        kept_now = replace(response("r1"), output=[Item(f"msg_{number}", {"content": "x"})])
        await store.keep_response(kept_now, Addition("c", "p", kept_now.output, 5.0))
        if number == 0:
            await store.add_conversation(Conversation("c", "p", 5.0, 5.0, {}), [])
    chain = await store.chain("p", "r1")
    assert chain is not None
    assert [item.id for item in chain.last.output] == ["msg_0"]
    assert await store.conversation_items("p", "c") == []


async def test_a_chain_with_a_hole_says_so(store: Store) -> None:
    for name, previous in (("r1", None), ("r2", "r1"), ("r3", "r2")):
        await store.keep_response(response(name, previous, thread="r1"))
    assert await store.drop_response("p", "r1")
    assert not await store.drop_response("p", "r1")
    chain = await store.chain("p", "r3")
    assert chain is not None
    assert not chain.whole
    assert not await store.items("p", ["msg_r1-in"])


async def test_every_question_names_its_project(store: Store) -> None:
    await store.keep_response(response("r1"))
    await store.add_conversation(Conversation("c", "p", 1.0, 1.0, {"k": "v"}), items("a"))
    assert await store.chain("other", "r1") is None
    assert not await store.drop_response("other", "r1")
    assert await store.items("other", ["msg_a", "msg_r1-in"]) == {}
    assert await store.conversation("other", "c") is None
    assert await store.conversation_items("other", "c") == []
    assert not await store.set_metadata("other", "c", {})
    assert not await store.add_items(Addition("c", "other", items("b"), 2.0))
    assert not await store.drop_item("other", "c", "msg_a")
    assert not await store.hold_conversation("other", "c", "me", 1.0, 2.0)
    assert not await store.drop_conversation("other", "c")
    # A chain never crosses over, whatever a row says.
    await store.keep_response(response("r2", "r1", project="other", thread="r2"))
    chain = await store.chain("other", "r2")
    assert chain is not None
    assert (len(chain.earlier), chain.whole) == (0, False)
    assert await texts(store) == ["a"]


async def test_a_conversation_grows_at_its_end(store: Store) -> None:
    await store.add_conversation(Conversation("c", "p", 1.0, 1.0, {}), items("a", "b"))
    assert await store.add_items(Addition("c", "p", items("c", "d"), 2.0))
    assert await store.drop_item("p", "c", "msg_d")
    assert not await store.drop_item("p", "c", "msg_d")
    await asyncio.gather(
        *(store.add_items(Addition("c", "p", items(f"{n}x", f"{n}y"), 3.0)) for n in range(8))
    )
    found = await texts(store)
    assert found[:3] == ["a", "b", "c"]
    added = found[3:]
    assert all(x[:-1] == y[:-1] for x, y in zip(added[::2], added[1::2], strict=True))
    row = await store.conversation("p", "c")
    assert row is not None
    assert row.used_at == 3.0


async def test_a_conversation_has_a_bound(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    await store.add_conversation(Conversation("c", "p", 1.0, 1.0, {}), [])
    many = [Item(f"i{n}", {}) for n in range(kept.MAX_ITEMS)]
    assert await store.add_items(Addition("c", "p", many, 2.0))
    with pytest.raises(Fault, match="at most") as caught:
        await store.add_items(Addition("c", "p", items("one too many"), 2.0))
    assert caught.value.kind == "too_large"


async def test_a_response_and_its_conversation_are_written_together(store: Store) -> None:
    await store.add_conversation(Conversation("c", "p", 1.0, 1.0, {}), items("a"))
    joined = response("r1", conversation="c")
    await store.keep_response(joined, Addition("c", "p", [*joined.input, *joined.output], 5.0))
    assert await texts(store) == ["a", "r1-in", "r1-out"]
    await store.drop_conversation("p", "c")
    late = response("r2", conversation="c")
    await store.keep_response(late, Addition("c", "p", [*late.input, *late.output], 6.0))
    assert await store.chain("p", "r2") is not None
    assert await store.conversation_items("p", "c") == []


async def test_one_call_holds_a_conversation(store: Store) -> None:
    await store.add_conversation(Conversation("c", "p", 1.0, 1.0, {}), [])
    held = await asyncio.gather(
        *(store.hold_conversation("p", "c", f"h{n}", 10.0, 20.0) for n in range(8))
    )
    assert sum(held) == 1
    holder = f"h{held.index(True)}"
    await store.release_conversation("c", "someone else")
    assert not await store.hold_conversation("p", "c", "late", 11.0, 20.0)
    # A crash never lets go: the hold ends by itself.
    assert await store.hold_conversation("p", "c", "later", 20.0, 30.0)
    await store.add_items(Addition("c", "p", items("a"), 21.0, holder="later"))
    assert await store.hold_conversation("p", "c", holder, 22.0, 30.0)
    await store.release_conversation("c", holder)
    assert await store.hold_conversation("p", "c", "next", 23.0, 30.0)


async def test_the_sweep_takes_threads_whole(store: Store) -> None:
    await store.keep_response(response("old", at=0.0))
    await store.keep_response(response("r1", at=0.0))
    await store.keep_response(response("r2", "r1", at=20 * DAY))
    await store.add_conversation(Conversation("c", "p", 0.0, 0.0, {}), items("a"))
    swept = await store.sweep(40 * DAY, {"responses": 30, "conversations": 30})
    assert (swept["responses"], swept["conversations"]) == (1, 1)
    assert await store.chain("p", "old") is None
    assert await store.conversation("p", "c") is None
    chain = await store.chain("p", "r2")
    assert chain is not None
    assert chain.whole


EVERYBODY = ["alone", "elsewhere", "his", "his-joined", "on", "with-him"]
FORGOTTEN: tuple[tuple[dict[str, str], list[str], list[str]], ...] = (
    ({"end_user": "u1"}, ["alone", "elsewhere"], ["d"]),
    ({"project": "p"}, ["elsewhere"], []),
    ({"project": "q"}, [name for name in EVERYBODY if name != "elsewhere"], ["c", "d"]),
    ({"project": "q", "end_user": "u1"}, EVERYBODY, ["c", "d"]),
    ({}, EVERYBODY, ["c", "d"]),
)


@pytest.mark.parametrize(("asked", "responses", "conversations"), FORGOTTEN)
async def test_forgetting(
    store: Store, asked: dict[str, str], responses: list[str], conversations: list[str]
) -> None:
    rows = [
        response("alone", end_user="u2"),
        response("elsewhere", project="q", end_user="u2"),
        response("his", end_user="u1"),
        response("on", "his"),
        response("his-joined", conversation="c", end_user="u1"),
        response("with-him", conversation="c", end_user="u2"),
    ]
    for conversation in ("c", "d"):
        await store.add_conversation(Conversation(conversation, "p", 1.0, 1.0, {}), items("x"))
    for row in rows:
        await store.keep_response(row)
    await store.forget(**asked)
    left = [row.id for row in rows if await store.chain(row.project, row.id) is not None]
    assert sorted(left) == responses
    assert [c for c in ("c", "d") if await store.conversation("p", c) is not None] == conversations
