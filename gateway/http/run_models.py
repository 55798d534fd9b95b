"""Agents and workflows as models: ``agent:NAME`` and ``workflow:NAME`` on every dialect's door.

The caller talks as to any model; behind it is a run, named by ``x-gateway-run``, which goes on if
the caller leaves, unless ``x-gateway-on-disconnect: cancel`` says otherwise. A run that waits for
somebody keeps a stream open; who wants one body is told, and not left hanging.
"""

from __future__ import annotations

import asyncio

from adapters.canonical.events import Failed
from adapters.canonical.faults import Fault
from adapters.wire.json import loads
from gateway.http.endpoint import is_strict
from gateway.http.exchange import Exchange
from gateway.http.headers import SSE
from gateway.http.line import lines
from gateway.http.sink import BodySink, StreamSink
from gateway.northbound.base import Envelope, Northbound
from gateway.northbound.runs.answer import RunAnswer
from gateway.policy.auth import Principal
from gateway.runs.tail import Tail, following
from gateway.services.responses import Session
from gateway.services.run_models import begin, unheard, waiting
from gateway.services.state import State
from gateway.store.runs import RunRow

RUN_SECONDS = 3600.0
"""Seconds for which a run may hold the conversation that it answers in."""
NEVER_AGAIN = b"x-should-retry: false\r\n"
"""The vendors' SDKs send a failed request again by themselves; here that would be another run, and
its tools would act once more."""
CHOICES = {"hide": False, "reasoning": True}
"""What ``x-gateway-steps`` may say: whether the steps of the run are shown as reasoning."""
LEAVING = {"continue": False, "cancel": True}
"""What ``x-gateway-on-disconnect`` may say: whether the run ends when the caller leaves."""


class RunDoor:
    """One request to an agent or a workflow.

    :param prefix: of the ids that the dialect gives its answers.
    """

    def __init__(
        self,
        state: State,
        exchange: Exchange,
        northbound: Northbound,
        prefix: str,
        kept: Session,
    ) -> None:
        self._state = state
        self._exchange = exchange
        self._northbound = northbound
        self._kept = kept
        self._asked = kept.asked
        self._envelope = Envelope(
            id=state.runtime.clock.new_id(prefix),
            created=int(state.runtime.clock.wall()),
            alias=self._asked.request.model,
            style=self._asked.style,
            report_model="alias",
            wall=state.runtime.clock.wall,
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
        """Begin the run and tell its answer.

        :raises Fault: where there can be none.
        """
        if self._kept.background:
            text = (
                "background: an agent or a workflow goes on without its caller anyway. Leave it "
                "out, or begin the run with POST /runs and read it there."
            )
            raise Fault("unsupported", text, param="background")
        headers = self._exchange.headers
        dropped = unheard(loads(body), self._northbound.FIELDS)
        is_strict(headers, dropped)
        key, request = headers.get("idempotency-key"), self._asked.request
        row = await begin(self._state, principal, request, body, key, cancels=self._cancels)
        own = [(b"x-gateway-run", row.birth.id.encode())]
        if dropped:
            own.append((b"x-gateway-dropped", ", ".join(dropped).encode("latin-1", "replace")))
        await self._tell(principal, row, lines(own))

    async def _tell(self, principal: Principal, row: RunRow, head: bytes) -> None:
        self._exchange.watch()
        try:
            with following(self._state.runs.ledger, row.birth.id, 0) as tail:
                if self._asked.request.stream:
                    await self._stream(tail, head)
                else:
                    await self._whole(row.birth.id, tail, head)
        except asyncio.CancelledError:
            fault = self._exchange.stopped()
            if fault is None and self._cancels:
                ending = self._state.runs.cancel(principal, row.birth.id, "disconnect")
                await asyncio.shield(ending)
            if fault is not None and not self._exchange.started:
                await self._exchange.fail(fault, head + NEVER_AGAIN)

    async def _stream(self, tail: Tail, head: bytes) -> None:
        ping = self._state.snapshot.server.ping_seconds
        await self._exchange.start(200, SSE + head)
        encoder = self._northbound.encoder(self._envelope)
        sink = StreamSink(self._exchange, encoder, ping=ping, held=False)
        try:
            while self._answer.terminal is None:
                for told in await tail.read(ping):
                    await sink.send(self._answer.feed(loads(told.body)))
            keep = self._kept.keep if self._kept.keeps else None
            await sink.finish(self._answer.terminal, keep)
        except Fault as fault:  # the run can't be read any more; how it goes on is in its ledger
            await sink.finish(Failed(fault))
        except asyncio.CancelledError:
            stop = self._exchange.stopped()
            if stop is None:
                raise
            await sink.finish(Failed(stop))  # the run itself goes on at the next start
        finally:
            sink.close()

    async def _whole(self, run_id: str, tail: Tail, head: bytes) -> None:
        sink = BodySink()
        while self._answer.terminal is None:
            for told in await tail.read(self._state.snapshot.server.ping_seconds):
                await sink.send(self._answer.feed(loads(told.body)))
            if self._answer.rests:
                fault = waiting(await self._state.runs.row(run_id, None))
                if fault is not None:
                    await self._exchange.fail(fault, head + NEVER_AGAIN)
                    return
        terminal = self._answer.terminal
        if isinstance(terminal, Failed):
            await self._exchange.fail(terminal.fault, head + NEVER_AGAIN)
            return
        body = self._northbound.whole(sink.completion(terminal), self._envelope)
        if self._kept.keeps:
            await self._kept.keep(loads(body))
        await self._exchange.answer(200, body, head)
