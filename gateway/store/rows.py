"""The ledger's columns; the interface's rows are tuples in their order.

Knows the tables' shape (``docs/ledger.md``), not the SQL of any database.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from operator import itemgetter
from typing import Any

from adapters.wire.json import dumps, loads
from gateway.store.base import AttemptRow, RequestRow, Settlement

REQUEST = [*RequestRow._fields, "lease_until", "holds_slot"]
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
"""Columns of ``requests`` that are written when it ends: a :class:`RequestEnd`, and when."""

FIRST_ATTEMPT = [*AttemptRow._fields, "day"]
"""Columns of ``attempts`` that are written with a call's row, whose lease is theirs as well; the
call's id stands for its ``request_seq``."""

ATTEMPT = [*FIRST_ATTEMPT, "lease_until"]
"""Columns of ``attempts`` that are written when a later try begins."""

written = itemgetter(
    slice(Settlement._fields.index("ended_at"), Settlement._fields.index("overrun_nano"))
)
"""What of a settlement is written as it is."""

ATTEMPT_END = [*written(Settlement._fields), "charged_nano", "overrun_nano"]
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
