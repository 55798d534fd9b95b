"""What the log and the metrics say of a call once it is over."""

from __future__ import annotations

from adapters.canonical.events import Failed
from adapters.canonical.faults import Fault
from gateway.flow.context import Call, Outcome
from gateway.flow.tracing import OPERATIONS
from gateway.http.exchange import Exchange
from gateway.observe.lines import Access
from gateway.observe.metrics import CallEnd
from gateway.observe.traces import NO_SPAN
from gateway.services.state import State


class Ending:
    """One call's end: ``outcome`` or ``fault`` is filled in by whoever learns of it."""

    __slots__ = ("_call", "_exchange", "_state", "_under_way", "fault", "outcome")

    def __init__(self, state: State, exchange: Exchange, call: Call) -> None:
        self._state = state
        self._exchange = exchange
        self._call = call
        self.outcome: Outcome | None = None
        self.fault: Fault | None = None
        self._under_way = call.runtime.metrics.call_started(call.alias.name)

    def tell(self) -> None:
        """Write the one line, count the one call."""
        call, outcome = self._call, self.outcome
        seconds = call.runtime.clock.monotonic() - call.started
        kind = self._kind()
        status = 499 if kind == "cancelled" else self._exchange.status  # 499: in the log alone
        provider, first, written = "", None, None
        if outcome is not None:
            if outcome.deployment is not None:
                provider = outcome.deployment.provider.name
            if outcome.first_content_at is not None:
                first = outcome.first_content_at - call.started
            if outcome.usage is not None:
                written = outcome.usage.output
        alias, operation = call.alias.name, OPERATIONS[call.alias.kind]
        stream = call.request.stream
        end = CallEnd(alias, operation, provider, status, kind, seconds, first, written, stream)
        call.runtime.metrics.call_ended(end, self._under_way)
        if self._state.logs.tells(status):
            self._state.logs.access(self._access(seconds, status, kind))
        span = call.trace.span
        if span is not NO_SPAN:
            span.set("http.response.status_code", status)
            span.end(kind or None)

    def _access(self, seconds: float, status: int, kind: str) -> Access:
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
            status=status,
            ms=round(seconds * 1000, 3),
            project=call.principal.project,
            key=call.principal.key_id,
            alias=call.alias.name,
            deployment=None if deployment is None else deployment.name,
            stream=call.request.stream,
            attempts=None if head is None else len(head.attempts),
            fault=kind or None,
            detail=None if fault is None else fault.detail,
            ttft_ms=None if first is None else round((first - call.started) * 1000, 3),
            input_tokens=None if usage is None else usage.prompt,
            output_tokens=None if usage is None else usage.output,
            cost_nano=None if outcome is None else outcome.cost_nano,
            trace=call.trace.id,
        )

    def _kind(self) -> str:
        """The fault's kind, or nothing for success."""
        if self.fault is not None:
            return self.fault.kind
        if self.outcome is None:
            return "cancelled" if self._exchange.gone else "internal"
        terminal = self.outcome.terminal
        return terminal.fault.kind if isinstance(terminal, Failed) else ""
