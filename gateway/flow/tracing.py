"""A call's place in a trace, and a span for each call and each try.

The trace id is on the ledger's row and on the log's line whether spans are made or not, and goes
on to the provider, so that both sides of a call can be found from either. Attributes are names
and numbers, never content. Must not know who makes spans.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from adapters.canonical.record import record
from gateway.observe.traces import NO_SPAN, Span, TraceContext, Tracer, parse
from gateway.settings.snapshot import Alias, Deployment
from gateway.store.base import Settlement

OPERATIONS = {"chat": "chat", "embedding": "embeddings"}
"""``gen_ai.operation.name`` by the kind of the alias."""

SYSTEMS = {
    "openai-responses": "openai",
    "openai-chat": "openai",
    "anthropic-messages": "anthropic",
}
"""``gen_ai.provider.name``: whose protocol it is. The provider's own name here stands beside it."""


@record(frozen=True, slots=True)
class Trace:
    """Where a call belongs: the caller's context, if it sent one, and the call's own span."""

    parent: TraceContext | None = None
    span: Span = NO_SPAN
    context: TraceContext | None = field(init=False)
    """What the call's tries are children of."""
    id: str | None = field(init=False)
    """The trace's id, for the ledger and the log."""

    def __post_init__(self) -> None:
        context = self.parent if self.span.context is None else self.span.context
        object.__setattr__(self, "context", context)
        object.__setattr__(self, "id", None if context is None else context.trace_id)


UNTRACED = Trace()


def begin(tracer: Tracer, headers: Mapping[str, str], alias: Alias, request: str) -> Trace:
    """A call begins.

    :param headers: the caller's, names in lower case; ``traceparent`` is looked for.
    :param request: the call's id.
    """
    given = headers.get("traceparent")
    if given is None and not tracer.makes_spans:
        return UNTRACED
    parent = parse(given)
    operation, attributes = OPERATIONS[alias.kind], {"gateway.request.id": request}
    span = tracer.span(operation, alias.name, attributes, parent=parent, client=False)
    return UNTRACED if parent is None and span is NO_SPAN else Trace(parent, span)


def begin_try(
    tracer: Tracer, trace: Trace, operation: str, deployment: Deployment, number: int, kind: str
) -> tuple[Span, TraceContext | None]:
    """A try begins: its span, and the context that goes to the provider."""
    span = tracer.span(
        operation,
        deployment.model,
        {
            "gen_ai.provider.name": SYSTEMS[deployment.provider.dialect],
            "gateway.provider": deployment.provider.name,
            "gateway.attempt.number": number,
            "gateway.attempt.kind": kind,
        },
        parent=trace.context,
    )
    if span.context is not None:
        return span, span.context
    return span, None if trace.parent is None else trace.parent.child()


def end_try(span: Span, settled: Settlement) -> None:
    """A try has ended, as its row says."""
    span.set("gen_ai.response.model", settled.model_reported)
    span.set("gen_ai.usage.input_tokens", settled.input_tokens)
    span.set("gen_ai.usage.output_tokens", settled.output_tokens)
    if settled.finish_reason is not None:
        span.set("gen_ai.response.finish_reasons", (settled.finish_reason,))
    span.set("http.response.status_code", settled.upstream_status)
    span.set("gateway.cost_nano", settled.cost_nano)
    span.end(settled.fault)
