"""The endpoint that all three conversation dialects share: body in, answer out.

What differs between them is the :class:`Northbound` that it is made with.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from adapters.canonical.events import Failed
from adapters.canonical.faults import Fault
from adapters.wire.json import loads
from gateway.flow.complete import complete
from gateway.flow.context import Call, Outcome
from gateway.http.body import Disconnected, Receive, read_body
from gateway.http.exchange import Exchange, Scope, Send
from gateway.http.headers import head_headers
from gateway.http.sink import BodySink, StreamSink
from gateway.northbound.base import Envelope, Northbound
from gateway.northbound.base import Limits as BodyLimits
from gateway.observe.lines import Access
from gateway.observe.metrics import CallEnd
from gateway.services.aliases import resolve
from gateway.services.responses import Session, session
from gateway.services.state import State

MEGABYTE = 1024 * 1024


class Conversation:
    """An ASGI endpoint for one dialect.

    :param prefix: of the ids that the dialect gives its answers.
    """

    def __init__(self, state: State, northbound: Northbound, prefix: str) -> None:
        self._state = state
        self._northbound = northbound
        self._prefix = prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; whatever goes wrong is answered in the dialect."""
        exchange = Exchange(scope, receive, send, self._northbound.name)
        self._state.live.add(exchange)
        try:
            await self._serve(exchange)
        except Fault as fault:
            await exchange.fail(fault)
        except Disconnected:
            exchange.gone = True
        except asyncio.CancelledError:
            exchange.stopped()
        finally:
            exchange.unwatch()
            self._state.live.discard(exchange)

    async def _serve(self, exchange: Exchange) -> None:
        state = self._state
        runtime = state.runtime
        started, at = runtime.clock.monotonic(), runtime.clock.wall()
        principal = state.keyring.authenticate(exchange.headers, at)
        limit = int(runtime.snapshot.server.max_body_mb * MEGABYTE)
        body = await read_body(exchange.receive, exchange.headers, limit)
        limits = BodyLimits(choices=runtime.snapshot.server.max_n)
        given = self._northbound.parse(body, exchange.headers, limits)
        alias = resolve(runtime.snapshot, principal, given.request.model)
        async with session(runtime, principal, given, exchange.id, alias.deadline) as kept:
            asked = kept.asked
            call = Call(
                id=exchange.id,
                principal=principal,
                request=asked.request,
                alias=alias,
                runtime=runtime,
                started=started,
                at=at,
                size=len(body) + kept.size,
                dropped=asked.dropped,
                strict=is_strict(exchange.headers),
                verify=wants_verify(exchange.headers),
            )
            exchange.watch()
            ending = Ending(state, exchange, call)
            try:
                await self._answer(exchange, call, kept, ending)
            finally:
                ending.tell()

    async def _answer(self, exchange: Exchange, call: Call, kept: Session, ending: Ending) -> None:
        asked = kept.asked
        envelope = Envelope(
            id=call.runtime.clock.new_id(self._prefix),
            created=int(call.at),
            alias=asked.request.model,
            style=asked.style,
            report_model=call.alias.report_model,
        )
        if asked.request.stream:
            await self._stream(exchange, call, envelope, kept, ending)
        else:
            await self._whole(exchange, call, envelope, kept, ending)

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
        headers = head_headers(outcome.head)
        if isinstance(outcome.terminal, Failed):
            await exchange.fail(outcome.terminal.fault, headers)
            return
        await exchange.answer(200, body, headers)


class Ending:
    """What the log and the metrics say of a request once it is over."""

    __slots__ = ("_call", "_exchange", "_state", "fault", "outcome")

    def __init__(self, state: State, exchange: Exchange, call: Call) -> None:
        self._state = state
        self._exchange = exchange
        self._call = call
        self.outcome: Outcome | None = None
        self.fault: Fault | None = None
        call.runtime.metrics.call_started(call.alias.name)

    def tell(self) -> None:
        """Write the one line, count the one call."""
        call = self._call
        seconds = call.runtime.clock.monotonic() - call.started
        call.runtime.metrics.call_ended(self._call_end(seconds))
        self._state.logs.access(self._access(seconds))

    def _access(self, seconds: float) -> Access:
        call, outcome, exchange = self._call, self.outcome, self._exchange
        head = None if outcome is None else outcome.head
        usage = None if outcome is None else outcome.usage
        first = None if outcome is None else outcome.first_content_at
        deployment = None if outcome is None else outcome.deployment
        fault = self.fault
        if fault is None and outcome is not None and isinstance(outcome.terminal, Failed):
            fault = outcome.terminal.fault
        return Access(
            request=call.id,
            method="POST",
            route=exchange.scope["path"],
            status=self._status(),
            ms=round(seconds * 1000, 3),
            project=call.principal.project,
            key=call.principal.key_id,
            alias=call.alias.name,
            deployment=None if deployment is None else deployment.name,
            stream=call.request.stream,
            attempts=None if head is None else len(head.attempts),
            fault=self._kind() or None,
            detail=None if fault is None else fault.detail,
            ttft_ms=None if first is None else round((first - call.started) * 1000, 3),
            input_tokens=None if usage is None else usage.prompt,
            output_tokens=None if usage is None else usage.output,
            cost_nano=None if outcome is None else outcome.cost_nano,
            trace=call.trace_id,
        )

    def _kind(self) -> str:
        """The fault's kind, or nothing for success."""
        if self.fault is not None:
            return self.fault.kind
        if self.outcome is None:
            return "cancelled" if self._exchange.gone else "internal"
        terminal = self.outcome.terminal
        return terminal.fault.kind if isinstance(terminal, Failed) else ""

    def _status(self) -> int:
        """The status sent, or 499 where the caller left before the end (log only)."""
        return 499 if self._kind() == "cancelled" else self._exchange.status

    def _call_end(self, seconds: float) -> CallEnd:
        call, outcome = self._call, self.outcome
        deployment = None if outcome is None else outcome.deployment
        first = None if outcome is None else outcome.first_content_at
        usage = None if outcome is None else outcome.usage
        return CallEnd(
            alias=call.alias.name,
            operation="chat",
            provider="" if deployment is None else deployment.provider.name,
            status=self._status(),
            fault=self._kind(),
            seconds=seconds,
            ttft=None if first is None else first - call.started,
            output_tokens=None if usage is None else usage.output,
            stream=call.request.stream,
        )


def is_strict(headers: Mapping[str, str]) -> bool:
    """Whether the caller would rather have a 400 than a dropped field."""
    return headers.get("x-gateway-strict", "").lower() in ("1", "true", "yes")


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
