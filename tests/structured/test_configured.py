"""Schemas of the configuration are proved before the port opens."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from gateway.settings.snapshot import ObserveSettings, ServerSettings, Snapshot, StoreSettings
from gateway.structured.configured import check

EMPTY = Snapshot("h", ServerSettings(), StoreSettings(), ObserveSettings(), {}, {}, ())


def problems(**agents: Any) -> list[str]:
    return [str(found) for found in check(replace(EMPTY, extra={"agents": agents}))]


def test_good_schemas_and_none_pass() -> None:
    assert check(EMPTY) == []
    assert problems(a={"output_schema": {"type": "object"}}, b={"output_schema": None}, c={}) == []


def test_each_bad_schema_is_named() -> None:
    told = problems(
        a={"output_schema": {"$ref": "http://example.com/x"}},
        b={"output_schema": {"type": "text"}},
        c={"output_schema": {}},
    )
    assert [line.partition(":")[0] for line in told] == [
        "agents.a.output_schema",
        "agents.b.output_schema",
    ]
    assert "nothing is ever fetched" in told[0]
