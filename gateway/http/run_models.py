"""Agents and workflows as models: ``agent:NAME`` and ``workflow:NAME`` on every dialect's door.

The caller talks as to any model; behind it is a run, named by ``x-gateway-run``, which goes on if
the caller leaves, unless ``x-gateway-on-disconnect: cancel`` says otherwise.
"""

from __future__ import annotations

import asyncio

from adapters.canonical.events import Failed
from adapters.canonical.faults import Fault
from adapters.wire.json import loads
from gateway.http.exchange import Exchange
from gateway.http.headers import SSE
from gateway.http.sink import BodySink, StreamSink
from gateway.northbound.base import Asked, Envelope, Northbound
from gateway.northbound.runs.answer import RunAnswer
from gateway.policy.auth import Principal
from gateway.runs.tail import Tail, following
from gateway.services.run_models import begin, unheard
from gateway.services.state import State
from gateway.store.runs import RunRow

CHOICES = {"hide": False, "reasoning": True}
"""What ``x-gateway-steps`` may say: whether the steps of the run are shown as reasoning."""
LEAVING = {"continue": False, "cancel": True}
"""What ``x-gateway-on-disconnect`` may say: whether the run ends when the caller leaves."""


class RunDoor:
    """One request to an agent or a workflow.

    :param prefix: of the ids that the dialect gives its answers.
    """

    def __init__(
        self, state: State, exchange: Exchange, northbound: Northbound, prefix: str, asked: Asked
    ) -> None:
        self._state = state
        self._exchange = exchange
        self._northbound = northbound
        self._asked = asked
        self._envelope = Envelope(
            id=state.runtime.clock.new_id(prefix),
            created=int(state.runtime.clock.wall()),
            alias=asked.request.model,
            style=asked.style,
            report_model="alias",
        )
        self._answer = RunAnswer(steps=self._choice("x-gateway-steps", CHOICES, "hide"))
        self._cancels = self._choice("x-gateway-on-disconnect", LEAVING, "continue")

    def _choice(self, header: str, choices: dict[str, bool], default: str) -> bool:
        word = self._exchange.headers.get(header, default).lower()
        if word not in choices:
            text = f"{header} is one of {', '.join(choices)}."
            raise Fault("bad_request", text, param=header)
        return choices[word]

    async def serve(self, principal: Principal, body: bytes) -> None:
        """Begin the run and tell its answer."""
        key = self._exchange.headers.get("idempotency-key")
        request = self._asked.request
        row = await begin(self._state, principal, request, body, key, cancels=self._cancels)
        self._exchange.watch()
        try:
            with following(self._state.runs.ledger, row.birth.id, 0) as tail:
                tell = self._stream if request.stream else self._whole
                await tell(tail, self._headers(row))
        except asyncio.CancelledError:
            fault = self._exchange.stopped()
            if fault is None and self._cancels:
                ending = self._state.runs.cancel(principal, row.birth.id, "disconnect")
                await asyncio.shield(ending)
            if fault is not None and not self._exchange.started:
                await self._exchange.fail(fault, self._headers(row))

    def _headers(self, row: RunRow) -> list[tuple[bytes, bytes]]:
        headers = [(b"x-gateway-run", row.birth.id.encode())]
        dropped = [*self._asked.dropped, *unheard(self._asked.request)]
        if dropped:
            headers.append((b"x-gateway-dropped", ", ".join(dropped).encode()))
        return headers

    async def _stream(self, tail: Tail, headers: list[tuple[bytes, bytes]]) -> None:
        ping = self._state.snapshot.server.ping_seconds
        await self._exchange.start(200, [*SSE, *headers])
        encoder = self._northbound.encoder(self._envelope)
        sink = StreamSink(self._exchange, encoder, ping=ping, held=False)
        try:
            while self._answer.terminal is None:
                for told in await tail.read(ping):
                    await sink.send(self._answer.feed(loads(told.body)))
            await sink.finish(self._answer.terminal)
        finally:
            sink.close()

    async def _whole(self, tail: Tail, headers: list[tuple[bytes, bytes]]) -> None:
        sink = BodySink()
        while self._answer.terminal is None:
            for told in await tail.read(self._state.snapshot.server.ping_seconds):
                await sink.send(self._answer.feed(loads(told.body)))
        terminal = self._answer.terminal
        if isinstance(terminal, Failed):
            await self._exchange.fail(terminal.fault, headers)
            return
        body = self._northbound.whole(sink.completion(terminal), self._envelope)
        await self._exchange.answer(200, body, headers)
