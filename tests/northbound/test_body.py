"""What a body that does not fit is told: each place once, in a caller's words."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict

from adapters.canonical.faults import Fault
from gateway.northbound.base import Limits
from gateway.northbound.body import SHORT, read_object, validated


@with_config({"extra": "forbid", "strict": True})
class Shape(TypedDict, total=False):
    """A body with fields that may be several things."""

    input: str | list[dict[str, Any]]
    mode: Literal["auto", "none"] | dict[str, Any]
    size: Annotated[int, "any"] | None


@pytest.mark.parametrize(
    ("body", "says", "param"),
    [
        ({"input": {}}, "input must be a string or a list.", "input"),
        ({"input": [1]}, "input[0] must be an object.", "input[0]"),
        ({"mode": 1}, "mode must be 'auto' or 'none' or an object.", "mode"),
        ({"size": "1"}, "size must be an integer.", "size"),
        (
            {"input": None, "intput": "x"},
            "input must be a string or a list; intput is not known here.",
            "input",
        ),
    ],
)
def test_one_place_is_told_once(body: dict[str, Any], says: str, param: str) -> None:
    with pytest.raises(Fault) as refused:
        validated(TypeAdapter(Shape), body)
    assert (refused.value.message, refused.value.param) == (says, param)


def depth(value: Any) -> int:
    if not isinstance(value, dict | list):
        return 0
    return 1 + max(map(depth, value.values() if isinstance(value, dict) else value), default=0)


def nested(levels: int) -> Any:
    return [nested(levels - 1), {"a": 1}] if levels else "[{"


@given(
    st.recursive(
        st.integers() | st.sampled_from(["", "[[", "{{{{"]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
        max_leaves=12,
    ),
    st.integers(1, 8),
)
@example(nested(3), 3)
@example(nested(3), 4)
def test_a_short_body_is_as_deep_as_the_same_one_with_blanks_behind_it(
    value: Any, limit: int
) -> None:
    """A short body with few brackets is not walked through."""
    body = json.dumps({"value": value}).encode()
    refused = []
    for sent in (body, body + b" " * SHORT):
        try:
            read_object(sent, Limits(depth=limit))
        except Fault as fault:
            refused.append((fault.code, fault.message))
    told = f"The request body is nested more than {limit} levels deep. Flatten it."
    assert refused == ([("invalid_json", told)] * 2 if depth({"value": value}) > limit else [])
