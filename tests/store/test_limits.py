"""The arithmetic of limits without a database: what Hypothesis finds here would be a bill."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.canonical.faults import Fault
from gateway.settings.snapshot import Limits
from gateway.store.base import RateState
from gateway.store.limits import Account, Window
from gateway.store.periods import day_of, day_text, month_end, month_of
from tests.store.booking import NOON


def hold(
    limits: Limits, tokens: int = 0, nano: int = 0, *, new_call: bool = True
) -> tuple[Limits, int, int, bool]:
    return limits, tokens, nano, new_call


def _sums(window: Window) -> tuple[int, int]:
    return window.requests, window.tokens


def taken(account: Account, wanted: tuple[Limits, int, int, bool], now: float) -> bool:
    try:
        account.take(*wanted, now)
    except Fault:
        return False
    return True


@given(
    st.integers(1, 5),
    st.lists(st.floats(0, 30, allow_nan=False, width=32), min_size=1, max_size=60),
)
def test_no_window_of_sixty_seconds_holds_more_than_the_limit(
    limit: int, pauses: list[float]
) -> None:
    account, now, passed = Account("key_1"), NOON, []
    for pause in pauses:
        now += pause
        if taken(account, hold(Limits(rpm=limit)), now):
            passed.append(now)
    for start in passed:
        assert sum(start <= at < start + 60 for at in passed) <= limit


@given(
    st.integers(1, 5),
    st.lists(
        st.tuples(st.floats(0, 20, width=32), st.sampled_from([0.0, 0.0, -60.0, -7200.0])),
        min_size=1,
        max_size=50,
    ),
)
def test_a_clock_that_goes_back_lets_no_more_through(
    limit: int, steps: list[tuple[float, float]]
) -> None:
    """``passed`` is in true seconds, the account sees a wall clock that is put back."""
    account, true, put_back, passed = Account("key_1"), 0.0, 0.0, []
    for pause, jump in steps:
        true += pause
        put_back += jump
        if taken(account, hold(Limits(rpm=limit)), NOON + true + put_back):
            passed.append(true)
    for start in passed:
        assert sum(start <= at < start + 60 for at in passed) <= limit


def test_a_clock_that_goes_back_blocks_for_a_minute_at_most() -> None:
    account, limits = Account("key_1"), Limits(rpm=1)
    assert taken(account, hold(limits), NOON)
    assert not taken(account, hold(limits), NOON - 3600)
    assert taken(account, hold(limits), NOON - 3600 + 61)


def test_a_clock_that_goes_back_opens_no_closed_day() -> None:
    account, limits = Account("key_1"), Limits(nano_per_day=10)
    for at in (NOON, NOON + 86_400):
        assert taken(account, hold(limits, nano=10), at)
        account.settle(10, 10, account.day)
    assert not taken(account, hold(limits, nano=1), NOON)
    assert not taken(account, hold(limits, nano=1), NOON + 86_400)
    assert taken(account, hold(limits, nano=1), NOON + 2 * 86_400)


def test_the_longest_wait_is_told() -> None:
    account, limits = Account("key_1"), Limits(rpm=2, tpm=100)
    account.take(*hold(limits, tokens=60), NOON)
    account.take(*hold(limits, tokens=40), NOON + 30)
    with pytest.raises(Fault) as refused:
        account.take(*hold(limits, tokens=80), NOON + 40)
    assert (refused.value.data, refused.value.retry_after) == ({"limit": "tpm"}, 51.0)


def test_a_retry_counts_tokens_and_money_but_no_call() -> None:
    account, limits = Account("key_1"), Limits(rpm=1, concurrent=1, tpm=100, nano_total=100)
    account.take(*hold(limits, 50, 50), NOON)
    account.take(*hold(limits, 50, 50, new_call=False), NOON)
    assert (account.in_flight, _sums(account.window), account.reserved_nano) == (1, (1, 100), 100)
    assert not taken(account, hold(limits, 1, 0, new_call=False), NOON)
    assert not taken(account, hold(Limits(nano_total=100), 0, 1, new_call=False), NOON)


some = st.none() | st.integers(0, 4)


@given(
    st.builds(Limits, some, some, some, some, some, some),
    st.builds(Account, st.just("key_1"), st.just(day_of(NOON)), *[st.integers(0, 5)] * 5),
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()),
)
def test_what_is_passed_at_a_glance_would_be_passed_after_a_close_look(
    limits: Limits, account: Account, used: tuple[int, int], asked: tuple[int, int, bool]
) -> None:
    tokens, nano, new_call = asked
    account.window = Window()
    account.window.add(int(NOON), *used)
    if account._surely_fits(limits, tokens, nano):
        assert account._over_budget(limits, nano, NOON) is None
        assert account._over_rate(limits, tokens, new_call, NOON) is None


def test_unset_is_unlimited() -> None:
    account = Account("key_1")
    for _ in range(50):
        account.take(*hold(Limits(), 10**9, 10**15), NOON)
    assert account.in_flight == 50
    assert account.window.slots == {}, "what is not limited is not counted"


def test_rates_are_told_for_what_is_limited() -> None:
    account = Account("key_1")
    assert account.rates(Limits(rpm=5), NOON) == {"requests": RateState(5, 5, 0.0)}
    account.take(*hold(Limits(rpm=5, tpm=10), 4), NOON)
    assert account.rates(Limits(rpm=5, tpm=10), NOON + 1) == {
        "requests": RateState(5, 4, 60.0),
        "tokens": RateState(10, 6, 60.0),
    }
    assert account.rates(Limits(), NOON) == {}


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 9), st.integers(0, 10**15))))
def test_a_window_survives_its_packing(slots: list[tuple[int, int, int]]) -> None:
    window = Window()
    for second, requests, tokens in slots:
        window.add(second, requests, tokens)
    again = Window(window.pack())
    assert (again.slots, _sums(again)) == (window.slots, _sums(window))


def test_tokens_are_corrected_only_while_they_count() -> None:
    account, limits = Account("key_1"), Limits(tpm=100)
    account.take(*hold(limits, 90), NOON)
    account.take(*hold(limits, 5), NOON + 10)
    account.window.correct(int(NOON), 20 - 90)
    assert _sums(account.window) == (2, 25)
    account.advance(NOON + 65)
    account.window.correct(int(NOON), 1000 - 90)
    assert _sums(account.window) == (1, 5)


def test_months_and_days() -> None:
    leap = day_of(1_709_164_800)  # 2024-02-29
    assert day_text(leap) == "2024-02-29"
    assert day_text(month_end(leap)) == "2024-03-01"
    assert month_of(month_end(leap)) == month_of(leap) + 1
    december = day_of(1_735_603_200)  # 2024-12-31
    assert day_text(month_end(december)) == "2025-01-01"
    assert month_of(month_end(december)) == month_of(december) + 1


USD = 1_000_000_000


@pytest.mark.parametrize(
    ("account", "wanted", "says"),
    [
        (
            Account("key_1", day=day_of(NOON), day_nano=4 * USD, reserved_nano=USD // 2),
            hold(Limits(nano_per_day=5 * USD), nano=6 * USD // 10),
            "This call may cost up to $0.6, and $0.5 is left of this key's daily budget of $5. "
            "A call with a lower limit of output tokens may cost less.",
        ),
        (
            Account("key_1", total_nano=7 * USD),
            hold(Limits(nano_total=5 * USD), nano=1000),
            "This call may cost up to $0.000001, and $0 is left of this key's whole budget of $5.",
        ),
        (
            Account("key_1"),
            hold(Limits(nano_per_month=0)),
            "This call may cost up to $0, and $0 is left of this key's monthly budget of $0.",
        ),
    ],
)
def test_a_refusal_over_money_says_how_much_is_there_and_how_much_is_wanted(
    account: Account, wanted: tuple[Limits, int, int, bool], says: str
) -> None:
    with pytest.raises(Fault) as refused:
        account.take(*wanted, NOON)
    assert refused.value.message == says


@pytest.mark.parametrize(
    ("limits", "tokens", "says"),
    [
        (Limits(rpm=1), 0, "This key's limit is 1 requests a minute. There is room in 51 s."),
        (Limits(tpm=9), 6, "This key's limit is 9 tokens a minute. There is room in 51 s."),
    ],
)
def test_a_refusal_over_a_rate_says_for_how_long(limits: Limits, tokens: int, says: str) -> None:
    account = Account("key_1")
    account.take(*hold(limits, tokens), NOON)
    with pytest.raises(Fault) as refused:
        account.take(*hold(limits, tokens), NOON + 10)
    assert refused.value.message == says
    assert refused.value.retry_after == 51
