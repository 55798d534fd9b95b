"""Values held against schemas for runs: in words, and in bounded time."""

from __future__ import annotations

import time
from typing import Any

from gateway.runs.bench import schema_check
from gateway.structured.check import Schemas

COSTLY: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"items": {"anyOf": [{"minimum": n} for n in range(1, 5000)]}}},
}


def test_what_does_not_fit_is_told() -> None:
    check = schema_check(Schemas())
    assert check(COSTLY, {"a": [1]}) == []
    assert check({"required": ["a"]}, {}) == [
        'at the root: found {}, wanted the property "a", which is missing'
    ]
    assert "can't be used" in check({"$ref": "x.json"}, {})[0]


def test_what_would_take_long_to_check_is_refused() -> None:
    """A workflow's input and its schema may both come from callers."""
    started = time.process_time()
    assert schema_check(Schemas())(COSTLY, {"a": [0] * 100_000}) == [
        "it is too large to be checked against this schema"
    ]
    assert time.process_time() - started < 2
