"""Trace context as the W3C writes it, and spans with and without the SDK."""

from __future__ import annotations

import builtins
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.observe.tracer import TracingUnavailable, tracer
from gateway.observe.traces import NO_SPAN, NoTracer, TraceContext, fresh, parse

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"00-{TRACE}-{SPAN}-01", TraceContext(TRACE, SPAN, True)),
        (f"00-{TRACE}-{SPAN}-00", TraceContext(TRACE, SPAN, False)),
        (f" 00-{TRACE}-{SPAN}-03 ", TraceContext(TRACE, SPAN, True)),
        (f"cc-{TRACE}-{SPAN}-01-what-the-future-brings", TraceContext(TRACE, SPAN, True)),
        (f"cc-{TRACE}-{SPAN}-01", TraceContext(TRACE, SPAN, True)),
        (f"00-{TRACE}-{SPAN}-01-more", None),
        (f"ff-{TRACE}-{SPAN}-01", None),
        (f"00-{'0' * 32}-{SPAN}-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-{SPAN}-01", None),
        (f"00-{TRACE[:-1]}-{SPAN}-01", None),
        (f"00-{TRACE}-{SPAN}", None),
        ("", None),
        (None, None),
    ],
)
def test_parse(header: str | None, expected: TraceContext | None) -> None:
    assert parse(header) == expected


@given(st.text(max_size=80))
def test_parse_takes_anything(header: str) -> None:
    parse(header)


def test_a_context_survives_its_header_and_a_child_keeps_the_trace() -> None:
    context = fresh()
    assert parse(context.header()) == context
    child = TraceContext(TRACE, SPAN, True).child()
    assert (child.trace_id, child.sampled) == (TRACE, True)
    assert child.span_id != SPAN
    assert parse(child.header()) == child


def test_switched_off_there_is_one_span_that_does_nothing_and_no_import() -> None:
    off = tracer(enabled=False)
    span = off.span("chat", "gpt", {})
    assert span is NO_SPAN
    assert isinstance(off, NoTracer)
    span.set("gen_ai.usage.input_tokens", 1)
    span.end("upstream_server")
    off.close()
    code = (
        "import sys, gateway.observe.tracer as t; t.tracer(enabled=False);"
        "sys.exit(any(m.startswith('opentelemetry') for m in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_switched_on_without_the_extra_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    real = builtins.__import__

    def without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(name, name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without)
    monkeypatch.delitem(sys.modules, "gateway.observe.otel", raising=False)
    with pytest.raises(TracingUnavailable, match=r"llm-gateway\[otel\]"):
        tracer(enabled=True)


def test_spans_follow_the_genai_conventions() -> None:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import SpanKind

    exporter = InMemorySpanExporter()
    on = tracer(enabled=True, version="1", exporter=exporter)
    parent = TraceContext(TRACE, SPAN, True)
    call = on.span("chat", "smart", {}, parent=parent, client=False)
    assert call.context is not None
    inner = on.span("chat", "gpt", {"gen_ai.provider.name": "openai"}, parent=call.context)
    inner.set("gen_ai.usage.input_tokens", 3)
    inner.set("gen_ai.usage.output_tokens", None)
    inner.end("upstream_server")
    call.end()
    on.close()
    attempt, whole = exporter.get_finished_spans()
    assert (attempt.name, attempt.kind) == ("chat gpt", SpanKind.CLIENT)
    assert (whole.name, whole.kind) == ("chat smart", SpanKind.SERVER)
    assert dict(attempt.attributes or {}) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "gpt",
        "gen_ai.provider.name": "openai",
        "gen_ai.usage.input_tokens": 3,
        "error.type": "upstream_server",
    }
    assert attempt.status.status_code.name == "ERROR"
    assert f"{whole.context.trace_id:032x}" == TRACE
    assert whole.parent is not None
    assert f"{whole.parent.span_id:016x}" == SPAN
    assert attempt.parent is not None
    assert attempt.parent.span_id == whole.context.span_id


def test_an_unsampled_parent_is_not_recorded() -> None:
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter = InMemorySpanExporter()
    on = tracer(enabled=True, exporter=exporter)
    on.span("chat", "m", {}, parent=TraceContext(TRACE, SPAN, False)).end()
    on.close()
    assert exporter.get_finished_spans() == ()
