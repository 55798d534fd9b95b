"""How long each table keeps its rows: one line a table, read by both stores' sweeps."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.store.base import StoreError

DAYS: dict[str, float] = {
    "requests": 90.0,
    "rollups": 800.0,
    "responses": 30.0,
    "conversations": 90.0,
    "idempotency": 1.0,
    "seals": 90.0,
    "runs": 30.0,
    "run_stubs": 365.0,
}
"""Days kept unless ``[store] retention`` says otherwise. ``requests`` takes its ``attempts``
with it; ``responses`` and ``conversations`` count from their last use; ``idempotency`` are the
answers that are told again; ``seals`` count from when they were last made; ``runs`` lose their
content and leave ``run_stubs``. Keys and accounts are kept: budgets are counted on them."""

CHUNK = 500
"""Rows deleted in one transaction, so that a sweep never holds up the calls."""


def cutoffs(now: float, retention: Mapping[str, float]) -> dict[str, float]:
    """By table, the Unix time before which rows go.

    :param retention: days by table, in place of the defaults; ``inf`` keeps for ever.
    :raises StoreError: a table that has no retention.
    """
    unknown = [name for name in retention if name not in DAYS]
    if unknown:
        raise StoreError(
            f"[store] retention names {unknown[0]!r}; it can set: {', '.join(sorted(DAYS))}."
        )
    return {name: now - 86_400 * retention.get(name, days) for name, days in DAYS.items()}
