"""What an attempt used and cost, and the row that says so.

Cost, usage and times are pure functions of what was seen (fault kind K13). Must not know which
dialect the provider speaks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from itertools import pairwise
from typing import Any

from adapters.adapter import Pumped
from adapters.canonical.events import (
    CONTENT,
    Event,
    Failed,
    Finished,
    PartStarted,
    Started,
    TextRun,
    Usage,
    UsageReported,
)
from adapters.canonical.facts import Price, Rate
from adapters.canonical.faults import Fault
from adapters.canonical.parts import ToolCall
from adapters.canonical.record import record
from adapters.wire.errors import filtered
from gateway.flow.context import Call, Prepared
from gateway.flow.echo import without_echo
from gateway.flow.gate import is_content
from gateway.store.base import RequestEnd, Settlement, Status, UsageSource

MILLION = 1_000_000

WIRE_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}(?:\[\d{1,6}\]|\.[a-z][a-z0-9_]{0,39})*")
"""A field's path as the protocols write it: snake case, list places, dots."""


def cost(usage: Usage, price: Price | None) -> int | None:
    """Nano-dollars for ``usage``, each class once; ``None`` where the price is not known.

    A class that the provider did not report costs nothing; one whose rate the table lacks is
    charged at the input's rate, never forgotten.
    """
    if price is None:
        return None
    prompt = usage.prompt if usage.prompt is not None else 0
    write_1h = usage.cache_write_1h or 0
    charges: tuple[tuple[int, Rate | None], ...] = (
        (usage.input or 0, price.input),
        (usage.cache_read or 0, price.cache_read),
        ((usage.cache_write or 0) - write_1h, price.cache_write),
        (write_1h, price.cache_write_1h or price.cache_write),
        (usage.output or 0, price.output),
    )
    total = 0
    for tokens, rate in charges:
        total += tokens * (rate if rate is not None else price.input).at(prompt)
    return (total + MILLION // 2) // MILLION


def told_name(name: str) -> str:
    """A dropped field's name as the books may keep it.

    A caller can put anything into the name of an unknown field, even content or a secret: what
    is no plain wire name is told as ``(unnamed)``. The caller itself sees it in the header.
    """
    return name if WIRE_NAME.fullmatch(name) else "(unnamed)"


class Meter:
    """A stage that changes nothing and remembers what the books need."""

    __slots__ = (
        "_now",
        "first_content",
        "model",
        "on_first_content",
        "output_bytes",
        "terminal",
        "usage",
    )

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self.usage: Usage | None = None
        self.model: str | None = None
        self.output_bytes = 0
        self.first_content: float | None = None
        self.terminal: Finished | Failed | None = None
        self.on_first_content: Callable[[], None] | None = None

    def feed(self, events: list[Event]) -> list[Event]:
        """Look at ``events`` and pass them on."""
        for event in events:
            if isinstance(event, CONTENT):
                text = event.text
                self.output_bytes += len(text) if text.isascii() else len(text.encode())
            else:
                take = _TAKES.get(type(event))
                if take is not None:
                    take(self, event)
            if self.first_content is None and is_content(event):
                self.first_content = self._now()
                if self.on_first_content is not None:
                    self.on_first_content()
        return events

    def _count_usage(self, event: UsageReported) -> None:
        self.usage = event.usage

    def _learn_model(self, event: Started) -> None:
        self.model = event.model

    def _count_call(self, event: PartStarted) -> None:
        if isinstance(event.head, ToolCall):
            self.output_bytes += len(event.head.name)

    def _end(self, event: Finished | Failed) -> None:
        self.terminal = event

    def _count_run(self, event: TextRun) -> None:
        self.output_bytes += event.size


_TAKES: Mapping[type, Callable[[Meter, Any], None]] = {
    UsageReported: Meter._count_usage,
    Started: Meter._learn_model,
    PartStarted: Meter._count_call,
    Finished: Meter._end,
    Failed: Meter._end,
    TextRun: Meter._count_run,
}
"""What the books need of events that are no content, which most are."""


@record(frozen=True, slots=True)
class Consumed:
    """What an attempt used: tokens, whose numbers they are, and the price."""

    usage: Usage
    source: UsageSource
    nano: int | None


def consumed(prepared: Prepared, meter: Meter, fault: Fault | None) -> Consumed:
    """The tokens and money of an attempt that has ended.

    A proven end takes the provider's numbers. A cut takes what the provider reported so far
    and estimates the rest from what was seen. A refusal (an error status, no connection) used
    nothing.
    """
    price = prepared.facts.price
    seen = meter.usage
    proven = isinstance(meter.terminal, Finished)
    if proven and seen is not None and not seen.invalid and seen.output is not None:
        return Consumed(seen, "provider", cost(seen, price))
    if fault is not None and _unbilled(fault, meter):
        return Consumed(Usage(), "unknown", 0)
    estimate = _estimated(prepared, meter, seen)
    return Consumed(estimate, "estimated", cost(estimate, price))


def _unbilled(fault: Fault, meter: Meter) -> bool:
    """Whether the provider did no work that it would charge for."""
    if meter.output_bytes or meter.usage is not None:
        return False
    refused = fault.upstream_status is not None and fault.upstream_status >= 400
    return fault.billed is False or refused or fault.kind == "connect_failed"


def _estimated(prepared: Prepared, meter: Meter, seen: Usage | None) -> Usage:
    """The provider's numbers where it gave usable ones, our own where it did not."""
    output = -(-meter.output_bytes // 4)
    if seen is None or seen.invalid or seen.input is None:
        return Usage(
            input=prepared.estimated_input, output=output, invalid=seen is not None and seen.invalid
        )
    reported = seen.output if seen.output is not None else 0
    return replace(seen, output=max(reported, output))


@record(frozen=True, slots=True)
class Ended:
    """An attempt's end, as far as the row needs it. ``fault`` is ``None`` for success; ``counts``
    are those of the proof, ``pause`` the seconds before the call's next attempt."""

    fault: Fault | None
    committed: bool
    pumped: Pumped | None
    timings: Mapping[str, float]
    counts: Mapping[str, int] = field(default_factory=dict)
    pause: float = 0.0


def status_of(ended: Ended, meter: Meter) -> Status:
    """The row's status: a proven end is ``completed`` whatever the caller did later."""
    if ended.fault is None:
        return "completed"
    if meter.output_bytes and ended.committed:
        return "partial"
    return "cancelled" if ended.fault.kind == "cancelled" else "failed"


def settlement(
    call: Call,
    attempt_id: str,
    prepared: Prepared,
    meter: Meter,
    ended: Ended,
    request: RequestEnd | None = None,
) -> Settlement:
    """The row's last words; ``request`` ends the call with it."""
    clock = call.runtime.clock
    used = consumed(prepared, meter, ended.fault)
    now = clock.monotonic()
    started = ended.timings["opened"]
    terminal = meter.terminal
    usage, nano = used.usage, used.nano
    fault, sent = ended.fault, prepared.encoded.call.body
    return Settlement(
        attempt_id=attempt_id,
        request_id=call.id,
        ended_at=clock.wall(),
        status=status_of(ended, meter),
        usage_source=used.source,
        input_tokens=usage.prompt,
        output_tokens=usage.output,
        cache_read_tokens=usage.cache_read,
        cache_write_tokens=usage.cache_write,
        reasoning_tokens=usage.reasoning,
        cost_nano=nano,
        overrun_nano=max(0, nano - prepared.nano) if nano is not None else 0,
        usage_invalid=usage.invalid,
        ttft_ms=None if meter.first_content is None else (meter.first_content - started) * 1000,
        total_ms=(now - started) * 1000,
        finish_reason=terminal.reason if isinstance(terminal, Finished) else None,
        fault=None if fault is None else fault.kind,
        fault_message=None if fault is None else without_echo(fault.message, sent),
        upstream_status=_upstream_status(ended),
        upstream_request_id=_upstream_request_id(ended),
        model_reported=_named(meter.model),
        dropped=tuple(map(told_name, prepared.dropped)),
        adjusted=prepared.adjusted,
        injected=prepared.encoded.injected,
        timings=_stages(ended.timings, ended.pumped),
        counts={
            **{f"trimmed_{name}": number for name, number in prepared.trimmed.items()},
            **call.redactions,
            **ended.counts,
        },
        request=request,
        pause=ended.pause,
    )


def _upstream_status(ended: Ended) -> int | None:
    if ended.fault is not None and ended.fault.upstream_status is not None:
        return ended.fault.upstream_status
    return None if ended.pumped is None else ended.pumped.status


def _upstream_request_id(ended: Ended) -> str | None:
    if ended.fault is not None and ended.fault.upstream_request_id is not None:
        return _named(ended.fault.upstream_request_id)
    if ended.pumped is None:
        return None
    headers = ended.pumped.headers
    return _named(headers.get("x-request-id", headers.get("request-id")))


_NAME = re.compile(r"(?!.*sk-)[\w.:/@\[\] -]{1,128}")


def _named(text: str | None) -> str | None:
    """A name as a provider gave it, unless it is too long for one or looks like a key."""
    if text is None or _NAME.fullmatch(text) is not None:
        return text
    return filtered(text)[:128]


def _stages(marks: Mapping[str, float], pumped: Pumped | None) -> dict[str, float]:
    """Milliseconds in each stage of the attempt, from monotonic marks."""
    points = dict(marks)
    if pumped is not None:
        for name in ("sent_at", "headers_at", "first_event_at", "ended_at"):
            at = getattr(pumped, name)
            if at is not None:
                points[name.removesuffix("_at")] = at
    ordered = sorted(points.items(), key=lambda item: item[1])
    stages: dict[str, float] = {}
    for (_, before), (name, at) in pairwise(ordered):
        stages[name] = round((at - before) * 1000, 3)
    return stages


def request_end(
    status: Status,
    fault: Fault | None,
    first_cause: str | None,
    attempts: int,
    timings: Mapping[str, float],
) -> RequestEnd:
    """The end of the whole call, told by its last attempt."""
    return RequestEnd(
        status=status,
        http_status=200 if fault is None else Fault(fault.kind, "").status,
        fault=None if fault is None else fault.kind,
        first_cause=first_cause,
        attempts=attempts,
        timings=timings,
    )
