"""Plans: the order of targets under each strategy, and why each stands where it stands."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from adapters.canonical.faults import Fault
from gateway.routing.breaker import Breakers
from gateway.routing.plan import Ask, Plan, Router, cost
from gateway.routing.stats import FAILED, STALE, WEIGHT, Stats
from gateway.settings.snapshot import Alias, Target

PLAIN = Ask(frozenset(), lambda target: None)
Make = Callable[..., Any]


def made(
    alias: Alias,
    ask: Ask = PLAIN,
    *,
    breakers: Breakers | None = None,
    stats: Stats | None = None,
    now: float = 0.0,
    seed: int = 1,
) -> Plan:
    draw = random.Random(seed).random
    return Router(breakers or Breakers(), stats or Stats(), draw).plan(alias, ask, now)


def names(result: Plan) -> list[str]:
    return [candidate.target.deployment.model for candidate in result.targets]


def open_breaker(breakers: Breakers, alias: Alias, model: str, now: float = 0.0) -> None:
    for _ in range(alias.breaker.streak):
        fault = Fault("upstream_server", "x")
        breakers.record(f"p/{model}", alias.breaker, now, fault=fault, probe=False)


def test_priority_keeps_the_listed_order(alias: Make) -> None:
    result = made(alias("a", "b", "c"))
    assert names(result) == ["a", "b", "c"]
    assert [row["order"] for row in result.considered] == [1, 2, 3]
    assert result.fault is None


def test_an_alias_that_changed_is_planned_anew(alias: Make, target: Make) -> None:
    """What is kept of an alias is kept for its very targets, not for its name."""
    before, after = alias("a", "b"), alias("b", "c")
    router = Router(Breakers(), Stats(), random.Random(1).random)
    assert before.name == after.name
    assert names(router.plan(before, PLAIN, 0.0)) == ["a", "b"]
    assert names(router.plan(after, PLAIN, 0.0)) == ["b", "c"]
    assert names(router.plan(before, PLAIN, 0.0)) == ["a", "b"]
    heavier = replace(before, targets=(target("a", weight=2), target("b")))
    assert router.plan(heavier, PLAIN, 0.0).targets[0].target.weight == 2
    variant = replace(before, context="trim_history")
    plain = Ask(frozenset())
    assert router.plan(variant, plain, 0.0) is router.plan(before, plain, 0.0), "made once"


def test_an_alias_knows_its_narrowest_window(alias: Make, target: Make) -> None:
    """What fits it is asked of no target: it is the smallest that is known of any."""
    wide, narrow, unknown = target("a", window=9), target("b", window=5), target("c")
    assert alias(wide, narrow, unknown).narrowest == 5
    assert alias(wide, unknown).narrowest == 9
    assert alias(unknown).narrowest is None
    assert replace(alias(wide, narrow), targets=(wide,)).narrowest == 9


def test_an_alias_knows_what_all_its_targets_can(alias: Make, target: Make) -> None:
    """What all can is looked for at none; what one lacks is, and leads round it."""
    able, blind = target("a"), target("b", lacks=("images",))
    assert alias(able).common - alias(able, blind).common == {"images"}
    assert replace(alias(able, blind), targets=(able,)).common == alias(able).common
    pool = alias(blind, able)
    for fits in (None, PLAIN.fits):
        assert made(pool, Ask(frozenset({"tools"}), fits)) == made(pool)
        assert names(made(pool, Ask(frozenset({"images"}), fits))) == ["a"]


def test_as_listed_is_what_ranking_by_priority_gives(alias: Make) -> None:
    """The plan of most calls is kept ready; the longer way, taken where a target is left out,
    comes to the same."""
    pool, breakers = alias("a", "b", "c"), Breakers()
    open_breaker(breakers, pool, "c")
    ready, ranked = made(pool), made(pool, breakers=breakers)
    assert ranked.targets == ready.targets[:2]
    assert ranked.considered[:2] == ready.considered[:2]
    assert (len(ready.considered), ranked.considered[2]["order"]) == (3, None)


def test_weighted_draws_by_weight_and_without_replacement(alias: Make, target: Make) -> None:
    pool = alias(
        target("a", weight=3), target("b", weight=1), target("never", weight=0), strategy="weighted"
    )
    router = Router(Breakers(), Stats(), random.Random(7).random)
    first: Counter[str] = Counter()
    for _ in range(4000):
        order = names(router.plan(pool, PLAIN, 0.0))
        assert sorted(order) == ["a", "b", "never"]
        assert order[-1] == "never", "weight 0 is the last resort"
        first[order[0]] += 1
    assert 0.72 < first["a"] / 4000 < 0.78


def test_least_latency_goes_by_the_average_and_explores_the_unknown_first(alias: Make) -> None:
    pool = alias("slow", "fast", "new", strategy="least_latency")
    stats = Stats()
    stats.observe("p/slow", 0.0, 2.0)
    stats.observe("p/fast", 0.0, 0.3)
    assert names(made(pool, stats=stats)) == ["new", "fast", "slow"]
    stats.observe("p/new", 0.0, None)
    assert names(made(pool, stats=stats)) == ["fast", "slow", "new"], "a failed try counts as slow"
    assert names(made(pool, stats=stats, now=STALE + 1))[0] in {"slow", "fast", "new"}


def test_unknown_targets_are_explored_fairly(alias: Make) -> None:
    pool = alias("a", "b", strategy="least_latency")
    first = Counter(names(made(pool, seed=seed))[0] for seed in range(400))
    assert 140 < first["a"] < 260


def test_averages_move_and_go_stale() -> None:
    stats = Stats()
    assert stats.latency("x", 0.0) is None
    stats.observe("x", 0.0, 1.0)
    stats.observe("x", 1.0, 2.0)
    assert stats.latency("x", 1.0) == pytest.approx(1.0 + WEIGHT)
    assert stats.latency("x", 1.0 + STALE + 0.1) is None
    stats.observe("x", 2000.0, 5.0)
    assert stats.latency("x", 2000.0) == 5.0, "a stale average does not weigh in"
    stats.observe("gone", 2000.0, None)
    assert stats.snapshot(2000.0) == {"x": 5.0, "gone": FAILED}
    stats.retain({"x"})
    assert stats.snapshot(2000.0) == {"x": 5.0}


def test_cheapest_prices_this_request_and_puts_unknown_prices_last(
    alias: Make, target: Make
) -> None:
    cheap_in = target("cheap-in", price=(1_000, 50_000))
    cheap_out = target("cheap-out", price=(10_000, 10_000))
    pool = alias(target("unknown"), cheap_in, cheap_out, strategy="cheapest")
    reading = Ask(frozenset(), lambda t: None, input_tokens=1000, output_tokens=10)
    writing = Ask(frozenset(), lambda t: None, input_tokens=10, output_tokens=1000)
    assert names(made(pool, reading)) == ["cheap-in", "cheap-out", "unknown"]
    assert names(made(pool, writing)) == ["cheap-out", "cheap-in", "unknown"]
    assert cost(cheap_in, reading) == 1
    assert cost(target("unknown"), reading) is None


def test_a_target_that_lacks_a_capability_or_the_room_is_skipped_and_named(
    alias: Make, target: Make
) -> None:
    def fits(candidate: Target) -> str | None:
        window = candidate.deployment.facts.window
        return None if window is None or window >= 12_000 else f"window {window} < 12000 needed"

    pool = alias(target("blind", lacks=("images", "tools")), target("small", window=8192), "ok")
    result = made(pool, Ask(frozenset({"images", "tools"}), fits))
    assert names(result) == ["ok"]
    assert result.considered == (
        {"deployment": "p/ok", "order": 1, "why": "listed as 3"},
        {"deployment": "p/blind", "order": None, "why": "lacks images, tools"},
        {"deployment": "p/small", "order": None, "why": "window 8192 < 12000 needed"},
    )


@pytest.mark.parametrize("fits", [None, PLAIN.fits])
def test_an_open_breaker_is_skipped_until_its_probe_is_due(alias: Make, fits: Any) -> None:
    """Also for a call that fits every window, for which the list of all targets is kept ready."""
    pool = alias("a", "b")
    ask = Ask(PLAIN.needs, fits)
    breakers = Breakers(random=lambda: 0.0)
    open_breaker(breakers, pool, "a")
    result = made(pool, ask, breakers=breakers, now=6.0)
    assert names(result) == ["b"]
    assert result.considered[-1]["why"] == "breaker open, probed again in 4 s"
    assert names(made(pool, ask, breakers=breakers, now=10.0)) == ["a", "b"]
    assert breakers.admit("p/a", 10.0) == "probe", "planning took nothing"


def test_when_every_breaker_is_open_the_nearest_is_probed_before_its_time(alias: Make) -> None:
    pool = alias("a", "b")
    breakers = Breakers(random=lambda: 0.0)
    open_breaker(breakers, pool, "a", now=3.0)
    open_breaker(breakers, pool, "b", now=1.0)
    result = made(pool, breakers=breakers, now=4.0)
    assert names(result) == ["b"]
    assert result.targets[0].forced
    assert breakers.admit("p/b", 4.0, forced=result.targets[0].forced) == "probe"
    # while that probe is out the other one is nearest; then there is nobody left
    assert names(made(pool, breakers=breakers, now=4.0)) == ["a"]
    breakers.admit("p/a", 4.0, forced=True)
    refused = made(pool, breakers=breakers, now=4.0)
    assert refused.targets == ()
    assert refused.fault is not None
    assert refused.fault.kind == "no_deployment"
    assert refused.fault.status == 503
    assert refused.fault.retry_after == 7.0
    assert "p/a: breaker open, probed again in 9 s" in refused.fault.message


def test_a_pool_of_one_is_never_cooled_to_zero(alias: Make) -> None:
    pool = alias("only")
    breakers = Breakers(random=lambda: 0.0)
    open_breaker(breakers, pool, "only")
    for now in (0.0, 1.0, 2.0):
        result = made(pool, breakers=breakers, now=now)
        assert names(result) == ["only"]
        assert breakers.admit("p/only", now, forced=True) == "probe"
        fault = Fault("upstream_server", "x")
        breakers.record("p/only", pool.breaker, now, fault=fault, probe=True)


@pytest.mark.parametrize(
    ("lacks", "window", "kind", "status"),
    [
        (True, False, "unsupported", 400),
        (False, True, "context_overflow", 400),
        (True, True, "context_overflow", 400),
    ],
)
def test_where_only_the_request_is_to_blame_no_client_is_told_to_try_again(
    alias: Make, target: Make, lacks: bool, window: bool, kind: str, status: int
) -> None:
    targets = [target("blind", lacks=("images",))] * lacks + [target("small", window=10)] * window
    ask = Ask(
        frozenset({"images"}),
        lambda t: "window 10 < 99 needed" if t.deployment.facts.window == 10 else None,
    )
    fault = made(alias(*targets), ask).fault
    assert fault is not None
    assert (fault.kind, fault.status, fault.retry_after) == (kind, status, None)
    assert ("p/blind: lacks images" in fault.message) is lacks
    assert ("p/small: window 10 < 99 needed" in fault.message) is window


def test_a_breaker_among_the_reasons_makes_it_worth_waiting(alias: Make, target: Make) -> None:
    pool = alias(target("blind", lacks=("images",)), "resting")
    breakers = Breakers(random=lambda: 0.0)
    open_breaker(breakers, pool, "resting")
    breakers.admit("p/resting", 1.0, forced=True)
    fault = made(pool, Ask(frozenset({"images"}), lambda t: None), breakers=breakers, now=1.0).fault
    assert fault is not None
    assert (fault.kind, fault.retry_after) == ("no_deployment", 9.0)
    assert "p/blind: lacks images; p/resting: breaker open" in fault.message
