"""The one retry decision: every kind in every situation, and bounds that nothing breaks."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.canonical.facts import Facts
from adapters.canonical.faults import KINDS, Fault
from gateway.routing.plan import Candidate
from gateway.routing.retry import (
    BACKOFF_BASE,
    BACKOFF_CAP,
    LONGEST_HINT,
    Attempts,
    Decision,
    failure,
)
from gateway.settings.snapshot import Alias, Deployment, Provider, Target

PROVIDER = Provider("p", "openai-chat", "http://127.0.0.1:1", None)


def candidates(*windows: int | None) -> tuple[Candidate, ...]:
    made = []
    for index, window in enumerate(windows):
        target = Target(Deployment(PROVIDER, f"m{index}", Facts(f"m{index}", window=window)))
        made.append(Candidate(target, index, target.deployment.name))
    return tuple(made)


def attempts(
    *windows: int | None, roll: float = 0.5, random: Callable[[], float] | None = None, **alias: Any
) -> Attempts:
    targets = candidates(*windows)
    pool = Alias("smart", tuple(c.target for c in targets), **alias)
    return Attempts(pool, targets, 0.0, random or (lambda: roll))


def failed(tries: Attempts, kind: str, now: float = 0.0, **about: Any) -> Decision:
    """Begin a try and let it fail."""
    tries.begin()
    fault = Fault(kind, "x", deployment=tries.candidate.name, **about)
    return tries.after(fault, now, committed=False)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_after_the_commit_nothing_is_tried_again(kind: str) -> None:
    tries = attempts(None, None, next_on=frozenset(KINDS))
    tries.begin()
    assert tries.after(Fault(kind, "x"), 0.0, committed=True).action == "stop"


EXPECTED = {
    ("no", "no"): ("stop", "stop"),
    ("no", "wider"): ("stop", "stop"),
    ("no", "alias"): ("stop", "stop"),
    ("reask", "alias"): ("stop", "stop"),
    ("no", "yes"): ("stop", "next"),
    ("yes", "yes"): ("again", "again"),
    ("after", "yes"): ("again", "again"),
}
"""``(again, next)`` of the kind's row -> the action with one target, and with another one of the
same window. A repair is asked for by whoever checks the answer, so ``reask`` is no retry."""


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_with_one_target_and_with_two(kind: str) -> None:
    row = KINDS[kind]
    alone, among = EXPECTED[(row.again, row.next)]
    assert failed(attempts(1000), kind).action == alone
    assert failed(attempts(1000, 1000), kind).action == among


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_kind_once_the_retries_are_used_up(kind: str) -> None:
    row = KINDS[kind]
    assert failed(attempts(1000, retries=0), kind).action == "stop"
    expected = "next" if row.next == "yes" else "stop"
    assert failed(attempts(1000, 1000, retries=0), kind).action == expected


@pytest.mark.parametrize("kind", [k for k, r in sorted(KINDS.items()) if r.next == "alias"])
def test_the_alias_decides_where_the_row_asks_it_and_twice_is_the_request(kind: str) -> None:
    tries = attempts(None, None, None, next_on=frozenset({kind}))
    assert failed(tries, kind).action == "next"
    assert failed(tries, kind).action == "stop", "the same on a second deployment"


def test_a_silent_route_is_left_for_good() -> None:
    for phase in ("connect", "first_event", "between_events", "total"):
        tries = attempts(None, None)
        assert failed(tries, "upstream_timeout", phase=phase).action == "next"
        assert tries.candidate.index == 1
        assert failed(tries, "upstream_timeout", phase=phase).action == "stop"


def test_retries_are_counted_for_each_target() -> None:
    tries = attempts(None, None, retries=2, max_attempts=10)
    actions = [failed(tries, "upstream_server").action for _ in range(6)]
    assert actions == ["again", "again", "next", "again", "again", "stop"]
    assert tries.made == 6


def test_max_attempts_is_over_all_targets() -> None:
    tries = attempts(None, None, None, retries=2, max_attempts=4)
    assert [failed(tries, "upstream_server").action for _ in range(4)][-1] == "stop"
    assert not tries.room(0.0)


@pytest.mark.parametrize(
    ("windows", "expected"),
    [
        ((8_000,), ["stop"]),
        ((8_000, 8_000), ["stop"]),
        ((8_000, 4_000, 32_000), ["next", "stop"]),
        ((8_000, 32_000, 16_000, 200_000), ["next", "next", "stop"]),
        ((8_000, None), ["stop"]),
        ((None, 8_000), ["next", "stop"]),
    ],
)
def test_an_overflow_goes_only_to_a_wider_window(
    windows: tuple[int | None, ...], expected: list[str]
) -> None:
    tries = attempts(*windows)
    assert [failed(tries, "context_overflow").action for _ in expected] == expected


HINTS = [
    # retry_after, the action with one target, the least and the most delay
    (1.0, "again", 1.0, 1.0 + BACKOFF_BASE),
    (0.25, "again", 0.25, 0.25 + BACKOFF_BASE),
    (0.0, "again", 0.0, BACKOFF_BASE),
    (30.0, "stop", 0.0, 0.0),  # past the deadline of 20 s
    (600.0, "stop", 0.0, 0.0),
    (1e20, "stop", 0.0, 0.0),
    (inf, "stop", 0.0, 0.0),
    (-5.0, "again", 0.0, BACKOFF_BASE),
    (nan, "again", 0.0, BACKOFF_BASE),
    (None, "again", 0.0, BACKOFF_BASE),
]


@pytest.mark.parametrize(("hint", "action", "least", "most"), HINTS)
@pytest.mark.parametrize("roll", [0.0, 0.999])
def test_retry_after_is_obeyed_or_the_route_is_left(  # case R09
    hint: float | None, action: str, least: float, most: float, roll: float
) -> None:
    tries = attempts(None, roll=roll, deadline=20.0)
    decision = failed(tries, "upstream_rate_limited", retry_after=hint)
    assert decision.action == action
    assert least <= decision.delay <= most
    assert (decision.delay > least) == (action == "again" and roll > 0), "spread, hint or not"
    other = attempts(None, None, roll=roll, deadline=20.0)
    decision = failed(other, "upstream_rate_limited", retry_after=hint)
    assert decision.action == ("again" if action == "again" else "next")


def test_a_hint_beyond_the_aliass_patience_fails_over_though_time_is_left() -> None:
    tries = attempts(None, None, retry_after_cap=5.0)
    assert failed(tries, "upstream_overloaded", retry_after=5.5) == Decision(
        "next", 0.0, "upstream_overloaded"
    )
    patient = attempts(None, None, retry_after_cap=5.0)
    assert failed(patient, "upstream_overloaded", retry_after=5.0).action == "again"


def test_back_off_doubles_up_to_its_cap() -> None:
    tries = attempts(None, roll=1.0, retries=20, max_attempts=30)
    delays = [failed(tries, "upstream_server").delay for _ in range(8)]
    assert delays == [0.25, 0.5, 1.0, 2.0, 4.0, BACKOFF_CAP, BACKOFF_CAP, BACKOFF_CAP]


def test_the_deadline_is_over_everything() -> None:
    tries = attempts(None, None, deadline=10.0)
    assert failed(tries, "upstream_server", now=10.0).action == "stop"
    tries = attempts(None, None, deadline=10.0, roll=1.0)
    assert failed(tries, "upstream_server", now=9.9).action == "next", "no time to back off"
    assert tries.deadline_at == 10.0


def test_a_breaker_that_opened_meanwhile_is_skipped_without_counting() -> None:
    tries = attempts(None, None)
    assert tries.skip(0.0).action == "next"
    assert (tries.made, tries.candidate.index, tries.chain) == (0, 1, [])
    assert tries.skip(0.0).action == "stop"


def test_the_first_cause_is_shown_with_the_whole_chain() -> None:
    chain = [
        Fault("upstream_rate_limited", "busy", deployment="p/a", retry_after=600.0, code="slow"),
        Fault("upstream_rate_limited", "busy", deployment="p/b", retry_after=90.0),
        Fault("upstream_rate_limited", "busy", deployment="p/b", retry_after=40.0),
        Fault("connect_failed", "gone", deployment="p/c"),
    ]
    shown = failure(chain)
    assert (shown.kind, shown.status, shown.code) == ("upstream_rate_limited", 429, "slow")
    assert shown.deployment == "p/a"
    assert shown.retry_after == 40.0, "the first deployment to be free again"
    assert shown.attempts == tuple(chain)
    assert chain[0].attempts == (), "the chain itself is not changed"


@pytest.mark.parametrize(
    ("hints", "shown"),
    [
        ((None,), None),
        ((-1.0,), None),
        ((nan,), None),
        ((1e20,), LONGEST_HINT),
        ((inf, 3.0), 3.0),
    ],
)
def test_only_a_sensible_hint_is_shown(
    hints: tuple[float | None, ...], shown: float | None
) -> None:
    chain = [
        Fault("upstream_overloaded", "x", deployment=f"p/{n}", retry_after=hint)
        for n, hint in enumerate(hints)
    ]
    assert failure(chain).retry_after == shown


def test_a_failure_has_a_cause() -> None:
    with pytest.raises(ValueError, match="cause"):
        failure([])


@settings(max_examples=200, deadline=None)
@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=40),
    hints=st.lists(st.none() | st.floats(), min_size=1, max_size=40),
    took=st.lists(st.floats(0, 30), min_size=1, max_size=40),
    rolls=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=10),
    targets=st.lists(st.none() | st.integers(1, 10**6), min_size=1, max_size=5),
    retries=st.integers(0, 5),
    max_attempts=st.integers(1, 10),
    deadline=st.floats(0.1, 100),
)
def test_whatever_happens_the_bounds_hold(
    kinds: list[str],
    hints: list[float | None],
    took: list[float],
    rolls: list[float],
    targets: list[int | None],
    retries: int,
    max_attempts: int,
    deadline: float,
) -> None:
    dice = iter(rolls * 50)
    tries = attempts(
        *targets,
        random=lambda: next(dice),
        retries=retries,
        max_attempts=max_attempts,
        deadline=deadline,
        next_on=frozenset(KINDS),
    )
    now, on_target, seen = 0.0, 0, {0}
    while True:
        assert now < deadline, "no try begins past the deadline"
        number = tries.begin()
        assert number <= max_attempts
        on_target += 1
        assert on_target <= retries + 1
        step = number - 1
        kind = kinds[step % len(kinds)]
        now += took[step % len(took)]
        fault = Fault(kind, "x", retry_after=hints[step % len(hints)])
        decision = tries.after(fault, now, committed=False)
        assert 0.0 <= decision.delay <= max(BACKOFF_CAP, 30.0 + BACKOFF_BASE)
        if decision.action == "stop":
            break
        if decision.action == "again":
            assert KINDS[kind].again in ("yes", "after")
        else:
            assert decision.delay == 0.0
            assert tries.candidate.index not in seen, "never back to a target that was left"
            seen.add(tries.candidate.index)
            on_target = 0
        now += decision.delay
    assert len(tries.chain) == tries.made
    assert failure(tries.chain).kind == tries.chain[0].kind
