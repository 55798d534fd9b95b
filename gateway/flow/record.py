"""What an attempt used and cost, and the row that says so.

Cost, usage and times are pure functions of what was seen (fault kind K13). Must not know which
dialect the provider speaks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import lru_cache
from itertools import repeat
from operator import itemgetter, mul, sub
from typing import Any

from adapters.adapter import Pumped
from adapters.canonical.events import Finished, Usage
from adapters.canonical.facts import Price, Rate
from adapters.canonical.faults import Fault
from adapters.canonical.parts import NO_EXTRAS
from adapters.canonical.record import record
from adapters.wire.errors import filtered
from gateway.flow.context import Call, Head, Prepared
from gateway.flow.echo import without_echo
from gateway.flow.gate import Gate
from gateway.flow.meter import Meter
from gateway.flow.prove import Proof
from gateway.observe.traces import NO_SPAN, Span
from gateway.store.base import Rates, RequestEnd, Settlement, Status, UsageSource
from gateway.store.rows import packed

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
    prompt = usage.largest if usage.largest is not None else usage.prompt or 0
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
        if tokens:
            total += tokens * (price.input if rate is None else rate).at(prompt)
    return (total + MILLION // 2) // MILLION


def told_name(name: str) -> str:
    """A dropped field's name as the books may keep it.

    A caller can put anything into the name of an unknown field, even content or a secret: what
    is no plain wire name is told as ``(unnamed)``. The caller itself sees it in the header.
    """
    return name if WIRE_NAME.fullmatch(name) else "(unnamed)"


@record()
class Try:
    """One attempt under way at ``deployment``, by name.

    ``marks`` are monotonic seconds by stage, ``pause`` the seconds that the call waits after it.
    ``nano`` is the price once it is settled, ``head`` what the answer's headers say of one that
    went well. From ``span`` on, what most have not, or not yet, stands in the class alone.
    """

    id: str
    number: int
    kind: str
    deployment: str
    prepared: Prepared
    meter: Meter
    gate: Gate
    marks: dict[str, float]
    span: Span = field(default=NO_SPAN, init=False)
    rates: Rates = field(default=NO_EXTRAS, init=False)
    probe: bool = field(default=False, init=False)
    pumped: Pumped | None = field(default=None, init=False)
    nano: int | None = field(default=None, init=False)
    proof: Proof | None = field(default=None, init=False)
    head: Head | None = field(default=None, init=False)
    pause: float = field(default=0.0, init=False)


def consumed(
    prepared: Prepared, meter: Meter, fault: Fault | None
) -> tuple[Usage, UsageSource, int | None]:
    """What an attempt that has ended used: tokens, whose numbers they are, and the price.

    A proven end takes the provider's numbers. A cut takes what the provider reported so far
    and estimates the rest from what was seen. A refusal (an error status, no connection) used
    nothing.
    """
    price, seen = prepared.target.deployment.facts.price, meter.usage
    if (
        seen is not None
        and isinstance(meter.terminal, Finished)
        and not (seen.invalid or seen.input is None or seen.output is None)
    ):
        return seen, "provider", cost(seen, price)
    if fault is not None and _unbilled(fault, meter):
        return Usage(), "unknown", 0
    estimate = _estimated(prepared, meter, seen)
    return estimate, "estimated", cost(estimate, price)


def _unbilled(fault: Fault, meter: Meter) -> bool:
    """Whether the provider did no work that it would charge for."""
    if meter.output_bytes or meter.usage is not None:
        return False
    refused = fault.upstream_status is not None and fault.upstream_status >= 400
    return fault.billed is False or refused or fault.kind == "connect_failed"


def _estimated(prepared: Prepared, meter: Meter, seen: Usage | None) -> Usage:
    """The provider's numbers where it gave usable ones, our own where it did not."""
    output = -(-meter.output_bytes // 4)
    if seen is None or seen.invalid:
        return Usage(prepared.estimated_input, output=output, invalid=seen is not None)
    fresh = seen.input
    if fresh is None:
        known = (seen.cache_read or 0) + (seen.cache_write or 0)
        fresh = max(0, prepared.estimated_input - known)
    return replace(seen, input=fresh, output=max(seen.output or 0, output))


def status_of(fault: Fault, meter: Meter, *, committed: bool) -> Status:
    """The status of a row that did not end ``completed``. A proven end does, whatever the caller
    did later."""
    if meter.output_bytes and committed:
        return "partial"
    return "cancelled" if fault.kind == "cancelled" else "failed"


def settlement(
    call: Call, one: Try, fault: Fault | None, chain: Sequence[Fault], now: float, *, last: bool
) -> Settlement:
    """The row's last words. ``fault`` is ``None`` for success; the ``last`` one ends the call,
    of which ``chain`` is what went wrong before.

    Rows are filled by position: in 28 keywords went more time than in all that they named.
    """
    prepared, meter = one.prepared, one.meter
    usage, source, nano = consumed(prepared, meter, fault)
    started, first, terminal = one.marks["opened"], meter.first_content, meter.terminal
    status: Status = "completed"
    if fault is not None:
        status = status_of(fault, meter, committed=one.gate.committed)
    upstream_status, upstream_request_id = _answered(one.pumped, fault)
    dropped, adjusted, injected, counts = _notes(call, one)
    return Settlement(
        one.id,
        call.id,
        call.runtime.clock.wall(),
        status,
        source,
        usage.prompt,
        usage.output,
        usage.cache_read,
        usage.cache_write,
        usage.reasoning,
        nano,
        usage.invalid,
        None if first is None else (first - started) * 1000,
        (now - started) * 1000,
        terminal.reason if isinstance(terminal, Finished) else None,
        None if fault is None else fault.kind,
        None if fault is None else without_echo(fault.message, prepared.encoded.call.body),
        upstream_status,
        upstream_request_id,
        _model_named(meter.model),
        dropped,
        adjusted,
        injected,
        _stages(one.marks, one.pumped),
        counts,
        0 if nano is None else max(0, nano - prepared.nano),
        _request_end(call, one, status, fault, chain, now) if last else None,
        one.pause,
    )


def _request_end(
    call: Call, one: Try, status: Status, fault: Fault | None, chain: Sequence[Fault], now: float
) -> RequestEnd:
    """The end of the whole call, told by its last attempt."""
    first = chain[0].kind if chain else None
    total = total_told(now - call.started)
    if fault is None:
        return RequestEnd(status, 200, None, first, one.number, total)
    kind = fault.kind
    return RequestEnd(status, Fault(kind, "").status, kind, first or kind, one.number, total)


def total_told(seconds: float) -> str:
    """The timings of a whole call, as JSON."""
    return '{"total":%.3f}' % (seconds * 1000)


_NO_NOTES = (None, None, None, None)


def _notes(call: Call, one: Try) -> tuple[str | None, ...]:
    """What is seldom there, as JSON: fields that were dropped, adjusted and put in, and numbers
    without text: what was trimmed, masked, mended."""
    prepared, proof = one.prepared, one.proof
    dropped, adjusted, injected = prepared.dropped, prepared.adjusted, prepared.encoded.injected
    trimmed = prepared.trimmed
    if proof is None and call.masking is None and not (dropped or adjusted or injected or trimmed):
        return _NO_NOTES
    counts = {
        **{f"trimmed_{name}": number for name, number in trimmed.items()},
        **call.redactions,
        **({} if proof is None else proof.counts()),
    }
    return packed([*map(told_name, dropped)]), packed(adjusted), packed(injected), packed(counts)


def _answered(pumped: Pumped | None, fault: Fault | None) -> tuple[int | None, str | None]:
    """The provider's status and its own id of the request: the fault's, or else the answer's."""
    status = request_id = None
    if pumped is not None:
        status, request_id = pumped.status, pumped.headers.get("x-request-id")
        if request_id is None:
            request_id = pumped.headers.get("request-id")
    if fault is not None:
        if fault.upstream_status is not None:
            status = fault.upstream_status
        if fault.upstream_request_id is not None:
            request_id = fault.upstream_request_id
    return status, _named(request_id)


_NAME = re.compile(r"(?!.*sk-)[\w.:/@\[\] -]{1,128}")


def _named(text: str | None) -> str | None:
    """A name as a provider gave it, unless it is too long for one or looks like a key."""
    if text is None or _NAME.fullmatch(text) is not None:
        return text
    return filtered(text)[:128]


_name_again = lru_cache(maxsize=64)(_named)


def _model_named(text: str | None) -> str | None:
    """As :func:`_named`. A deployment's answers mostly name the same model; only what is as short
    as a name is remembered."""
    return _named(text) if text is not None and len(text) > 128 else _name_again(text)


_when = itemgetter(1)
_thousands = repeat(1000)


_ALL_STAGES = '{"reserved":%.3f,"sent":%.3f,"headers":%.3f,"first_event":%.3f,"ended":%.3f}'


def _stages(marks: Mapping[str, float], pumped: Pumped | None) -> str:
    """Milliseconds in each stage of the attempt, from monotonic marks, as JSON."""
    if pumped is not None and len(marks) == 3:
        opened, reserved, sent = marks.values()
        headers, first, ended = pumped.headers_at, pumped.first_event_at, pumped.ended_at
        if (
            headers is not None
            and first is not None
            and opened <= reserved <= sent <= headers <= first <= ended
        ):
            return _ALL_STAGES % (
                (reserved - opened) * 1000,
                (sent - reserved) * 1000,
                (headers - sent) * 1000,
                (first - headers) * 1000,
                (ended - first) * 1000,
            )
    return _some_stages(marks, pumped)


def _some_stages(marks: Mapping[str, float], pumped: Pumped | None) -> str:
    """As :func:`_stages`, where some were not come to or a clock was not read in their order."""
    points: Mapping[str, Any] = marks
    if pumped is not None:
        points = {
            **marks,
            "headers": pumped.headers_at,
            "first_event": pumped.first_event_at,
            "ended": pumped.ended_at,
        }
        if None in points.values():
            points = {name: at for name, at in points.items() if at is not None}
    times = (*points.values(),)
    spans = [*map(sub, times[1:], times)]
    if min(spans, default=0) < 0:
        return _some_stages(dict(sorted(points.items(), key=_when)), None)
    return _stages_form((*points,)) % tuple(map(mul, spans, _thousands))


@lru_cache(maxsize=64)
def _stages_form(names: tuple[str, ...]) -> str:
    """JSON with a place for the milliseconds of each stage after the first."""
    return "{" + ",".join(f'"{name}":%.3f' for name in names[1:]) + "}"
