"""Series that are counted without a lock look at each scrape as the client's own do."""

from __future__ import annotations

import random

import pytest
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from gateway.observe.series import Numbers, Spread, Spreads
from gateway.observe.table import METRICS, Spec

SHARED = [spec for spec in METRICS if spec.labels or spec.type == "histogram"]
OWN = {"counter": Counter, "gauge": Gauge}


def text(registry: CollectorRegistry) -> list[str]:
    lines = generate_latest(registry).decode().splitlines()
    return [line for line in lines if "_created" not in line]


@pytest.mark.parametrize("spec", SHARED, ids=lambda spec: spec.name)
def test_the_text_is_that_of_the_client(spec: Spec) -> None:
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    rng = random.Random(7)
    places = [tuple(f'{name} "{n}"\\' for name in spec.labels) for n in range(3)]
    if spec.type == "histogram":
        spreads = Spreads(spec)
        ours.register(spreads)
        histogram = Histogram(
            spec.name, spec.help, spec.labels, registry=theirs, buckets=spec.buckets
        )
        values = [0, 0.0, *spec.buckets, spec.buckets[-1] * 2, *(rng.random() for _ in range(50))]
        for value in values:
            place = rng.choice(places)
            spreads.at(*place).observe(value)
            (histogram.labels(*place) if place else histogram).observe(value)
    else:
        numbers = Numbers(spec)
        ours.register(numbers)
        metric = OWN[spec.type](spec.name, spec.help, spec.labels, registry=theirs)
        for _ in range(50):
            place, amount = rng.choice(places), rng.choice([1, 7, 0.25, 10**12])
            numbers.at(*place).value += amount
            metric.labels(*place).inc(amount)
    assert text(ours) == text(theirs)


@pytest.mark.parametrize("many", [0, 1, 200])
def test_many_values_are_counted_as_one_by_one(many: int) -> None:
    rng = random.Random(many)
    for spec in [spec for spec in SHARED if spec.type == "histogram"]:
        edges = [0, *spec.buckets, spec.buckets[-1] * 2]
        values = [rng.choice([rng.random() * edges[-1], rng.choice(edges)]) for _ in range(many)]
        one_by_one, at_once = Spread(spec.buckets), Spread(spec.buckets)
        for spread in (one_by_one, at_once):
            spread.observe(edges[1])
        for value in values:
            one_by_one.observe(value)
        at_once.observe_all(values)
        assert at_once.counts == one_by_one.counts
        assert at_once.sum == pytest.approx(one_by_one.sum)


def test_a_series_of_which_nothing_is_counted_is_not_shown() -> None:
    registry = CollectorRegistry()
    counter = Numbers(Spec("a_total", "counter", "A.", ("x",)))
    histogram = Spreads(Spec("b_seconds", "histogram", "B.", ("x",), (1.0, 2.0)))
    gauge = Numbers(Spec("c", "gauge", "C.", ("x",)))
    for collector in (counter, histogram, gauge):
        registry.register(collector)
        collector.at("y")
    samples = [line for line in text(registry) if not line.startswith("#")]
    assert samples == ['c{x="y"} 0.0'], "a gauge at nothing says something"


def test_one_without_labels_is_shown_before_anything_is_counted() -> None:
    spec = Spec("b_seconds", "histogram", "B.", (), (1.0, 2.0))
    ours, theirs = CollectorRegistry(), CollectorRegistry()
    ours.register(Spreads(spec))
    Histogram(spec.name, spec.help, registry=theirs, buckets=spec.buckets)
    assert text(ours) == text(theirs)
