"""Responses that outlive their call: what one goes on from, and what it leaves behind.

A call's :class:`Session` reads what comes before it and writes the response before its end is
told, so that the next request always finds it. Everything is the caller's project's alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from adapters.canonical.faults import Fault
from adapters.wire.json import dumps
from gateway.flow.context import Runtime
from gateway.flow.shielded import shielded
from gateway.northbound.base import Asked, Memory
from gateway.northbound.openai_responses.kept import continued, prefix, resolved
from gateway.policy.auth import Principal
from gateway.store.responses import Addition, Chain, Item, KeptResponse

HOLD_MARGIN = 60.0
"""Seconds that a conversation stays held beyond its call's deadline, if nobody lets go."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,128}")

NOT_CONTINUABLE = (
    "previous_response_id: {why} Send the whole conversation in input, or continue another one."
)


class Session:
    """One call's view of the store: entered, it has read what the call goes on from; nothing for
    a dialect without a memory.

    ``asked`` is the request with what it goes on from in it, which is ``size`` bytes.

    :param holder: the call's id. :param seconds: the longest that the call may take.
    """

    __slots__ = (
        "_chain",
        "_held",
        "_holder",
        "_principal",
        "_runtime",
        "_seconds",
        "_stores",
        "asked",
        "size",
    )

    def __init__(
        self, runtime: Runtime, principal: Principal, asked: Asked, holder: str, seconds: float
    ) -> None:
        self.asked = asked
        self.size = 0
        self._seconds = seconds
        self._runtime = runtime
        self._principal = principal
        self._holder = holder
        self._chain: Chain | None = None
        self._held: str | None = None
        self._stores = False

    async def __aenter__(self) -> Self:
        """:raises Fault: where the call can't be continued."""
        if self.asked.memory is not None:
            try:
                await self._begin(self.asked.memory)
            except BaseException:
                await self._end()
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._held is not None:
            await self._end()

    @property
    def keeps(self) -> bool:
        """Whether the answer has to be handed to :meth:`keep`."""
        return self._stores or self._held is not None

    async def _begin(self, memory: Memory) -> None:
        default = self._runtime.snapshot.store.keep_responses
        self._stores = default if memory.store is None else memory.store
        if memory.background and not self._stores:
            raise Fault(
                "bad_request",
                "background: true needs store: true: who asks later finds the answer in the "
                "gateway's store, and nowhere else.",
                param="background",
            )
        style = self.asked.style
        echo = {**style.echo, "store": self._stores}
        self.asked = replace(self.asked, style=replace(style, echo=echo))
        if memory.continues:
            await self._recall(memory)

    async def _recall(self, memory: Memory) -> None:
        earlier: Sequence[Item] = ()
        if memory.previous is not None:
            earlier = await self._chained(memory.previous)
        elif memory.conversation is not None:
            earlier = await self._joined(memory.conversation)
        named: Mapping[str, Item] = {}
        ids = {item.id for item in earlier}
        if memory.references:
            wanted = [i for i in dict.fromkeys(memory.references) if i not in ids]
            named = await self._runtime.store.items(self._principal.project, wanted)
            self.size += _size(named.values())
        known = {item_id: item.data for item_id, item in named.items()}
        own = resolved(memory.items, known, ids)
        self.asked = continued(self.asked, [item.data for item in earlier], own)
        self.asked = replace(self.asked, memory=replace(memory, items=own))

    async def _chained(self, response_id: str) -> Sequence[Item]:
        chain = await self._runtime.store.chain(self._principal.project, response_id)
        why = _obstacle(chain)
        if chain is None or why:
            raise Fault(
                "bad_request",
                NOT_CONTINUABLE.format(why=why),
                code="previous_response_not_found",
                param="previous_response_id",
            )
        self._chain = chain
        self.size += chain.size
        return (*chain.earlier, *chain.last.input, *chain.last.output)

    async def _joined(self, conversation_id: str) -> Sequence[Item]:
        store, project = self._runtime.store, self._principal.project
        now = self._runtime.clock.wall()
        until = now + self._seconds + HOLD_MARGIN
        held = await store.hold_conversation(project, conversation_id, self._holder, now, until)
        if not held:
            if await store.conversation(project, conversation_id) is None:
                raise unknown_conversation("conversation")
            raise Fault(
                "conflict",
                "conversation: another response is being made in it. Try again when that ended.",
                code="conversation_locked",
                param="conversation",
                retry_after=1.0,
            )
        self._held = conversation_id
        items = await store.conversation_items(project, conversation_id)
        self.size += _size(items)
        return items

    @property
    def background(self) -> bool:
        """Whether the answer is made without its caller."""
        return self.asked.memory is not None and self.asked.memory.background

    def outside(self) -> dict[str, Any]:
        """What has to be known later, to keep an answer that is made in the background."""
        memory, new_id = self.asked.memory or Memory(), self._runtime.clock.new_id
        return {
            "thread": None if self._chain is None else self._chain.last.thread,
            "previous": memory.previous,
            "conversation": memory.conversation,
            "holder": self._holder,
            "items": list(memory.items),
            "ids": [as_item(item, new_id(prefix(item))).id for item in memory.items],
        }

    def hand_over(self) -> None:
        """Leave the conversation held: whoever keeps the answer lets it go, under ``holder``."""
        self._held = None

    async def keep(self, response: Mapping[str, Any]) -> None:
        """Write the answer down, to its end even if the caller leaves meanwhile.

        :param response: the response object as the caller will see it.
        :raises Fault: ``store_unavailable``; then its success must not be told.
        """
        if self.keeps:
            await shielded(self._write(response))

    async def _write(self, response: Mapping[str, Any]) -> None:
        memory = self.asked.memory or Memory()
        store, now = self._runtime.store, self._runtime.clock.wall()
        new_id = self._runtime.clock.new_id
        given = [as_item(item, new_id(prefix(item))) for item in memory.items]
        made = [as_item(item, new_id(prefix(item))) for item in response.get("output") or ()]
        addition = None
        if self._held is not None and response.get("status") != "failed":
            project = self._principal.project
            addition = Addition(self._held, project, (*given, *made), now, self._holder)
        if self._stores:
            await store.keep_response(self._kept(response, given, made, now), addition)
        elif addition is not None:
            await store.add_items(addition)

    def _kept(
        self, response: Mapping[str, Any], given: list[Item], made: list[Item], now: float
    ) -> KeptResponse:
        memory = self.asked.memory or Memory()
        return KeptResponse(
            id=response["id"],
            project=self._principal.project,
            thread=response["id"] if self._chain is None else self._chain.last.thread,
            at=now,
            body={**response, "output": []},
            input=given,
            output=made,
            previous=memory.previous,
            conversation=memory.conversation,
            end_user=self.asked.request.end_user,
        )

    async def _end(self) -> None:
        """Let go of the conversation."""
        if self._held is not None:
            held, self._held = self._held, None
            await shielded(self._runtime.store.release_conversation(held, self._holder))


def as_item(item: Mapping[str, Any], new_id: str) -> Item:
    """``item`` under its own id, or under ``new_id`` where it has no proper one."""
    own = item.get("id")
    return Item(own if isinstance(own, str) and _ID.fullmatch(own) else new_id, item)


def unknown_conversation(param: str | None = None) -> Fault:
    """The fault for a conversation that is not there."""
    return Fault(
        "not_found", "No conversation of this id is kept for this key's project.", param=param
    )


def _size(items: Any) -> int:
    return sum(len(dumps(item.data)) for item in items)


def _obstacle(chain: Chain | None) -> str:
    """Why a response can't be continued; empty if it can."""
    if chain is None:
        return "no response of this id is kept for this key's project."
    if not chain.whole:
        return "a response that this one continues was deleted or is past its retention."
    if chain.last.conversation is not None:
        return "this response belongs to a conversation; send `conversation` instead."
    if chain.last.body.get("status") == "failed":
        return "this response has failed."
    return ""
