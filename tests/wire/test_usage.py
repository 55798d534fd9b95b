"""Token counts from strangers."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

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
    assert (counts.take("a"), counts.take("d", "e")) == (1, 2)
    assert (counts.take("b"), counts.take("x"), counts.take("x", "y")) == (None, None, None)
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
