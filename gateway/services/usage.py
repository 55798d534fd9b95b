"""Questions about the bill, checked before they reach the books."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from adapters.canonical.faults import Fault
from gateway.store.base import Store, UsageQuery

GROUPS = ("key", "alias", "provider", "model", "day", "project", "prompt")


class UsageRequest(BaseModel):
    """``by``: any of :data:`GROUPS`, separated by commas. ``since`` and ``until`` are UTC days
    (``2026-11-30``) or moments."""

    model_config = ConfigDict(extra="forbid")

    by: str = "key"
    since: str | None = None
    until: str | None = None
    project: str | None = None
    format: Literal["json", "csv"] = "json"

    @property
    def groups(self) -> list[str]:
        """The parts of ``by``; none sums up everything."""
        return [part for part in map(str.strip, self.by.split(",")) if part]


async def usage_rows(store: Store, asked: UsageRequest) -> list[Mapping[str, Any]]:
    """The sums, one row a group.

    :raises Fault: ``bad_request`` for an unknown group or a day that is none.
    """
    for group in asked.groups:
        if group not in GROUPS:
            raise Fault(
                "bad_request",
                f"Usage is grouped by any of {', '.join(GROUPS)}, separated by commas.",
                param="by",
            )
    since, until = _day(asked.since, "since"), _day(asked.until, "until")
    if since is not None and until is not None and since > until:
        raise Fault("bad_request", "The period ends before it begins.", param="until")
    return await store.usage(UsageQuery(tuple(asked.groups), since, until, asked.project))


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """The same as comma-separated values with a header line; empty for no rows."""
    out = io.StringIO()
    if rows:
        writer = csv.DictWriter(out, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue()


def _day(text: str | None, param: str) -> float | None:
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Fault("bad_request", "Give the day as 2026-11-30 (UTC).", param=param) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()
