"""The endpoint that all three conversation dialects share: body in, answer out.

What differs between them is the :class:`Northbound` that it is made with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress

from adapters.canonical.events import Failed
from adapters.canonical.faults import Fault
from adapters.wire.json import loads
from gateway.flow.complete import complete
from gateway.flow.context import Call
from gateway.flow.tracing import begin
from gateway.http.background import BackgroundDoor
from gateway.http.ending import Ending
from gateway.http.endpoint import MEGABYTE, Endpoint, is_strict
from gateway.http.exchange import Exchange
from gateway.http.headers import head_lines
from gateway.http.middleware import INTERNAL
from gateway.http.run_models import RUN_SECONDS, RunDoor
from gateway.http.sink import BodySink, StreamSink
from gateway.northbound.base import Envelope, Northbound
from gateway.northbound.base import Limits as BodyLimits
from gateway.services.aliases import resolve
from gateway.services.background import settle_previous
from gateway.services.prompts import with_model, with_output
from gateway.services.responses import Session
from gateway.services.run_models import is_run
from gateway.services.state import State


class Conversation(Endpoint):
    """An endpoint for one dialect.

    :param prefix: of the ids that the dialect gives its answers.
    """

    def __init__(self, state: State, northbound: Northbound, prefix: str) -> None:
        super().__init__(state, northbound.name)
        self._northbound = northbound
        self._prefix = prefix

    async def _serve(self, exchange: Exchange) -> None:
        state = self._state
        runtime = state.runtime
        started, at = runtime.clock.monotonic(), runtime.clock.wall()
        principal = self._caller(exchange, at)
        limit = int(runtime.snapshot.server.max_body_mb * MEGABYTE)
        body = await exchange.read(limit)
        limits = BodyLimits(choices=runtime.snapshot.server.max_n)
        given = with_model(runtime, self._northbound.parse(body, exchange.headers, limits))
        if given.memory is not None:
            await settle_previous(state.store, runtime.clock, principal.project, given)
        if is_run(given.request.model):
            async with Session(runtime, principal, given, exchange.id, RUN_SECONDS) as kept:
                door = RunDoor(state, exchange, self._northbound, self._prefix, kept)
                await door.serve(principal, body)
            return
        alias = resolve(runtime.snapshot, principal, given.request.model)
        given = with_output(runtime, alias, given)
        async with Session(runtime, principal, given, exchange.id, alias.deadline) as kept:
            asked = kept.asked
            if kept.background:
                await BackgroundDoor(state, exchange, principal).serve(kept, alias, body)
                return
            size = len(body) + kept.size
            del body  # a stream may be open for long
            call = Call(
                id=exchange.id,
                principal=principal,
                request=asked.request,
                alias=alias,
                runtime=runtime,
                started=started,
                at=at,
                size=size,
                dropped=asked.dropped,
                strict=is_strict(exchange.headers, asked.dropped),
                verify=wants_verify(exchange.headers),
                trace=begin(runtime.tracer, exchange.headers, alias, exchange.id),
            )
            exchange.forget()
            exchange.watch()
            ending = Ending(state, exchange, call)
            try:
                await self._answer(exchange, call, kept, ending)
            finally:
                ending.tell()

    def _answer(
        self, exchange: Exchange, call: Call, kept: Session, ending: Ending
    ) -> Awaitable[None]:
        asked = kept.asked
        envelope = Envelope(
            id=call.runtime.clock.new_id(self._prefix),
            created=int(call.at),
            alias=asked.request.model,
            style=asked.style,
            report_model=call.alias.report_model,
            wall=call.runtime.clock.wall,
        )
        tell = self._stream if asked.request.stream else self._whole
        return tell(exchange, call, envelope, kept, ending)

    async def _stream(
        self, exchange: Exchange, call: Call, envelope: Envelope, kept: Session, ending: Ending
    ) -> None:
        sink = StreamSink(
            exchange,
            self._northbound.encoder(envelope),
            ping=call.runtime.snapshot.server.ping_seconds,
            held=call.holds,
        )
        try:
            outcome = await complete(call, sink)
            ending.outcome = outcome
            sink.use(outcome.head)
            if outcome.verdict is not None:
                await sink.judge(outcome.verdict)
            await sink.finish(outcome.terminal, kept.keep if kept.keeps else None)
        except Fault as fault:
            ending.fault = fault
            await sink.finish(Failed(fault))
        except asyncio.CancelledError:
            ending.fault = exchange.stopped()
            if ending.fault is not None:
                await sink.finish(Failed(ending.fault))
        except Exception:
            ending.fault = Fault("internal", INTERNAL)
            with suppress(Exception):  # what is broken may break again; the first is logged
                await sink.finish(Failed(ending.fault))
            raise
        finally:
            sink.close()

    async def _whole(
        self, exchange: Exchange, call: Call, envelope: Envelope, kept: Session, ending: Ending
    ) -> None:
        sink = BodySink()
        body = b""
        try:
            outcome = ending.outcome = await complete(call, sink)
            if not isinstance(outcome.terminal, Failed):
                body = self._northbound.whole(sink.completion(outcome.terminal), envelope)
                if kept.keeps:
                    await kept.keep(loads(body))
        except Fault as fault:
            ending.fault = fault
            await exchange.fail(fault)
            return
        except asyncio.CancelledError:
            ending.fault = exchange.stopped()
            if ending.fault is not None:
                await exchange.fail(ending.fault)
            return
        headers = head_lines(outcome.head)
        if isinstance(outcome.terminal, Failed):
            await exchange.fail(outcome.terminal.fault, headers)
            return
        await exchange.answer(200, body, headers)


STRUCTURED = {"hold": False, "verify": True}
"""What ``x-gateway-structured`` may say: whether a checked answer is streamed as it comes."""


def wants_verify(headers: Mapping[str, str]) -> bool | None:
    """The caller's word on how a checked answer is streamed; ``None`` leaves it to the alias.

    :raises Fault: ``bad_request`` for a word that is not known.
    """
    word = headers.get("x-gateway-structured")
    if word is None:
        return None
    if word.lower() not in STRUCTURED:
        raise Fault(
            "bad_request",
            "x-gateway-structured says something else than 'hold' (nothing is sent before it is "
            "proven) or 'verify' (streamed as it comes, the verdict at the end).",
            param="x-gateway-structured",
        )
    return STRUCTURED[word.lower()]
