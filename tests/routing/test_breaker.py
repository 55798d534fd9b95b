"""The breaker: its table of what counts, its one probe, and a model that it must agree with."""

from __future__ import annotations

from dataclasses import dataclass, field
from timeit import timeit

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from adapters.canonical.faults import KINDS, Fault
from gateway.routing.breaker import JITTER, LONGEST_WINDOW, PROBE_BOUND, PROBE_WAIT, Breakers
from gateway.settings.snapshot import BreakerPolicy

POLICY = BreakerPolicy(
    rate=0.5, window=60.0, minimum=10, streak=5, cooldown=10.0, max_cooldown=40.0
)
NAME = "p/m"


def steady() -> Breakers:
    """Breakers whose cooldowns have no jitter."""
    return Breakers(random=lambda: 0.0)


def fail(breakers: Breakers, now: float, kind: str = "upstream_server", times: int = 1) -> None:
    for _ in range(times):
        breakers.record(NAME, POLICY, now, fault=Fault(kind, "x"), probe=False)


def opened(breakers: Breakers, now: float = 0.0) -> Breakers:
    fail(breakers, now, times=POLICY.streak)
    assert breakers.state(NAME, now) == "open"
    return breakers


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_what_counts_is_the_trips_column_and_nothing_else(kind: str) -> None:
    breakers = steady()
    fail(breakers, 1.0, kind, times=POLICY.streak)
    by_streak = breakers.state(NAME, 1.0)
    fail(breakers, 1.0, kind, times=POLICY.minimum)
    by_rate = breakers.state(NAME, 1.0)
    expected = {
        "yes": ("open", "open"),
        "soft": ("closed", "open"),
        "no": ("closed", "closed"),
    }
    assert (by_streak, by_rate) == expected[KINDS[kind].trips]


def test_a_full_pool_of_ours_says_nothing_of_the_provider() -> None:
    """Or a caller with many long streams would take the deployment away from the others."""
    full = Fault("upstream_timeout", "x", code="connection_pool_full", phase="connect")
    breakers = steady()
    for _ in range(3 * POLICY.minimum):
        breakers.record(NAME, POLICY, 1.0, fault=full, probe=False)
    assert breakers.state(NAME, 1.0) == "closed"
    opened(breakers)
    assert breakers.admit(NAME, 10.0) == "probe"
    breakers.record(NAME, POLICY, 10.0, fault=full, probe=True)
    assert breakers.admit(NAME, 10.0) == "probe", "only given back"


def test_a_success_ends_a_streak() -> None:
    breakers = steady()
    for _ in range(3):
        breakers.record(NAME, POLICY, 0.0, fault=None, probe=False)
        fail(breakers, 0.0, times=POLICY.streak - 1)
        # 4 of 5 failed, but too few calls for a rate until the tenth
        if breakers.snapshot(0.0)[0]["calls"] < POLICY.minimum:
            assert breakers.state(NAME, 0.0) == "closed"


def test_the_rate_needs_the_minimum_of_calls_and_forgets_what_is_older_than_the_window() -> None:
    breakers = steady()
    for _ in range(5):
        breakers.record(NAME, POLICY, 0.0, fault=None, probe=False)
    fail(breakers, 0.0, times=4)
    assert breakers.state(NAME, 0.0) == "closed", "9 calls are no sample"
    later = POLICY.window + 2
    breakers.record(NAME, POLICY, later, fault=None, probe=False)
    fail(breakers, later, times=1)
    assert breakers.state(NAME, later) == "closed", "the old nine are gone"
    assert breakers.snapshot(later)[0]["calls"] == 2


def test_half_open_admits_exactly_one_probe() -> None:
    breakers = opened(steady())
    assert breakers.admit(NAME, 9.9) == "open"
    assert breakers.state(NAME, 10.0) == "half_open"
    assert [breakers.admit(NAME, 10.0) for _ in range(20)] == ["probe"] + ["open"] * 19
    assert breakers.state(NAME, 10.0) == "open"
    assert breakers.wait(NAME, 10.0) == PROBE_WAIT


def test_a_good_probe_closes_and_forgets_the_past() -> None:
    breakers = opened(steady())
    assert breakers.admit(NAME, 10.0) == "probe"
    breakers.record(NAME, POLICY, 11.0, fault=None, probe=True)
    assert breakers.admit(NAME, 11.0) == "closed"
    fail(breakers, 11.0, times=POLICY.streak - 1)
    assert breakers.state(NAME, 11.0) == "closed"


@pytest.mark.parametrize("kind", ["upstream_server", "upstream_rate_limited"])
def test_a_bad_probe_doubles_the_cooldown_up_to_its_maximum(kind: str) -> None:
    breakers = opened(steady())
    now, waits = 0.0, []
    for _ in range(4):
        now += breakers.wait(NAME, now)
        assert breakers.admit(NAME, now) == "probe"
        breakers.record(NAME, POLICY, now, fault=Fault(kind, "x"), probe=True)
        waits.append(breakers.wait(NAME, now))
    assert waits == [20.0, 40.0, 40.0, 40.0]


@pytest.mark.parametrize("kind", [k for k, row in sorted(KINDS.items()) if row.trips == "no"])
def test_a_probe_that_failed_for_the_request_is_given_back_without_a_verdict(kind: str) -> None:
    breakers = opened(steady())
    assert breakers.admit(NAME, 10.0) == "probe"
    breakers.record(NAME, POLICY, 10.0, fault=Fault(kind, "x"), probe=True)
    assert breakers.admit(NAME, 10.0) == "probe"


def test_a_lost_probe_is_freed_after_its_bound() -> None:
    breakers = opened(steady())
    assert breakers.admit(NAME, 10.0) == "probe"
    assert breakers.admit(NAME, 10.0 + PROBE_BOUND - 0.1) == "open"
    assert breakers.admit(NAME, 10.0 + PROBE_BOUND) == "probe"


