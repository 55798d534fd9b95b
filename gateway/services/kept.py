"""Kept responses and conversations as their own endpoints show and change them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from adapters.canonical.faults import Fault
from gateway.northbound import conversations as shapes
from gateway.northbound.conversations import Json, Page
from gateway.northbound.openai_responses.kept import listed, prefix
from gateway.northbound.openai_responses.replay import replayed
from gateway.policy.auth import Principal
from gateway.services.background import Background
from gateway.services.responses import as_item, unknown_conversation
from gateway.services.state import State
from gateway.store.responses import Addition, Conversation, Item


class KeptResponses:
    """The responses of one caller's project."""

    def __init__(self, state: State, principal: Principal) -> None:
        self._store = state.store
        self._project = principal.project
        self.background = Background(state.runs, state.store, principal)

    async def get(self, response_id: str) -> Json:
        """The response object as it was told, or as it stands while it is made.

        :raises Fault: ``not_found``.
        """
        chain = await self._store.chain(self._project, response_id)
        if chain is None:
            row = await self.background.find(response_id)
            if row is None:
                raise _unknown_response()
            return await self.background.shown(row)
        return {**chain.last.body, "output": [item.data for item in chain.last.output]}

    async def cancel(self, response_id: str) -> Json:
        """Cancel a response that is made in the background.

        :raises Fault: ``not_found``, or ``bad_request`` for one that is not.
        """
        cancelled = await self.background.cancel(response_id)
        if cancelled is None:
            await self.get(response_id)
            raise Fault(
                "bad_request",
                "Only a response with `background: true` can be cancelled. To end a stream, "
                "close it.",
                param="response_id",
            )
        return cancelled

    async def stream(self, response_id: str, starting_after: int | None) -> bytes:
        """The same as server-sent events.

        :raises Fault: ``not_found``, or ``bad_request`` for a number beyond the stream.
        """
        return replayed(await self.get(response_id), starting_after)

    async def input_items(self, response_id: str, page: Page) -> Json:
        """What the response was made from, what it continues included.

        :raises Fault: ``not_found``, or ``bad_request`` for an unknown ``after``.
        """
        chain = await self._store.chain(self._project, response_id)
        if chain is not None:
            return shapes.item_list(_listed((*chain.earlier, *chain.last.input)), page)
        row = await self.background.find(response_id)
        if row is None:
            raise _unknown_response()
        return shapes.item_list(_listed(await self.background.input_items(row)), page)

    async def delete(self, response_id: str) -> Json:
        """Delete a response; what continues it can't be continued any more.

        :raises Fault: ``not_found``.
        """
        was_run = await self.background.delete(response_id)
        if not await self._store.drop_response(self._project, response_id) and not was_run:
            raise _unknown_response()
        return shapes.deleted_object(response_id, "response")


class Conversations:
    """The conversations of one caller's project. Every method raises ``not_found``."""

    def __init__(self, state: State, principal: Principal) -> None:
        self._store = state.store
        self._clock = state.runtime.clock
        self._project = principal.project

    async def create(self, items: Sequence[Json], metadata: Json) -> Json:
        """Begin a conversation."""
        now = self._clock.wall()
        row = Conversation(self._clock.new_id("conv_"), self._project, now, now, metadata)
        await self._store.add_conversation(row, self._new(items, ()))
        return _shown(row)

    async def get(self, conversation_id: str) -> Json:
        """One of them."""
        return _shown(await self._row(conversation_id))

    async def change(self, conversation_id: str, metadata: Json) -> Json:
        """Replace its metadata."""
        if not await self._store.set_metadata(self._project, conversation_id, metadata):
            raise unknown_conversation()
        return await self.get(conversation_id)

    async def delete(self, conversation_id: str) -> Json:
        """Delete it with its items; responses that joined it stay."""
        if not await self._store.drop_conversation(self._project, conversation_id):
            raise unknown_conversation()
        return shapes.deleted_object(conversation_id, "conversation.deleted")

    async def items(self, conversation_id: str, page: Page) -> Json:
        """A page of its items."""
        return shapes.item_list(_listed(await self._items(conversation_id)), page)

    async def item(self, conversation_id: str, item_id: str) -> Json:
        """One of its items."""
        for item in await self._items(conversation_id):
            if item.id == item_id:
                return listed(item.id, item.data)
        raise _unknown_item()

    async def add(self, conversation_id: str, items: Sequence[Json]) -> Json:
        """Add items to its end."""
        new = self._new(items, await self._items(conversation_id))
        addition = Addition(conversation_id, self._project, new, self._clock.wall())
        if not await self._store.add_items(addition):
            raise unknown_conversation()
        return shapes.whole_list(_listed(new))

    async def drop_item(self, conversation_id: str, item_id: str) -> Json:
        """Delete one of its items; the answer is the conversation."""
        row = await self._row(conversation_id)
        if not await self._store.drop_item(self._project, conversation_id, item_id):
            raise _unknown_item()
        return _shown(row)

    def _new(self, items: Sequence[Json], before: Sequence[Item]) -> list[Item]:
        """``items`` under their own ids; one whose id is in use already gets another."""
        used, new = {item.id for item in before}, []
        for data in items:
            fresh = self._clock.new_id(prefix(data))
            item = as_item(data, fresh)
            new.append(Item(fresh, data) if item.id in used else item)
            used.add(new[-1].id)
        return new

    async def _row(self, conversation_id: str) -> Conversation:
        row = await self._store.conversation(self._project, conversation_id)
        if row is None:
            raise unknown_conversation()
        return row

    async def _items(self, conversation_id: str) -> Sequence[Item]:
        await self._row(conversation_id)
        return await self._store.conversation_items(self._project, conversation_id)


def _listed(items: Sequence[Item]) -> list[dict[str, Any]]:
    return [listed(item.id, item.data) for item in items]


def _shown(row: Conversation) -> Json:
    return shapes.conversation_object(row.id, row.created_at, row.metadata)


def _unknown_response() -> Fault:
    return Fault(
        "not_found",
        "No response of this id is kept for this key's project. Responses with `store: false` "
        "are not kept, others for the days that [store.retention] names.",
        param="response_id",
    )


def _unknown_item() -> Fault:
    return Fault("not_found", "No item of this id is in the conversation.", param="item_id")
