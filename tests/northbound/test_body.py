"""What a body that does not fit is told: each place once, in a caller's words."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import pytest
from pydantic import TypeAdapter, with_config
from typing_extensions import TypedDict

from adapters.canonical.faults import Fault
from gateway.northbound.body import validated


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
