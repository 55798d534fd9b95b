"""``usage()``: which columns a grouping needs, and how its rows are shown.

One statement over ``rollups`` and nothing else, whatever the size of the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adapters.canonical.faults import Fault
from gateway.store.base import UsageQuery
from gateway.store.periods import day_of, day_text
from gateway.store.rows import ROLLUP_SUMS

GROUPS: dict[str, str] = {
    "key": "key_id",
    "alias": "alias",
    "provider": "provider",
    "model": "model",
    "day": "day",
    "project": "project",
    "prompt": "prompt",
}
"""What usage can be grouped by, and the column of each."""


def statement(query: UsageQuery) -> tuple[str, list[Any]]:
    """The statement (with ``?`` marks) and its values. Times select whole UTC days: the day of
    ``since`` and that of the last moment before ``until`` are included.

    :raises Fault: ``bad_request`` for a grouping that does not exist.
    """
    unknown = [name for name in query.by if name not in GROUPS]
    if unknown:
        raise Fault(
            "bad_request",
            f"Usage can't be grouped by {unknown[0]!r}. Choose from: {', '.join(GROUPS)}.",
            param="by",
        )
    columns = [GROUPS[name] for name in query.by]
    names = ["max(key_name) AS key_name"] if "key" in query.by else []
    sums = [f"CAST(coalesce(sum({name}), 0) AS BIGINT) AS {name}" for name in ROLLUP_SUMS]
    where, values = _conditions(query)
    sql = f"SELECT {', '.join([*columns, *names, *sums])} FROM rollups WHERE {where}"  # noqa: S608
    if columns:
        order = ", ".join(columns)
        sql += f" GROUP BY {order} ORDER BY {order}"
    return sql, values


def shown(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row as the interface gives it: ``key`` is the name, ``day`` is a date."""
    values = dict(row)
    if "key_id" in values:
        values = {"key": values.pop("key_name"), **values}
    if "day" in values:
        values["day"] = day_text(values["day"])
    return values


def _conditions(query: UsageQuery) -> tuple[str, list[Any]]:
    where, values = ["day >= ?"], [day_of(query.since) if query.since is not None else 0]
    if query.until is not None:
        last = day_of(query.until)
        where.append("day <= ?")
        values.append(last - 1 if query.until == last * 86_400 else last)
    if query.project is not None:
        where.append("project = ?")
        values.append(query.project)  # type: ignore[arg-type]
    return " AND ".join(where), values
