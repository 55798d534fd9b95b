"""Spans through the OpenTelemetry SDK. Imported only where tracing is switched on.

A provider of its own, not the process-wide one, so that it can be built twice and closed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)
from opentelemetry.trace import Span as OtelSpan

from gateway.observe.traces import Span, TraceContext, Value

FLUSH_MS = 2000
"""How long closing waits for a collector that does not answer."""


class _Span:
    __slots__ = ("_span", "context")

    def __init__(self, span: OtelSpan) -> None:
        self._span = span
        made = span.get_span_context()
        self.context: TraceContext | None = TraceContext(
            f"{made.trace_id:032x}", f"{made.span_id:016x}", made.trace_flags.sampled
        )

    def set(self, name: str, value: Value | None) -> None:
        if value is not None:
            self._span.set_attribute(name, value)

    def end(self, fault: str | None = None) -> None:
        if fault is not None:
            self._span.set_attribute("error.type", fault)
            self._span.set_status(Status(StatusCode.ERROR))
        self._span.end()


class OtelTracer:
    """Owns a tracer provider and its exporting thread; the SDK's queue is bounded."""

    makes_spans = True

    def __init__(self, version: str, exporter: SpanExporter | None) -> None:
        resource = Resource.create({"service.name": "llm-gateway", "service.version": version})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter or _otlp()))
        self._tracer = self._provider.get_tracer("gateway", version)

    def span(
        self,
        operation: str,
        model: str,
        attributes: Mapping[str, Value],
        *,
        parent: TraceContext | None = None,
        client: bool = True,
    ) -> Span:
        span = self._tracer.start_span(
            f"{operation} {model}",
            context=None if parent is None else _remote(parent),
            kind=SpanKind.CLIENT if client else SpanKind.SERVER,
            attributes={
                "gen_ai.operation.name": operation,
                "gen_ai.request.model": model,
                **attributes,
            },
        )
        return _Span(span)

    def close(self) -> None:
        self._provider.force_flush(FLUSH_MS)
        self._provider.shutdown()


def _remote(parent: TraceContext) -> Any:
    flags = TraceFlags(TraceFlags.SAMPLED if parent.sampled else TraceFlags.DEFAULT)
    context = SpanContext(
        int(parent.trace_id, 16), int(parent.span_id, 16), is_remote=True, trace_flags=flags
    )
    return set_span_in_context(NonRecordingSpan(context))


def _otlp() -> SpanExporter:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import (  # noqa: PLC0415
        OTLPSpanExporter,
    )

    exporter: SpanExporter = OTLPSpanExporter()
    return exporter
