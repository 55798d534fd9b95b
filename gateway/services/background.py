"""Responses made in the background: each is a run of kind ``call``.

The run carries what the response object needs besides its answer. When it has ended, the response
is kept like any other, so that it can be continued and outlives the run's ledger; until then, and
for every stream, the ledger is what is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from adapters.canonical.clock import Clock
from adapters.canonical.faults import Fault
from adapters.wire.json import loads
from gateway.northbound.base import Asked
from gateway.northbound.openai_responses.kept import prefix
from gateway.northbound.runs.background import (
    BackgroundFrames,
    envelope_of,
    response_id_of,
    run_id_of,
    unfinished,
)
from gateway.policy.auth import Principal
from gateway.runs.hub import told_row
from gateway.runs.spec import RunSpec
from gateway.runs.status import ENDED
from gateway.services.responses import Session, as_item
from gateway.services.runs import Runs
from gateway.settings.snapshot import Alias
from gateway.store.base import Store
from gateway.store.responses import Addition, Item, KeptResponse
from gateway.store.runs import RunRow

Json = Mapping[str, Any]


class Background:
    """The background responses of one caller's project."""

    def __init__(self, runs: Runs, store: Store, principal: Principal) -> None:
        self._runs = runs
        self._store = store
        self._principal = principal

    async def start(self, kept: Session, alias: Alias, body: bytes, key: str | None) -> RunRow:
        """Begin one.

        :raises Fault: ``bad_request`` where the answer may not be kept.
        """
        request = kept.asked.request
        outside = {
            "alias": request.model,
            "report_model": alias.report_model,
            "echo": {**kept.asked.style.echo, "background": True},
            **kept.outside(),
        }
        spec = RunSpec(
            kind="call",
            call=replace(request, stream=False),
            end_user=request.end_user,
            outside=outside,
        )
        digest = hashlib.sha256(body).digest()
        row = await self._runs.begin(self._principal, spec, key=key, digest=digest)
        if outside["conversation"] is not None:
            began = await _outside(self._store, row)
            if began.get("holder") == outside["holder"]:  # not one that was begun before
                kept.hand_over()
        return row

    async def find(self, response_id: str) -> RunRow | None:
        """The run behind a response, if it was made in the background and is still there."""
        run_id = run_id_of(response_id)
        row = None if run_id is None else await self._store.run(run_id, self._principal.project)
        return None if row is None or row.swept or row.birth.kind != "call" else row

    async def shown(self, row: RunRow) -> Json:
        """The response object as it stands."""
        if row.standing.status not in ENDED:
            outside = await _outside(self._store, row)
            envelope = envelope_of(row.birth.id, row.birth.created_at, outside)
            return unfinished(envelope, row.standing.status)
        return await told(self._store, row)

    async def input_items(self, row: RunRow) -> list[Item]:
        """What a response is made from, what it continues included."""
        outside = await _outside(self._store, row)
        previous, given = outside["previous"], _given(outside)
        if previous is None:
            return given
        chain = await self._store.chain(self._principal.project, previous)
        if chain is None:
            return given
        return [*chain.earlier, *chain.last.input, *chain.last.output, *given]

    async def cancel(self, response_id: str) -> Json | None:
        """Cancel it; twice is once, and one that has ended stays as it is."""
        row = await self.find(response_id)
        if row is None:
            return None
        if row.standing.status not in ENDED:
            row = await self._runs.cancel(self._principal, row.birth.id)
            row = await self._runs.ended(row.birth.id)
        return await self.shown(row)

    async def delete(self, response_id: str) -> bool:
        """Delete its run.

        :raises Fault: ``conflict`` while it goes on.
        """
        row = await self.find(response_id)
        if row is None:
            return False
        if row.standing.status not in ENDED:
            text = "The response is still being made. Cancel it first, then delete it."
            raise Fault("conflict", text)
        await self._runs.delete(self._principal, row.birth.id)
        return True

    async def frames(self, row: RunRow) -> BackgroundFrames:
        """What turns its events into frames."""
        outside = await _outside(self._store, row)
        return BackgroundFrames(envelope_of(row.birth.id, row.birth.created_at, outside))


async def told(store: Store, row: RunRow) -> Json:
    """The whole response of a run that has ended."""
    frames = BackgroundFrames(
        envelope_of(row.birth.id, row.birth.created_at, await _outside(store, row))
    )
    after = 0
    while frames.told is None:
        page = await store.run_events(row.birth.id, after, 1_000)
        if not page:
            raise Fault("gone", "The events of this response are deleted.")
        frames.feed(told_row(event).body for event in page)
        after = page[-1].seq
    return frames.told


async def settle_previous(store: Store, clock: Clock, project: str, asked: Asked) -> None:
    """Keep the background response that ``asked`` continues, if a crash came between its end and
    its keeping.

    :raises Fault: ``conflict`` where it is still being made.
    """
    previous = None if asked.memory is None else asked.memory.previous
    run_id = None if previous is None else run_id_of(previous)
    row = None if run_id is None else await store.run(run_id, project)
    if row is None or row.birth.kind != "call":
        return
    if row.standing.status not in ENDED:
        raise Fault(
            "conflict",
            "previous_response_id: this response is still being made. Wait until it has ended.",
            code="previous_response_in_progress",
            param="previous_response_id",
        )
    await settle(store, row.birth.id, clock)


async def settle(store: Store, run_id: str, clock: Clock) -> None:
    """Keep the response of a run that has ended, once; nothing for any other run."""
    row = await store.run(run_id)
    if row is None or row.swept or row.birth.kind != "call" or row.standing.status not in ENDED:
        return
    outside, birth = await _outside(store, row), row.birth
    response_id = response_id_of(run_id)
    if not outside or await store.chain(birth.project, response_id) is not None:
        return
    response, now, new_id = await told(store, row), clock.wall(), clock.new_id
    given = _given(outside)
    made = [as_item(item, new_id(prefix(item))) for item in response.get("output") or ()]
    conversation, holder = outside["conversation"], outside.get("holder")
    addition = None
    if conversation is not None and response["status"] != "failed":
        addition = Addition(conversation, birth.project, (*given, *made), now, holder)
    kept = KeptResponse(
        id=response_id,
        project=birth.project,
        thread=outside["thread"] or response_id,
        at=now,
        body={**response, "output": []},
        input=given,
        output=made,
        previous=outside["previous"],
        conversation=conversation,
        end_user=birth.end_user,
    )
    try:
        await store.keep_response(kept, addition)
    except Fault:  # another replica may have kept it just now
        if await store.chain(birth.project, response_id) is None:
            raise
    if conversation is not None and addition is None and holder is not None:
        await store.release_conversation(conversation, holder)


def _given(outside: Json) -> list[Item]:
    """The request's own items, under the ids that they were given when it came."""
    return [as_item(item, id) for item, id in zip(outside["items"], outside["ids"], strict=True)]


async def _outside(store: Store, row: RunRow) -> Json:
    """What was kept of the request when the run began."""
    (created,) = await store.run_events(row.birth.id, 0, 1)
    found: Json = loads(created.data.encode())["spec"].get("outside", {})
    return found
