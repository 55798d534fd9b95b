"""The ledger's columns, and how the interface's rows become tuples in their order.

Knows the tables' shape (``docs/ledger.md``), not the SQL of any database.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from adapters.wire.json import dumps, loads
from gateway.store.base import AttemptRow, RequestEnd, RequestRow, Settlement

REQUEST = [
    "id",
    "at",
    "project",
    "key_id",
    "key_name",
    "alias",
    "origin",
    "stream",
    "config_hash",
    "end_user",
    "parent",
    "prompt",
    "prompt_hash",
    "trace_id",
    "route",
    "status",
    "lease_until",
    "holds_slot",
]
"""Columns of ``requests`` that are written when the call begins."""

REQUEST_END = [
    "status",
    "http_status",
    "fault",
    "first_cause",
    "attempt_count",
    "timings",
    "ended_at",
]
"""Columns of ``requests`` that are written when it ends."""

ATTEMPT = [
    "id",
    "number",
    "kind",
    "at",
    "day",
    "provider",
    "model",
    "dialect",
    "estimated_input",
    "reserved_tokens",
    "reserved_nano",
    "price_table",
    "lease_until",
    "status",
]
"""Columns of ``attempts`` that are written when a try begins (``request_seq`` apart)."""

ATTEMPT_END = [
    "status",
    "usage_source",
    "ended_at",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_nano",
    "charged_nano",
    "overrun_nano",
    "usage_invalid",
    "ttft_ms",
    "total_ms",
    "finish_reason",
    "fault",
    "fault_message",
    "upstream_status",
    "upstream_request_id",
    "model_reported",
    "dropped",
    "adjusted",
    "injected",
    "counts",
    "timings",
]
"""Columns of ``attempts`` that are written when it is settled."""

ROLLUP_KEY = ["day", "project", "key_id", "alias", "provider", "model", "prompt"]
ROLLUP_SUMS = [
    "requests",
    "attempts",
    "refused",
    "faults",
    "unknown_usage",
    "estimated_usage",
    "input_tokens",
    "output_tokens",
    "cache_read_tokens",
    "cache_write_tokens",
    "reasoning_tokens",
    "cost_nano",
    "estimated_nano",
    "overrun_nano",
]

ACCOUNT = [
    "key_id",
    "day",
    "day_nano",
    "month_nano",
    "total_nano",
    "reserved_nano",
    "in_flight",
    "minute",
]

STRUCTURED: dict[str, Any] = {
    "route": (),
    "dropped": (),
    "adjusted": (),
    "injected": (),
    "timings": {},
    "counts": {},
    "limits": {},
    "settings": {},
    "models": None,
}
"""Columns that hold JSON, and what ``NULL`` stands for in them."""

_NO_NOTES = (None, None, None, None)

BOOLEAN = frozenset({"stream", "holds_slot", "usage_invalid"})


def packed(value: Collection[Any]) -> str | None:
    """JSON text, or ``None`` where there is nothing in it."""
    return dumps(value).decode() if value else None


def readable(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as loaded, with its JSON columns parsed and its flags as booleans."""
    shown = dict(row)
    for name, value in shown.items():
        if name in STRUCTURED:
            shown[name] = STRUCTURED[name] if value is None else loads(value)
        elif name in BOOLEAN and value is not None:
            shown[name] = bool(value)
    return shown


def request_values(row: RequestRow, lease_until: float, holds_slot: bool) -> tuple[Any, ...]:
    """The values of :data:`REQUEST`."""
    return (
        row.id,
        row.at,
        row.project,
        row.key_id,
        row.key_name,
        row.alias,
        row.origin,
        row.stream,
        row.config_hash,
        row.end_user,
        row.parent,
        row.prompt,
        row.prompt_hash,
        row.trace_id,
        packed(row.route),
        "open",
        lease_until,
        holds_slot,
    )


def request_end_values(end: RequestEnd, ended_at: float, request_id: str) -> tuple[Any, ...]:
    """The values of :data:`REQUEST_END`, and whose they are. A status of 0 means that no answer
    was sent."""
    return (
        end.status,
        end.http_status or None,
        end.fault,
        end.first_cause,
        end.attempts,
        packed(end.timings),
        ended_at,
        request_id,
    )


def attempt_values(row: AttemptRow, day: int, lease_until: float) -> tuple[Any, ...]:
    """The call's id, and the values of :data:`ATTEMPT`."""
    return (
        row.request_id,
        row.id,
        row.number,
        row.kind,
        row.at,
        day,
        row.provider,
        row.model,
        row.dialect,
        row.estimated_input,
        row.reserved_tokens,
        row.reserved_nano,
        row.price_table,
        lease_until,
        "open",
    )


def settled_values(end: Settlement, charged_nano: int, overrun_nano: int) -> tuple[Any, ...]:
    """The values of :data:`ATTEMPT_END`, and whose they are."""
    return (
        end.status,
        end.usage_source,
        end.ended_at,
        end.input_tokens,
        end.output_tokens,
        end.cache_read_tokens,
        end.cache_write_tokens,
        end.reasoning_tokens,
        end.cost_nano,
        charged_nano,
        overrun_nano,
        end.usage_invalid,
        end.ttft_ms,
        end.total_ms,
        end.finish_reason,
        end.fault,
        end.fault_message,
        end.upstream_status,
        end.upstream_request_id,
        end.model_reported,
        *_notes(end),
        packed(end.timings),
        end.attempt_id,
    )


def _notes(end: Settlement) -> tuple[str | None, ...]:
    """What is seldom there."""
    if end.dropped or end.adjusted or end.injected or end.counts:
        return packed(end.dropped), packed(end.adjusted), packed(end.injected), packed(end.counts)
    return _NO_NOTES
