"""The door of background responses: begun at once, followed or not, read again from any place."""

from __future__ import annotations

from adapters.canonical.faults import Fault
from adapters.wire.json import dumps
from gateway.http.exchange import Exchange
from gateway.http.following import EventStream, Reading, follow
from gateway.http.line import lines
from gateway.http.run_views import Rest, View, check_place
from gateway.northbound.runs.background import BackgroundFrames
from gateway.policy.auth import Principal
from gateway.services.background import Background
from gateway.services.responses import Session
from gateway.services.state import State
from gateway.settings.snapshot import Alias
from gateway.store.runs import RunRow

RUN = "x-gateway-run"


class BackgroundDoor:
    """One request with ``background: true``."""

    def __init__(self, state: State, exchange: Exchange, principal: Principal) -> None:
        self._state = state
        self._exchange = exchange
        self._background = Background(state.runs, state.store, principal)

    async def serve(self, kept: Session, alias: Alias, body: bytes) -> None:
        """Begin the response, and show it: as it stands, or as it grows."""
        key = self._exchange.headers.get("idempotency-key")
        row = await self._background.start(kept, alias, body, key)
        headers = {RUN: row.birth.id}
        if not kept.asked.request.stream:
            shown = dumps(await self._background.shown(row))
            named = [(name.encode(), value.encode()) for name, value in headers.items()]
            await self._exchange.answer(200, shown, lines(named))
            return
        frames = Rest(_view(await self._background.frames(row)), 0)
        self._state.live.discard(self._exchange)  # it goes on without its readers
        reading = Reading(row.birth.id, 0, frames, headers, opening=b"")
        await follow(self._state, self._exchange, reading)


async def background_stream(
    state: State, background: Background, row: RunRow, starting_after: int | None
) -> EventStream:
    """A background response as a stream, from a reader's place on.

    :raises Fault: ``bad_request`` for a place that is none, or lies ahead of the stream.
    """
    if starting_after is not None and starting_after < 0:
        text = "starting_after is a sequence_number of this stream: 0 or more."
        raise Fault("bad_request", text, param="starting_after")
    got = 0 if starting_after is None else starting_after + 1
    if got:
        await check_place(state.store, row.birth.id, _view(await background.frames(row)), got)
    frames = Rest(_view(await background.frames(row)), got)
    reading = Reading(row.birth.id, 0, frames, {RUN: row.birth.id}, opening=b"")
    return EventStream(state, reading)


def _view(frames: BackgroundFrames) -> View:
    """Frames are counted like their ``sequence_number``, from 0."""
    return lambda page: frames.feed(one.body for one in page)
