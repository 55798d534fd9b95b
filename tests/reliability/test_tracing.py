"""A call's trace: the caller's context taken up, passed on, written down; spans without content."""

from __future__ import annotations

import asyncio
import io
import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from gateway.observe import otel
from gateway.observe.traces import parse
from gateway.services.tracing import check_tracing
from gateway.settings.snapshot import ObserveSettings
from tests.harness import KEY, Harness, alias, gateway

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
ALIASES = (
    alias("flaky", ("openai", "fault-once-500"), ("anthropic", "echo"), retries=1),
    alias("broken", ("openai", "fault-status-500+broken"), retries=0),
    alias("vectors", ("openai", "text-embedding-3-small"), kind="embedding"),
)
SECRET = "canary-content-in-a-span"


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Where the spans go."""
    found = InMemorySpanExporter()
    monkeypatch.setattr(otel, "_otlp", lambda: found)
    return found


@pytest.fixture
async def traced(tmp_path: Path, exporter: InMemorySpanExporter) -> AsyncIterator[Harness]:
    """A gateway that makes spans."""
    observe = '[observe]\nlog_level = "error"\ntracing = true\n'
    async with gateway(tmp_path, *ALIASES, observe) as g:
        yield g


@pytest.fixture
async def plain(tmp_path: Path) -> AsyncIterator[Harness]:
    """One that does not."""
    async with gateway(tmp_path, *ALIASES) as g:
        yield g


async def ask(g: Harness, model: str, **headers: str) -> Any:
    body = {"model": model, "messages": [{"role": "user", "content": SECRET}]}
    return await g.post("/v1/chat/completions", body, headers=headers)


async def spans(g: Harness, exporter: InMemorySpanExporter) -> list[Any]:
    """What was made so far, in the order of ending."""
    await asyncio.to_thread(g.state.runtime.tracer._provider.force_flush)
    return list(exporter.get_finished_spans())


async def test_a_call_and_its_tries(traced: Harness, exporter: InMemorySpanExporter) -> None:
    answer = await ask(traced, "flaky", **PARENT)
    assert answer.status == 200
    first, second, call = await spans(traced, exporter)
    assert (call.name, first.name) == ("chat flaky", "chat fault-once-500")
    assert f"{call.context.trace_id:032x}" == TRACE
    assert f"{call.parent.span_id:016x}" == SPAN
    assert first.parent.span_id == second.parent.span_id == call.context.span_id
    assert (call.kind.name, first.kind.name) == ("SERVER", "CLIENT")
    assert call.attributes["gateway.request.id"] == answer.headers["x-request-id"]
    assert call.attributes["http.response.status_code"] == 200
    assert first.attributes["error.type"] == "upstream_server"
    assert first.attributes["gateway.attempt.kind"] == "first"
    assert second.attributes["gateway.attempt.kind"] == "retry"
    assert second.attributes["gen_ai.provider.name"] == "openai"
    assert second.attributes["gen_ai.usage.output_tokens"] > 0
    assert second.attributes["gen_ai.response.finish_reasons"] == ("stop",)
    assert "error.type" not in call.attributes


async def test_the_provider_is_sent_the_tries_own_context(
    traced: Harness, exporter: InMemorySpanExporter
) -> None:
    await ask(traced, "flaky", **PARENT)
    tries = (await spans(traced, exporter))[:2]
    seen = [parse(attempt.headers["traceparent"]) for attempt in traced.simulator.log]
    assert [s.span_id for s in seen] == [f"{t.context.span_id:016x}" for t in tries]
    assert {s.trace_id for s in seen} == {TRACE}


@pytest.mark.parametrize("header", [None, "nonsense", f"00-{'0' * 32}-{SPAN}-01"])
async def test_without_a_context_the_trace_is_our_own(
    traced: Harness, exporter: InMemorySpanExporter, header: str | None
) -> None:
    answer = await ask(traced, "m-openai", **({} if header is None else {"traceparent": header}))
    row = await traced.explain(answer)
    attempt, call = await spans(traced, exporter)
    assert call.parent is None
    assert row["trace_id"] == f"{call.context.trace_id:032x}"
    assert attempt.parent.span_id == call.context.span_id


async def test_streams_embeddings_and_failures_too(
    traced: Harness, exporter: InMemorySpanExporter
) -> None:
    await traced.chat("m-claude", stream=True)
    await traced.post("/v1/embeddings", {"model": "vectors", "input": SECRET})
    await ask(traced, "broken")
    ended = [
        (span.name, span.attributes.get("error.type")) for span in await spans(traced, exporter)
    ]
    assert ended == [
        ("chat claude-sonnet-4-6", None),
        ("chat m-claude", None),
        ("embeddings text-embedding-3-small", None),
        ("embeddings vectors", None),
        ("chat fault-status-500+broken", "upstream_server"),
        ("chat broken", "upstream_server"),
    ]


async def test_a_caller_that_leaves_ends_its_spans(
    traced: Harness, exporter: InMemorySpanExporter, eventually: Any, chat_body: Any
) -> None:
    headers = {"authorization": f"Bearer {KEY}"}
    body = chat_body("m-openai").replace(b"one two three", b"x " * 2000)
    async with traced.http.post(
        traced.url + "/v1/chat/completions", data=body, headers=headers
    ) as reply:
        reply.close()
    await eventually(lambda: not traced.state.live)
    assert len(await spans(traced, exporter)) == 2


async def test_no_content_in_any_span(traced: Harness, exporter: InMemorySpanExporter) -> None:
    await ask(traced, "m-openai", **PARENT)
    await ask(traced, "broken")
    await ask(traced, SECRET)
    await traced.post("/v1/embeddings", {"model": "vectors", "input": SECRET})
    told = "".join(span.to_json() for span in await spans(traced, exporter))
    assert SECRET not in told
    assert KEY not in told
    assert "sk-provider" not in told


async def test_switched_off_the_callers_context_still_goes_on(
    plain: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same trace, a fresh span id for each try; in the ledger as well."""
    answer = await ask(plain, "flaky", **PARENT)
    seen = [parse(attempt.headers["traceparent"]) for attempt in plain.simulator.log]
    assert len({s.span_id for s in seen} | {SPAN}) == 3
    assert {(s.trace_id, s.sampled) for s in seen} == {(TRACE, True)}
    assert (await plain.explain(answer))["trace_id"] == TRACE
    bare = await ask(plain, "m-openai")
    assert "traceparent" not in plain.simulator.log[-1].headers
    assert (await plain.explain(bare))["trace_id"] is None


async def test_the_log_has_the_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    async with gateway(tmp_path) as g:
        await ask(g, "m-openai", **PARENT)
    lines = [json.loads(line) for line in log.getvalue().splitlines()]
    (line,) = [line for line in lines if line["logger"] == "gateway.access"]
    assert line["trace"] == TRACE


def test_a_missing_extra_is_a_fault_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not check_tracing(ObserveSettings(tracing=True))
    monkeypatch.setattr("gateway.services.tracing.find_spec", lambda name: None)
    (problem,) = check_tracing(ObserveSettings(tracing=True))
    assert "llm-gateway[otel]" in str(problem)
    assert not check_tracing(ObserveSettings())
