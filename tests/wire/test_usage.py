"""Token counts from strangers."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.canonical.events import Usage
from adapters.wire import anthropic_messages
from adapters.wire.openai_chat import read_usage
from adapters.wire.openai_responses import usage_of
from adapters.wire.usage import MAX_TOKENS, Counts, count

NUMBERS = st.one_of(
    st.none(), st.integers(), st.floats(), st.text(max_size=3), st.booleans(), st.just([])
)


@given(NUMBERS)
def test_a_count_is_a_whole_number_in_bounds(value: object) -> None:
    number = count(value)
    if number is None:
        assert type(value) is not int or not 0 <= value <= MAX_TOKENS
    else:
        assert number == value


def test_absent_is_unknown_and_nonsense_is_invalid() -> None:
    counts = Counts({"a": 1, "b": None, "c": -1, "d": {"e": 2}})
    assert (counts.take("a"), counts.detail("e", "d")) == (1, 2)
    assert (counts.take("b"), counts.take("x"), counts.detail("y", "x")) == (None, None, None)
    assert not counts.invalid
    assert counts.take("c") is None
    assert counts.invalid
    assert Counts(7).invalid
    assert not Counts(None).invalid


@given(
    st.fixed_dictionaries(
        {"input_tokens": NUMBERS, "output_tokens": NUMBERS},
        optional={
            "input_tokens_details": st.dictionaries(
                st.sampled_from(["cached_tokens", "cache_write_tokens"]), NUMBERS
            ),
            "output_tokens_details": st.dictionaries(st.just("reasoning_tokens"), NUMBERS),
        },
    )
)
def test_classes_are_disjoint_and_never_negative(raw: dict[str, object]) -> None:
    usage = usage_of(raw)
    assert usage is not None
    classes = (usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning)
    assert all(number is None or 0 <= number <= MAX_TOKENS for number in classes)
    if usage.input is not None:
        assert usage.prompt == raw["input_tokens"]
    if usage.output is not None and usage.reasoning is not None:
        assert usage.reasoning <= usage.output


GONE = object()
EDGES = (0, 1, -1, MAX_TOKENS, MAX_TOKENS + 1, None, True, 1.0, "1", GONE)
EMPTY = (GONE, None, {}, 0, "", False, True, "x")
CHAT = ("prompt_tokens", "completion_tokens", "total_tokens")
RESPONSES = ("input_tokens", "output_tokens")


@pytest.mark.parametrize(
    ("read", "names", "details"),
    [
        (read_usage, CHAT, ("prompt_tokens_details", "completion_tokens_details")),
        (usage_of, RESPONSES, ("input_tokens_details", "output_tokens_details")),
    ],
)
def test_totals_alone_say_what_they_say_beside_details(
    read: Any, names: tuple[str, ...], details: tuple[str, ...]
) -> None:
    for values in itertools.product(*(EDGES for _ in names), EMPTY):
        told = zip((*names, details[0]), values, strict=True)
        counts = {name: value for name, value in told if value is not GONE}
        beside = {**counts, **{name: {"another": 1} for name in details}}
        assert replace(read(counts), raw=None) == replace(read(beside), raw=None), counts
        assert read(counts).raw is counts


# ------------------------------------------------------------------- Anthropic's iterations


def iteration(kind: str, fresh: int, output: int, **more: Any) -> dict[str, Any]:
    counts = {"input_tokens": fresh, "output_tokens": output, "cache_read_input_tokens": 0}
    return {"type": kind, **counts, **more}


def used(*iterations: Any) -> Usage:
    """What a usage object with these iterations says; its own counts are 100 and 10."""
    raw = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 5}
    told = anthropic_messages.usage_of({**raw, "iterations": list(iterations)})
    return replace(told, raw=None)


OWN = Usage(input=100, cache_read=5, output=10)


@pytest.mark.parametrize("kind", ["message", "fallback_message", "of another day"])
def test_iterations_that_the_own_counts_hold_are_counted_once(kind: str) -> None:
    assert used(iteration(kind, 100, 10), iteration(kind, 0, 0)) == OWN


def test_a_compaction_is_charged_for_beside_the_own_counts() -> None:
    hour = {"cache_creation_input_tokens": 40, "cache_creation": {"ephemeral_1h_input_tokens": 30}}
    assert used(
        iteration("compaction", 9_000, 700, **hour), iteration("message", 100, 10)
    ) == Usage(
        input=9_100, cache_read=5, cache_write=40, output=710, cache_write_1h=30, largest=9_040
    )


def test_what_an_advisor_read_and_wrote_counts() -> None:
    advised = iteration("advisor_message", 2543, 18, model="claude-opus-4-8")
    assert used(iteration("message", 100, 10), advised) == Usage(
        input=2643, cache_read=5, output=28, largest=2543
    )


def test_nonsense_in_an_iteration_is_invalid_and_odd_ones_are_nothing() -> None:
    assert used(iteration("compaction", -1, 3)).invalid
    assert used(7, None, {"type": ["compaction"]}, {}) == OWN


def test_what_a_cache_kept_may_be_told_by_its_life_alone() -> None:
    """The hour's tokens were taken off those of five minutes, of which there were none."""
    for five, hour, kept in ((3, 4, 7), (None, 4, 4), (3, None, 3), (None, None, 0)):
        lives = {"ephemeral_5m_input_tokens": five, "ephemeral_1h_input_tokens": hour}
        told = {name: number for name, number in lives.items() if number is not None}
        usage = anthropic_messages.usage_of({"input_tokens": 1, "cache_creation": told})
        assert (usage.cache_write, usage.cache_write_1h, usage.invalid) == (kept, hour, False)
    assert anthropic_messages.usage_of({"cache_creation": None}).cache_write is None


def test_iterations_do_not_stand_in_for_counts_that_are_missing() -> None:
    raw = {"output_tokens": 10, "iterations": [iteration("compaction", 900, 7)]}
    assert anthropic_messages.usage_of(raw).input is None
