"""The endpoint that all three conversation dialects share: body in, answer out.

What differs between them is the :class:`Northbound` that it is made with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from adapters.canonical.events import Failed
from adapters.canonical.faults import Fault
from adapters.wire.json import loads
from gateway.flow.complete import complete
from gateway.flow.context import Call, Runtime
from gateway.flow.tracing import begin
from gateway.http.background import BackgroundDoor
from gateway.http.ending import Ending
from gateway.http.endpoint import MEGABYTE, Endpoint, is_strict
from gateway.http.exchange import Exchange
from gateway.http.headers import head_lines
from gateway.http.middleware import INTERNAL
from gateway.http.run_models import RUN_SECONDS, RunDoor
from gateway.http.sink import BodySink, StreamSink
from gateway.northbound.base import Asked, Envelope, Limits, Northbound
from gateway.policy.auth import Principal
from gateway.services.aliases import resolve
from gateway.services.background import settle_previous
from gateway.services.prompts import with_model, with_output
from gateway.services.responses import Session
from gateway.services.run_models import is_run
from gateway.services.state import State
from gateway.settings.snapshot import Alias


class Came(NamedTuple):
    """A request: since when, in seconds of either clock, and from whom."""

    exchange: Exchange
    runtime: Runtime
    principal: Principal
    started: float
    at: float


@lru_cache
def body_limits(choices: int) -> Limits:
    """What a body may hold, where so many choices may be asked for."""
    return Limits(choices=choices)


class Conversation(Endpoint):
    """An endpoint for one dialect.

    :param prefix: of the ids that the dialect gives its answers.
    """

    def __init__(self, state: State, northbound: Northbound, prefix: str) -> None:
        super().__init__(state, northbound.name)
        self._northbound = northbound
        self._prefix = prefix

    def _serve(self, exchange: Exchange) -> Awaitable[None]:
        runtime = self._state.runtime
        started, at = runtime.clock.monotonic(), runtime.clock.wall()
        came = Came(exchange, runtime, self._caller(exchange, at), started, at)
        limit = int(runtime.snapshot.server.max_body_mb * MEGABYTE)
        body = exchange.whole(limit)
        return self._late(came, limit) if body is None else self._understand(came, body)

    async def _late(self, came: Came, limit: int) -> None:
        """A request whose body is still to come."""
        await self._understand(came, await came.exchange.read(limit))

    def _understand(self, came: Came, body: bytes) -> Awaitable[None]:
        runtime, limits = came.runtime, body_limits(came.runtime.snapshot.server.max_n)
        parsed = self._northbound.parse(body, came.exchange.headers, limits)
        given = with_model(runtime, parsed)
        if given.memory is not None or is_run(given.request.model):
            return self._remember(came, given, body)
        alias = resolve(runtime.snapshot, came.principal, given.request.model)
        return self._call(came, with_output(runtime, alias, given), alias, len(body))

    async def _remember(self, came: Came, given: Asked, body: bytes) -> None:
        """A request that may go on from what was kept, or begins a run."""
        state, (exchange, runtime, principal, *_) = self._state, came
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
            if kept.background:
                await BackgroundDoor(state, exchange, principal).serve(kept, alias, body)
                return
            size = len(body) + kept.size
            del body  # a stream may be open for long
            await self._call(came, kept.asked, alias, size, kept)

    def _call(
        self, came: Came, asked: Asked, alias: Alias, size: int, kept: Session | None = None
    ) -> Awaitable[None]:
        exchange, runtime = came.exchange, came.runtime
        call = Call(
            id=exchange.id,
            principal=came.principal,
            request=asked.request,
            alias=alias,
            runtime=runtime,
            started=came.started,
            at=came.at,
            size=size,
            dropped=asked.dropped,
            strict=is_strict(exchange.headers, asked.dropped),
            verify=wants_verify(exchange.headers),
            trace=begin(runtime.tracer, exchange.headers, alias, exchange.id),
        )
        envelope = Envelope(
            id=runtime.clock.new_id(self._prefix),
            created=int(came.at),
            alias=asked.request.model,
            style=asked.style,
            report_model=alias.report_model,
            wall=runtime.clock.wall,
        )
        exchange.forget()
        exchange.watch()
        tell = self._stream if asked.request.stream else self._whole
        return tell(exchange, call, envelope, kept)

    async def _stream(
        self, exchange: Exchange, call: Call, envelope: Envelope, kept: Session | None
    ) -> None:
        ending = Ending(self._state, exchange, call)
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
            keep = kept.keep if kept is not None and kept.keeps else None
            await sink.finish(outcome.terminal, keep)
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
            ending.tell()

    async def _whole(
        self, exchange: Exchange, call: Call, envelope: Envelope, kept: Session | None
    ) -> None:
        ending, sink, body = Ending(self._state, exchange, call), BodySink(), b""
        try:
            outcome = ending.outcome = await complete(call, sink)
            if not isinstance(outcome.terminal, Failed):
                body = self._northbound.whole(sink.completion(outcome.terminal), envelope)
                if kept is not None and kept.keeps:
                    await kept.keep(loads(body))
        except Fault as fault:
            ending.fault = fault
            await exchange.fail(fault)
        except asyncio.CancelledError:
            ending.fault = exchange.stopped()
            if ending.fault is not None:
                await exchange.fail(ending.fault)
        else:
            head = head_lines(outcome.head)
            if isinstance(outcome.terminal, Failed):
                await exchange.fail(outcome.terminal.fault, head)
            else:
                await exchange.answer(200, body, head)
        finally:
            ending.tell()


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
