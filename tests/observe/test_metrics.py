"""Metrics: bounded series, no globals, honest numbers, rules of the exposition, tested docs."""

from __future__ import annotations

import random
import re
from pathlib import Path
from timeit import timeit

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from adapters.canonical.faults import KINDS
from gateway.observe.metrics import MANY, AttemptEnd, CallEnd, Metrics
from gateway.observe.table import CLOSED_SETS, METRICS, OPERATION, PROVIDER

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"
CALL = CallEnd("smart", "chat", "openai", 200, "", 2.3, 0.3, 101, stream=True)
ATTEMPT = AttemptEnd("smart", "chat", "openai", "gpt", "first", "", 2.3, 120, 101, 20, 10, 5_000)


@pytest.fixture
def metrics() -> Metrics:
    made = Metrics("1.2.3")
    made.know(["smart", "fast"], [("openai", "gpt"), ("anthropic", "claude")])
    return made


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Every sample of a scrape, by name and sorted labels."""
    text = metrics.render()[1].decode()
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(metrics: Metrics, name: str, **labels: str) -> float:
    return samples(metrics)[(name, tuple(sorted(labels.items())))]


def one_call(metrics: Metrics, call: CallEnd = CALL, attempt: AttemptEnd = ATTEMPT) -> None:
    under_way = metrics.call_started(call.alias)
    metrics.attempt_ended(attempt)
    metrics.call_ended(call, under_way)


def test_a_call_is_counted_once_everywhere(metrics: Metrics) -> None:
    one_call(metrics)
    call = {OPERATION: "chat", PROVIDER: "openai", "gen_ai_request_model": "smart"}
    attempt = {OPERATION: "chat", PROVIDER: "openai", "gen_ai_request_model": "gpt"}
    of = lambda name, **labels: value(metrics, name, **labels)  # noqa: E731
    assert of("gateway_requests_total", alias="smart", status="200", fault="") == 1
    assert of("gen_ai_server_request_duration_seconds_sum", **call, error_type="") == 2.3
    assert of("gen_ai_server_time_to_first_token_seconds_sum", **call) == 0.3
    per_token = of("gen_ai_server_time_per_output_token_seconds_sum", **call)
    assert per_token == pytest.approx(0.02), "2 s over the 100 tokens after the first"
    assert of("gen_ai_client_operation_duration_seconds_count", **attempt, error_type="") == 1
    assert of("gen_ai_client_token_usage_sum", **attempt, gen_ai_token_type="input") == 120
    assert of("gen_ai_client_token_usage_sum", **attempt, gen_ai_token_type="output") == 101
    deployment = {"provider": "openai", "model": "gpt"}
    assert of("gateway_cost_nano_dollars_total", alias="smart", **deployment) == 5_000
    assert of("gateway_cached_tokens_total", **deployment, direction="read") == 20
    assert of("gateway_cached_tokens_total", **deployment, direction="write") == 10
    kinds = {"kind": "first", "fault": ""}
    assert of("gateway_attempts_total", alias="smart", **deployment, **kinds) == 1
    assert of("gateway_requests_in_flight", alias="smart") == 0


def test_what_is_not_known_is_not_observed(metrics: Metrics) -> None:
    failed = ATTEMPT._replace(
        fault="upstream_server",
        input_tokens=None,
        output_tokens=None,
        cache_read=None,
        cache_write=None,
        cost_nano=None,
    )
    one_call(metrics, CALL._replace(status=502, fault="upstream_server", ttft=None), failed)
    names = {name for name, _ in samples(metrics)}
    assert "gen_ai_client_token_usage_count" not in names
    assert "gateway_cost_nano_dollars_total" not in names
    assert "gen_ai_server_time_to_first_token_seconds_count" not in names


@pytest.mark.parametrize("tokens", [None, 0, 1])
def test_time_per_token_needs_two_tokens(metrics: Metrics, tokens: int | None) -> None:
    one_call(metrics, CALL._replace(output_tokens=tokens))
    assert not any("time_per_output_token" in name for name, _ in samples(metrics))


@pytest.mark.parametrize("calls", [1, MANY - 1, MANY, 3 * MANY + 5])
def test_calls_are_counted_together_as_one_by_one(metrics: Metrics, calls: int) -> None:
    """Whoever looks after each call sees what is seen by who looks after all of them."""
    rng = random.Random(calls)
    looked_at = Metrics("1.2.3")
    looked_at.know(["smart", "fast"], [("openai", "gpt"), ("anthropic", "claude")])
    maybe = lambda number: rng.choice([None, 0, number])  # noqa: E731
    for _ in range(calls):
        fault = rng.choice(["", "", "upstream_server", "unheard of"])
        alias, taken = rng.choice(["smart", "fast", "unheard of"]), rng.random() * 20
        call = CALL._replace(
            alias=alias,
            status=rng.choice([200, 502]),
            fault=fault,
            seconds=taken,
            ttft=maybe(rng.random()),
            output_tokens=maybe(rng.randrange(3000)),
            stream=rng.random() < 0.5,
        )
        used = (maybe(100), maybe(rng.randrange(9000)), maybe(7), maybe(8), maybe(10**6))
        attempt = AttemptEnd(alias, "chat", "openai", "gpt", "retry", fault, taken, *used)
        for each in (metrics, looked_at):
            one_call(each, call, attempt)
        looked_at.render()
    ours = {name: number for name, number in samples(metrics).items() if "process" not in name[0]}
    theirs = samples(looked_at)
    for name, number in ours.items():
        assert number == pytest.approx(theirs[name]), name
    assert ours.keys() == {name for name in theirs if "process" not in name[0]}


def test_ten_thousand_invented_names_make_no_new_series(metrics: Metrics) -> None:
    def strange(n: int) -> None:
        one_call(
            metrics,
            CALL._replace(alias=f"m{n}", operation=f"o{n}", provider=f"p{n}", fault=f"f{n}"),
            ATTEMPT._replace(alias=f"m{n}", provider=f"p{n}", model=f"x{n}", kind=f"k{n}"),
        )

    one_call(metrics)
    strange(0)
    before = set(samples(metrics))
    for n in range(1, 10_000):
        strange(n)
    after = samples(metrics)
    assert set(after) == before
    assert not any(
        re.search(r"[a-z]\d", v) for _, labels in after for k, v in labels if k == "alias"
    )
    other = {"alias": "other", "status": "200", "fault": "other"}
    assert value(metrics, "gateway_requests_total", **other) == 10_000
    cached = len(metrics._started) + len(metrics._calls) + len(metrics._attempts)
    assert cached == 3, "the look-up cache is bounded as well"


def test_a_reload_brings_new_names_and_keeps_old_numbers(metrics: Metrics) -> None:
    one_call(metrics)
    metrics.know(["new"], [("openai", "gpt-next")])
    one_call(metrics, CALL._replace(alias="new"), ATTEMPT._replace(alias="new", model="gpt-next"))
    assert value(metrics, "gateway_requests_total", alias="smart", status="200", fault="") == 1
    assert value(metrics, "gateway_requests_total", alias="new", status="200", fault="") == 1
    one_call(metrics)
    assert value(metrics, "gateway_requests_total", alias="other", status="200", fault="") == 1


@pytest.mark.parametrize("names", [[], ["smart"]])
def test_a_call_over_a_reload_leaves_nothing_under_way(metrics: Metrics, names: list[str]) -> None:
    metrics.know(["smart"] if not names else [], [("openai", "gpt")])
    under_way = metrics.call_started("smart")
    metrics.know(names, [("openai", "gpt")])
    metrics.call_ended(CALL, under_way)
    name = "gateway_requests_in_flight"
    left = {labels: number for (of, labels), number in samples(metrics).items() if of == name}
    assert left
    assert set(left.values()) == {0}


def test_every_kind_and_status_has_a_label_of_its_own() -> None:
    assert set(KINDS) < CLOSED_SETS["fault"]
    assert {str(row.status) for row in KINDS.values()} < CLOSED_SETS["status"]


def test_gauges_are_read_at_each_scrape(metrics: Metrics) -> None:
    depth, states = [3], {"openai/gpt": "open", "gone/model": "open"}
    metrics.watch_queue("writer", lambda: depth[0])
    metrics.watch_breakers(lambda: states)
    metrics.call_started("smart")
    assert value(metrics, "gateway_queue_depth", queue="writer") == 3
    gpt = {"provider": "openai", "model": "gpt"}
    assert value(metrics, "gateway_breaker_state", **gpt, state="open") == 1
    assert value(metrics, "gateway_breaker_state", **gpt, state="closed") == 0
    claude = {"provider": "anthropic", "model": "claude", "state": "closed"}
    assert value(metrics, "gateway_breaker_state", **claude) == 1
    assert value(metrics, "gateway_requests_in_flight", alias="smart") == 1
    assert not any("gone" in dict(labels).values() for _, labels in samples(metrics))
    depth[0] = 0
    states.clear()
    assert value(metrics, "gateway_queue_depth", queue="writer") == 0
    assert value(metrics, "gateway_breaker_state", **gpt, state="closed") == 1


def test_the_rest_of_the_table(metrics: Metrics) -> None:
    metrics.committed(12, 0.004)
    metrics.lag(0.03)
    metrics.line_dropped()
    assert value(metrics, "gateway_store_group_size_sum") == 12
    assert value(metrics, "gateway_store_commit_seconds_sum") == 0.004
    assert value(metrics, "gateway_event_loop_lag_seconds_sum") == 0.03
    assert value(metrics, "gateway_log_lines_dropped_total") == 1
    assert any(
        name == "gateway_build_info" and dict(labels)["version"] == "1.2.3"
        for name, labels in samples(metrics)
    )


def test_nothing_is_global() -> None:
    before = {family.name for family in REGISTRY.collect()}
    first, second = Metrics(), Metrics()
    first.know(["a"], [])
    second.know(["a"], [])
    one_call(first, CALL._replace(alias="a"))
    assert {family.name for family in REGISTRY.collect()} == before
    assert not any(name == "gateway_requests_total" for name, _ in samples(second))


ENDINGS = {"seconds", "info", "total", "state", "usage", "size", "flight", "depth"}
"""Base units, or what is counted where there is no unit."""


def test_names_follow_the_rules_that_promtool_checks(metrics: Metrics) -> None:
    one_call(metrics)
    kind, text = metrics.render()
    assert kind.startswith("text/plain")
    lines = text.decode().splitlines()
    exposed = {line.split()[2] for line in lines if line.startswith("# TYPE")}
    helped = {line.split()[2] for line in lines if line.startswith("# HELP") and line.split()[3:]}
    assert exposed == helped, "each metric has its help"
    assert not any("_created" in line for line in lines)
    for spec in METRICS:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", spec.name)
        assert spec.name.endswith("_total") == (spec.type == "counter")
        assert spec.name.rsplit("_", 1)[-1] in ENDINGS
        assert spec.help.endswith(".")
        assert spec.type not in spec.name.split("_")
        assert (spec.type == "histogram") == bool(spec.buckets)
        assert list(spec.buckets) == sorted(spec.buckets)
        assert "le" not in spec.labels


def test_the_docs_list_exactly_the_table() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| ([^|]*) \| ([^|]+) \|$", DOCS.read_text(), re.M)
    documented = {
        name: (kind, tuple(re.findall(r"`(\w+)`", labels)), text.strip())
        for name, kind, labels, text in rows
    }
    assert documented == {spec.name: (spec.type, spec.labels, spec.help) for spec in METRICS}


def test_the_whole_set_of_a_call_is_cheap(metrics: Metrics) -> None:
    calls = 5_000
    assert timeit(lambda: one_call(metrics), number=calls) / calls < 50e-6  # measured: 2 µs
