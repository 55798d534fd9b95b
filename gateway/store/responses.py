"""Responses and conversations that callers had kept: what the rest of the house may ask of them.

A response holds its own input and output items and names the one that it continues; responses
that continue each other are one thread, which is kept or goes as a whole. A conversation is a
list of items that responses add to. Everything here is content at rest, and belongs to one
project: an id of another project is simply not found. Must not know what an item holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from adapters.canonical.record import record
from adapters.wire.json import dumps, loads

Direction = Literal["input", "output", "conversation"]

MAX_CHAIN = 1_000
"""Responses that one may continue, one after the other."""
MAX_ITEMS = 10_000
"""Items of one conversation."""

RESPONSE = ["id", "project", "thread", "previous", "conversation", "at", "end_user", "body"]
ITEM = ["owner", "direction", "place", "id", "project", "item"]
CONVERSATION = ["id", "project", "created_at", "used_at", "metadata"]
"""Columns that are written when each comes into being."""


class Item(NamedTuple):
    """One item as it was given or made, and the id under which callers find it."""

    id: str
    data: Mapping[str, Any]


@record(frozen=True, slots=True)
class KeptResponse:
    """One response. ``body`` is the response object with an empty ``output``.

    ``thread`` is the id of the thread's first response, its own for one that continues none.
    ``conversation`` is the one that it joined.
    """

    id: str
    project: str
    thread: str
    at: float
    body: Mapping[str, Any]
    input: Sequence[Item]
    output: Sequence[Item]
    previous: str | None = None
    conversation: str | None = None
    end_user: str | None = None


@record(frozen=True, slots=True)
class Chain:
    """A response with all that it continues.

    ``earlier`` are the items of the responses before it, oldest first, each one's input before
    its output; ``size`` is the JSON text of all the items, its own too, in bytes. ``whole`` is
    false where a response that it continues is kept no more.
    """

    last: KeptResponse
    earlier: Sequence[Item]
    size: int
    whole: bool


@record(frozen=True, slots=True)
class Conversation:
    """A conversation apart from its items. ``used_at`` is when it last grew, for retention."""

    id: str
    project: str
    created_at: float
    used_at: float
    metadata: Mapping[str, Any]


@record(frozen=True, slots=True)
class Addition:
    """Items for the end of a conversation. ``holder`` is the call that holds it, if one does,
    and lets go with this."""

    conversation: str
    project: str
    items: Sequence[Item]
    at: float
    holder: str | None = None


class ResponseBook(Protocol):
    """The part of the store that keeps responses; each write is one transaction."""

    async def keep_response(self, kept: KeptResponse, addition: Addition | None = None) -> None:
        """Insert a response, once; its thread counts as used now. With an ``addition``, the
        conversation that it joined grows with it, if it is still there."""
        ...

    async def chain(self, project: str, response_id: str) -> Chain | None:
        """A response with what came before it, at most :data:`MAX_CHAIN` responses."""
        ...

    async def drop_response(self, project: str, response_id: str) -> bool:
        """Delete one response with its items; whether it was there."""
        ...

    async def items(self, project: str, ids: Sequence[str]) -> Mapping[str, Item]:
        """An item of each id that is known, of whatever response or conversation."""
        ...

    async def add_conversation(self, row: Conversation, items: Sequence[Item]) -> None: ...

    async def conversation(self, project: str, conversation_id: str) -> Conversation | None: ...

    async def set_metadata(
        self, project: str, conversation_id: str, metadata: Mapping[str, Any]
    ) -> bool: ...

    async def drop_conversation(self, project: str, conversation_id: str) -> bool:
        """Delete a conversation with its items; responses that joined it stay."""
        ...

    async def conversation_items(self, project: str, conversation_id: str) -> Sequence[Item]:
        """All of them, oldest first; none for an unknown conversation."""
        ...

    async def add_items(self, addition: Addition) -> bool:
        """Whether the conversation is still there.

        :raises Fault: ``too_large`` beyond :data:`MAX_ITEMS`; then nothing was added.
        """
        ...

    async def drop_item(self, project: str, conversation_id: str, item_id: str) -> bool: ...

    async def hold_conversation(
        self, project: str, conversation_id: str, holder: str, now: float, until: float
    ) -> bool:
        """Take a conversation for one call, so that no other adds to it meanwhile.

        False where another call holds it, or it is not there. A hold ends with
        :meth:`release_conversation`, with :class:`Addition`, or at ``until``.
        """
        ...

    async def release_conversation(self, conversation_id: str, holder: str) -> None: ...


def response_values(kept: KeptResponse) -> tuple[Any, ...]:
    """The values of :data:`RESPONSE`."""
    return (
        kept.id,
        kept.project,
        kept.thread,
        kept.previous,
        kept.conversation,
        kept.at,
        kept.end_user,
        dumps(kept.body).decode(),
    )


def item_values(
    owner: str, direction: Direction, project: str, items: Sequence[Item]
) -> list[tuple[Any, ...]]:
    """The values of :data:`ITEM` for each of ``items``."""
    return [
        (owner, direction, place, item.id, project, dumps(item.data).decode())
        for place, item in enumerate(items)
    ]


def item_row(row: Mapping[str, Any]) -> Item:
    """The item that :func:`item_values` wrote."""
    return Item(row["id"], loads(row["item"]))


def conversation_values(row: Conversation) -> tuple[Any, ...]:
    """The values of :data:`CONVERSATION`."""
    metadata = dumps(row.metadata).decode()
    return row.id, row.project, row.created_at, row.used_at, metadata


def conversation_row(row: Mapping[str, Any]) -> Conversation:
    """The conversation that :func:`conversation_values` wrote."""
    return Conversation(**{**row, "metadata": loads(row["metadata"])})


def chain_of(rows: Sequence[Mapping[str, Any]], items: Sequence[Mapping[str, Any]]) -> Chain:
    """A chain from its rows.

    :param rows: :data:`RESPONSE`, the newest first.
    :param items: ``owner``, ``direction``, ``id`` and ``item``, in their order within each owner
        and direction.
    """
    owned: dict[tuple[str, str], list[Item]] = {}
    for row in items:
        owned.setdefault((row["owner"], row["direction"]), []).append(item_row(row))
    earlier: list[Item] = []
    for row in reversed(rows[1:]):
        earlier += owned.get((row["id"], "input"), ())
        earlier += owned.get((row["id"], "output"), ())
    newest = rows[0]
    last = KeptResponse(
        **{**newest, "body": loads(newest["body"])},
        input=owned.get((newest["id"], "input"), ()),
        output=owned.get((newest["id"], "output"), ()),
    )
    size = sum(len(row["item"].encode()) for row in items)
    return Chain(last, earlier, size, whole=rows[-1]["previous"] is None)