def test_old_news_changes_nothing_while_open() -> None:
    breakers = opened(steady())
    breakers.record(NAME, POLICY, 1.0, fault=None, probe=False)
    fail(breakers, 9.0)
    assert breakers.wait(NAME, 9.0) == 1.0


def test_a_forced_probe_comes_before_its_time_and_may_close_but_not_prolong() -> None:
    breakers = opened(steady())
    assert breakers.admit(NAME, 1.0, forced=True) == "probe"
    assert breakers.admit(NAME, 1.0, forced=True) == "open", "one at a time"
    breakers.record(NAME, POLICY, 2.0, fault=Fault("connect_failed", "x"), probe=True)
    assert breakers.wait(NAME, 2.0) == 8.0
    assert breakers.admit(NAME, 2.0, forced=True) == "probe"
    breakers.record(NAME, POLICY, 2.5, fault=None, probe=True)
    assert breakers.admit(NAME, 2.5) == "closed"


def test_jitter_only_lengthens() -> None:
    late = Breakers(random=lambda: 0.999)
    opened(late)
    assert POLICY.cooldown < late.wait(NAME, 0.0) <= POLICY.cooldown * (1 + JITTER)


def test_deployments_do_not_share_a_state_and_a_reload_forgets_the_gone() -> None:
    breakers = opened(steady())
    assert breakers.admit("p/other", 0.0) == "closed"
    assert breakers.states(0.0) == {NAME: "open"}
    assert breakers.states(10.0) == {NAME: "half_open"}
    breakers.retain({"p/other"})
    assert breakers.admit(NAME, 0.0) == "closed"
    assert breakers.snapshot(0.0) == []


def test_snapshot_row() -> None:
    breakers = opened(steady())
    assert breakers.snapshot(4.0) == [
        {
            "deployment": NAME,
            "state": "open",
            "calls": 5,
            "failures": 5,
            "streak": 5,
            "last_fault": "upstream_server",
            "cooldown_seconds": 10.0,
            "probe_in_seconds": 6.0,
            "probing": False,
        }
    ]


def test_the_closed_path_is_cheap_and_history_is_bounded() -> None:
    breakers = steady()
    for second in range(LONGEST_WINDOW * 2):
        breakers.record(NAME, POLICY, float(second), fault=None, probe=False)
    assert len(breakers._breakers[NAME].seconds) == LONGEST_WINDOW
    calls = 20_000

    def one() -> None:
        breakers.admit(NAME, 5000.0)
        breakers.record(NAME, POLICY, 5000.0, fault=None, probe=False)

    assert timeit(one, number=calls) / calls < 10e-6  # measured: 0.4 µs


@dataclass
class Model:
    """What a breaker is, said as plainly as possible."""

    history: list[tuple[float, bool]] = field(default_factory=list)
    streak: int = 0
    until: float | None = None
    cooldown: float = 0.0
    probe_until: float = -1.0

    def free(self, now: float) -> bool:
        return now >= self.probe_until


class BreakerMachine(RuleBasedStateMachine):
    """Any order of calls, faults, probes and waits: the breaker says what the model says."""

    @initialize()
    def start(self) -> None:
        self.breakers = steady()
        self.model = Model()
        self.now = 1000.0

    @rule(seconds=st.sampled_from([0.0, 1.0, 7.0, 10.0, 61.0, PROBE_BOUND]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @rule(kind=st.sampled_from([None, "upstream_server", "upstream_overloaded", "bad_request"]))
    def ordinary_call(self, kind: str | None) -> None:
        fault = None if kind is None else Fault(kind, "x")
        self.breakers.record(NAME, POLICY, self.now, fault=fault, probe=False)
        model = self.model
        if model.until is not None or kind == "bad_request":
            return
        model.history.append((self.now, kind is not None))
        model.streak = 0 if kind is None else model.streak + (kind == "upstream_server")
        recent = [bad for at, bad in model.history if at >= self.now - POLICY.window]
        rate = len(recent) >= POLICY.minimum and sum(recent) >= POLICY.rate * len(recent)
        if kind is not None and (rate or model.streak >= POLICY.streak):
            model.until, model.cooldown = self.now + POLICY.cooldown, POLICY.cooldown

    @precondition(lambda self: self.model.until is not None)
    @rule(
        forced=st.booleans(),
        end=st.sampled_from(["lost", None, "upstream_server", "bad_request"]),
    )
    def probe(self, forced: bool, end: str | None) -> None:
        model, now = self.model, self.now
        assert model.until is not None
        due = (forced or now >= model.until) and model.free(now)
        assert self.breakers.admit(NAME, now, forced=forced) == ("probe" if due else "open")
        if not due:
            return
        model.probe_until = now + PROBE_BOUND
        if end == "lost":
            return
        model.probe_until = -1.0
        fault = None if end is None else Fault(end, "x")
        self.breakers.record(NAME, POLICY, now, fault=fault, probe=True)
        if end is None:
            self.model = Model()
        elif end == "upstream_server" and now >= model.until:
            model.cooldown = min(model.cooldown * 2, POLICY.max_cooldown)
            model.until = now + model.cooldown

    @invariant()
    def agree(self) -> None:
        model, now = self.model, self.now
        if model.until is None:
            expected, wait = "closed", 0.0
        elif now < model.until:
            expected, wait = "open", model.until - now
        elif model.free(now):
            expected, wait = "half_open", 0.0
        else:
            expected, wait = "open", PROBE_WAIT
        assert self.breakers.state(NAME, now) == expected
        assert self.breakers.wait(NAME, now) == pytest.approx(wait)


BreakerMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestBreakerMachine = BreakerMachine.TestCase
