"""The numbers of the metrics that every call touches, counted without a lock.

``prometheus_client`` takes a lock and a handful of calls for each number, because any thread may
count; what counts here is one event loop. Its registry reads these families at each scrape, like
its own. Must not know which labels are allowed.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector
from prometheus_client.utils import INF, floatToGoString

from gateway.observe.table import Spec


class Number:
    """A counter or a gauge: add to ``value``."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0.0


class Spread:
    """A histogram. ``bounds`` are the buckets' upper ends, each a part of its bucket."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def observe(self, value: float) -> None:
        """Count ``value`` in."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def observe_all(self, values: Sequence[float]) -> None:
        """Count many values in: one look for each bucket, not for each value."""
        ordered = sorted(values)
        below = 0
        for place, bound in enumerate(self.bounds):
            within = bisect_right(ordered, bound)
            self.counts[place] += within - below
            below = within
        self.counts[-1] += len(ordered) - below
        self.sum = sum(values, self.sum)


class Numbers(Collector):
    """A gauge, or a counter of which series are shown once something is counted."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._series: dict[tuple[str, ...], Number] = {}

    def at(self, *values: str) -> Number:
        """The series with these values of the labels; it stays for good."""
        return self._series.setdefault(values, Number())

    def collect(self) -> Iterator[Metric]:
        """What a scrape sees."""
        spec = self._spec
        is_gauge = spec.type == "gauge"
        make = GaugeMetricFamily if is_gauge else CounterMetricFamily
        family = make(spec.name, spec.help, labels=spec.labels)
        for values, series in self._series.items():
            if is_gauge or series.value:
                family.add_metric(values, series.value)
        yield family


class Spreads(Collector):
    """A histogram, of which series are shown once something is counted; without labels it shows
    its one series from the start."""

    def __init__(self, spec: Spec) -> None:
        self._spec = spec
        self._series: dict[tuple[str, ...], Spread] = {}
        ends = (*spec.buckets, INF)
        self._ends = [floatToGoString(end) for end in ends]  # type: ignore[no-untyped-call]
        if not spec.labels:
            self.at()

    def at(self, *values: str) -> Spread:
        """The series with these values of the labels; it stays for good."""
        return self._series.setdefault(values, Spread(self._spec.buckets))

    def collect(self) -> Iterator[Metric]:
        """What a scrape sees."""
        spec = self._spec
        family = HistogramMetricFamily(spec.name, spec.help, labels=spec.labels)
        for values, series in self._series.items():
            if any(series.counts) or not spec.labels:
                buckets = list(zip(self._ends, accumulate(series.counts), strict=True))
                family.add_metric(values, buckets, series.sum)
        yield family
