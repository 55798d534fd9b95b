"""Kept responses and conversations.

Every write is a :data:`Script`, so that the twins need to know only how to run one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adapters.canonical.faults import Fault
from adapters.wire.json import dumps
from gateway.store import responses as kept
from gateway.store.books import Apply, Database
from gateway.store.jobs import Durability
from gateway.store.responses import Addition, Chain, Conversation, Item, KeptResponse
from gateway.store.sql import columns, insert

Script = Sequence[tuple[str, Sequence[Sequence[Any]]]]
"""Statements, each with the values that it is run for; the first one is run once. Where that
meets no row, nothing more is run; the answer is whether it did."""

_COLUMNS = columns(kept.RESPONSE)
_CHAIN = f"""
    WITH RECURSIVE chain (place, {_COLUMNS}) AS (
        SELECT 0, {_COLUMNS} FROM responses WHERE id = ? AND project = ?
        UNION ALL
        SELECT c.place + 1, {columns(["r." + name for name in kept.RESPONSE])}
        FROM chain AS c JOIN responses AS r ON r.id = c.previous AND r.project = c.project
        WHERE c.place < {kept.MAX_CHAIN - 1})
    SELECT {_COLUMNS} FROM chain ORDER BY place"""  # noqa: S608
_OWNED = """SELECT owner, direction, id, item FROM items WHERE owner IN ({marks})
    ORDER BY owner, direction, place"""
_NAMED = "SELECT id, item FROM items WHERE project = ? AND id IN ({marks})"
_CONVERSATION = f"SELECT {columns(kept.CONVERSATION)} FROM conversations"  # noqa: S608
_LISTED = """SELECT id, item FROM items
    WHERE owner = ? AND direction = 'conversation' AND project = ? ORDER BY place"""

_USE_THREAD = """INSERT INTO threads (id, project, used_at)
    SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS DOUBLE PRECISION)
    WHERE NOT EXISTS (SELECT 1 FROM responses WHERE id = ?)
    ON CONFLICT (id) DO UPDATE SET used_at = excluded.used_at"""
_ADD_RESPONSE = insert("responses", kept.RESPONSE)
_ADD_ITEM = insert("items", kept.ITEM)
_DROP_RESPONSE = "DELETE FROM responses WHERE id = ? AND project = ?"
_DROP_OWNED = "DELETE FROM items WHERE owner = ?"

_ADD_CONVERSATION = insert("conversations", kept.CONVERSATION)
_GROW = f"""UPDATE conversations SET used_at = ?,
    held_by = CASE WHEN held_by = ? THEN NULL ELSE held_by END
    WHERE id = ? AND project = ? AND ? + (SELECT count(*) FROM items AS i
        WHERE i.owner = conversations.id AND i.direction = 'conversation') <= {kept.MAX_ITEMS}"""  # noqa: S608
_APPEND = """INSERT INTO items (owner, direction, place, id, project, item)
    SELECT CAST(? AS TEXT), 'conversation', coalesce(max(place) + 1, 0), CAST(? AS TEXT),
           CAST(? AS TEXT), CAST(? AS TEXT)
    FROM items WHERE owner = ? AND direction = 'conversation'
    HAVING EXISTS (SELECT 1 FROM conversations WHERE id = ? AND project = ?)"""
_SET_METADATA = "UPDATE conversations SET metadata = ? WHERE id = ? AND project = ?"
_DROP_CONVERSATION = "DELETE FROM conversations WHERE id = ? AND project = ?"
_DROP_ITEM = """DELETE FROM items
    WHERE owner = ? AND direction = 'conversation' AND project = ? AND id = ?"""
_HOLD = """UPDATE conversations SET held_by = ?, held_until = ?
    WHERE id = ? AND project = ? AND (held_by IS NULL OR held_until <= ?)"""
_RELEASE = "UPDATE conversations SET held_by = NULL WHERE id = ? AND held_by = ?"

OLD_THREADS = "SELECT id FROM threads WHERE used_at < ? LIMIT ?"
OLD_CONVERSATIONS = "SELECT id FROM conversations WHERE used_at < ? LIMIT ?"
DELETE_THREAD = (
    "DELETE FROM items WHERE owner IN (SELECT id FROM responses WHERE thread = ?)",
    "DELETE FROM responses WHERE thread = ?",
    "DELETE FROM threads WHERE id = ?",
)
DELETE_CONVERSATION = (_DROP_OWNED, "DELETE FROM conversations WHERE id = ?")
"""Each run with the id."""

_HIS = "SELECT thread FROM responses WHERE end_user = ?"
_JOINED = "SELECT conversation FROM responses WHERE end_user = ?"
_WITH_HIM = f"SELECT thread FROM responses WHERE conversation IN ({_JOINED})"  # noqa: S608
_PROJECT = {"project": "project = ?"}

FORGETTING: Sequence[tuple[str, Mapping[str, str], Sequence[str]]] = (
    (
        "SELECT id FROM conversations WHERE 1 = 1",
        {**_PROJECT, "end_user": f"id IN ({_JOINED})"},
        DELETE_CONVERSATION,
    ),
    (
        "SELECT id FROM threads WHERE 1 = 1",
        {**_PROJECT, "end_user": f"id IN ({_WITH_HIM}) AND id NOT IN ({_HIS})"},
        DELETE_THREAD,
    ),
    (
        "SELECT id FROM threads WHERE 1 = 1",
        {**_PROJECT, "end_user": f"id IN ({_HIS})"},
        DELETE_THREAD,
    ),
)
"""What a project or an end user had kept: a query, the conditions by what is asked for, the
deletions. Threads and conversations in which the end user took part go whole, because what
follows repeats it; his own go last, because it is they that tell of the others."""


class ResponsesBook:
    """See :class:`gateway.store.responses.ResponseBook`."""

    _db: Database
    _durability: Durability

    run_script: Apply
    """Takes a :data:`Script`."""

    async def keep_response(self, row: KeptResponse, addition: Addition | None = None) -> None:
        owned = [
            *kept.item_values(row.id, "input", row.project, row.input),
            *kept.item_values(row.id, "output", row.project, row.output),
        ]
        script: Script = (
            (_USE_THREAD, [(row.thread, row.project, row.at, row.id)]),
            (_ADD_RESPONSE, [kept.response_values(row)]),
            (_ADD_ITEM, owned),
            *(() if addition is None else _growth(addition)),
        )
        await self._write(script, self._durability)

    async def chain(self, project: str, response_id: str) -> Chain | None:
        rows = await self._db.read(_CHAIN, (response_id, project))
        if not rows:
            return None
        owners = [row["id"] for row in rows]
        return kept.chain_of(rows, await self._db.read(_marked(_OWNED, owners), owners))

    async def drop_response(self, project: str, response_id: str) -> bool:
        return await self._write(
            ((_DROP_RESPONSE, [(response_id, project)]), (_DROP_OWNED, [(response_id,)])), "full"
        )

    async def items(self, project: str, ids: Sequence[str]) -> Mapping[str, Item]:
        rows = await self._db.read(_marked(_NAMED, ids), (project, *ids)) if ids else []
        return {row["id"]: kept.item_row(row) for row in rows}

    async def add_conversation(self, row: Conversation, items: Sequence[Item]) -> None:
        script: Script = (
            (_ADD_CONVERSATION, [kept.conversation_values(row)]),
            (_ADD_ITEM, kept.item_values(row.id, "conversation", row.project, items)),
        )
        await self._write(script, self._durability)

    async def conversation(self, project: str, conversation_id: str) -> Conversation | None:
        rows = await self._db.read(
            f"{_CONVERSATION} WHERE id = ? AND project = ?", (conversation_id, project)
        )
        return kept.conversation_row(rows[0]) if rows else None

    async def set_metadata(
        self, project: str, conversation_id: str, metadata: Mapping[str, Any]
    ) -> bool:
        values = (dumps(metadata).decode(), conversation_id, project)
        return await self._write(((_SET_METADATA, [values]),), self._durability)

    async def drop_conversation(self, project: str, conversation_id: str) -> bool:
        script: Script = (
            (_DROP_CONVERSATION, [(conversation_id, project)]),
            (_DROP_OWNED, [(conversation_id,)]),
        )
        return await self._write(script, "full")

    async def conversation_items(self, project: str, conversation_id: str) -> Sequence[Item]:
        rows = await self._db.read(_LISTED, (conversation_id, project))
        return [kept.item_row(row) for row in rows]

    async def add_items(self, addition: Addition) -> bool:
        if await self._write(_growth(addition), self._durability):
            return True
        if await self.conversation(addition.project, addition.conversation) is None:
            return False
        raise Fault(
            "too_large",
            f"A conversation holds at most {kept.MAX_ITEMS} items. Delete some, or begin another.",
            param="conversation",
        )

    async def drop_item(self, project: str, conversation_id: str, item_id: str) -> bool:
        return await self._write(((_DROP_ITEM, [(conversation_id, project, item_id)]),), "full")

    async def hold_conversation(
        self, project: str, conversation_id: str, holder: str, now: float, until: float
    ) -> bool:
        values = (holder, until, conversation_id, project, now)
        return await self._write(((_HOLD, [values]),), "normal")

    async def release_conversation(self, conversation_id: str, holder: str) -> None:
        await self._write(((_RELEASE, [(conversation_id, holder)]),), "normal")

    async def _write(self, script: Script, durability: Durability) -> bool:
        met: bool = await self._db.write(self.run_script, script, durability)
        return met


def _growth(addition: Addition) -> Script:
    owner, project, items = addition.conversation, addition.project, addition.items
    grow = (addition.at, addition.holder, owner, project, len(items))
    rows = [
        (owner, item.id, project, dumps(item.data).decode(), owner, owner, project)
        for item in items
    ]
    return ((_GROW, [grow]), (_APPEND, rows))


def _marked(statement: str, values: Sequence[str]) -> str:
    """``statement`` with a ``?`` for each of ``values``."""
    return statement.format(marks=columns("?" * len(values)))
