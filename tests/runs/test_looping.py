"""What one turn of a loop hands to the next, and what it remembers."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.runs.looping import MAX_BYTES, merged, remembered


def outputs(number: int) -> dict[str, Any]:
    return {"step": number}


@pytest.mark.parametrize(
    ("turns", "history", "kept"),
    [(0, 5, []), (3, 5, [1, 2, 3]), (9, 2, [8, 9]), (9, 0, [])],
)
def test_the_newest_turns_are_remembered_in_order(
    turns: int, history: int, kept: list[int]
) -> None:
    asked: list[int] = []

    def of(number: int) -> dict[str, Any]:
        asked.append(number)
        return outputs(number)

    found = remembered(turns, history, of)
    assert found == [{"turn": n, "outputs": {"step": n}} for n in kept]
    assert sorted(asked) == kept, "nothing is looked at that is not kept"


def test_a_turn_that_does_not_fit_is_left_out_whole_with_all_before_it() -> None:
    sizes = {1: 10, 2: MAX_BYTES, 3: 10, 4: 10}
    found = remembered(4, 4, lambda number: {"step": "x" * sizes[number]})
    assert [turn["turn"] for turn in found] == [3, 4]


def test_a_history_within_an_output_is_left_out() -> None:
    nested = {"a": [{"loop_history": [1], "b": 2}], "loop_history": [3]}
    assert remembered(1, 1, lambda number: nested)[0]["outputs"] == {"a": [{"b": 2}]}
    assert merged({"keep": 1, "b": 1}, {"b": 2, "loop_history": [1]}) == {"keep": 1, "b": 2}


@pytest.mark.parametrize(
    ("given", "output", "next_input"),
    [
        ({"a": 1}, "text", "text"),
        ("text", {"a": 1}, {"a": 1}),
        ({"a": 1}, None, None),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"c": 2}}),
        ([1], [2], [2]),
    ],
)
def test_an_output_is_laid_over_the_input_field_by_field(
    given: Any, output: Any, next_input: Any
) -> None:
    assert merged(given, output) == next_input
