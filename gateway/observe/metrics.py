"""The few calls that fill the metrics of :mod:`gateway.observe.table`, and their exposition.

Label values are bounded: what is not known from the configuration or a closed set is ``other``,
so that no caller can make series (fault kind K08). Nothing is global: each :class:`Metrics` has
its own registry.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, NamedTuple

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from gateway.observe.table import CLOSED_SETS, METRICS, MODEL, PROVIDER, STATES, Spec

OTHER = "other"
"""The value of a label that nobody foresaw."""


class CallEnd(NamedTuple):
    """The end of a call. ``provider`` answered last (empty: none was asked); ``fault`` is a kind
    or empty; ``ttft`` and ``output_tokens`` are ``None`` where there were none or not known."""

    alias: str
    operation: str
    provider: str
    status: int
    fault: str
    seconds: float
    ttft: float | None = None
    output_tokens: int | None = None
    stream: bool = False


class AttemptEnd(NamedTuple):
    """The end of one attempt. Token fields hold the provider's own numbers, else ``None``;
    ``cost_nano`` is what the ledger charges, estimated or not."""

    alias: str
    operation: str
    provider: str
    model: str
    kind: str
    fault: str
    seconds: float
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read: int | None = None
    cache_write: int | None = None
    cost_nano: int | None = None


class _Family:
    """A metric with its children resolved once: a dictionary look-up on the hot path.

    Only combinations of known values are remembered, so the cache is as bounded as the series.
    """

    __slots__ = ("_bound", "_children", "_labels", "metric")

    def __init__(
        self, metric: Any, labels: tuple[str, ...], bound: Callable[[str, str], str]
    ) -> None:
        self.metric = metric
        self._labels = labels
        self._bound = bound
        self._children: dict[tuple[str, ...], Any] = {}

    def at(self, *values: str) -> Any:
        child = self._children.get(values)
        if child is None:
            bounded = tuple(map(self._bound, self._labels, values))
            child = self.metric.labels(*bounded)
            if bounded == values:
                self._children[values] = child
        return child

    def forget(self) -> None:
        self._children.clear()


_TYPES: Mapping[str, Callable[..., MetricWrapperBase]] = {"counter": Counter, "gauge": Gauge}


def _build(spec: Spec, registry: CollectorRegistry) -> MetricWrapperBase:
    if spec.type == "histogram":
        return Histogram(spec.name, spec.help, spec.labels, registry=registry, buckets=spec.buckets)
    return _TYPES[spec.type](spec.name, spec.help, spec.labels, registry=registry)


class _WithoutCreated:
    """A registry seen without ``_created`` samples, which would double the number of series."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterable[Metric]:
        for metric in self._registry.collect():
            metric.samples = [s for s in metric.samples if not s.name.endswith("_created")]
            yield metric


class Metrics:
    """The gateway's metrics; one instance serves one process (case M02)."""

    def __init__(self, version: str = "") -> None:
        self._registry = CollectorRegistry()
        self._known: dict[str, Collection[str]] = dict(CLOSED_SETS)
        self._deployments: tuple[tuple[str, str], ...] = ()
        self._families = {
            spec.name: _Family(_build(spec, self._registry), spec.labels, self._bound)
            for spec in METRICS
        }
        self._queues: dict[str, Callable[[], int]] = {}
        self._breakers: Callable[[], Mapping[str, str]] = dict
        ProcessCollector(registry=self._registry)
        build = self._families["gateway_build_info"].metric
        build.labels(version, platform.python_version()).set(1)
        of = self._families
        self._request = of["gen_ai_server_request_duration_seconds"]
        self._first_token = of["gen_ai_server_time_to_first_token_seconds"]
        self._per_token = of["gen_ai_server_time_per_output_token_seconds"]
        self._attempt = of["gen_ai_client_operation_duration_seconds"]
        self._tokens = of["gen_ai_client_token_usage"]
        self._answered = of["gateway_requests_total"]
        self._attempts = of["gateway_attempts_total"]
        self._cost = of["gateway_cost_nano_dollars_total"]
        self._cached = of["gateway_cached_tokens_total"]
        self._in_flight = of["gateway_requests_in_flight"]
        self._group = of["gateway_store_group_size"].metric
        self._commit = of["gateway_store_commit_seconds"].metric
        self._lag = of["gateway_event_loop_lag_seconds"].metric
        self._dropped_lines = of["gateway_log_lines_dropped_total"].metric

    def know(self, aliases: Collection[str], deployments: Iterable[tuple[str, str]]) -> None:
        """Take the names that labels may hold: aliases, and deployments as
        ``(provider, model)``. Called at start and after each reload; old series stay."""
        self._deployments = tuple(dict.fromkeys(deployments))
        providers = frozenset({"", *(provider for provider, _ in self._deployments)})
        models = frozenset(model for _, model in self._deployments)
        self._known.update(
            {
                "alias": frozenset(aliases),
                "provider": providers,
                "model": models,
                PROVIDER: providers,
                MODEL: models | frozenset(aliases),
            }
        )
        for family in self._families.values():
            family.forget()

    def _bound(self, label: str, value: str) -> str:
        return value if value in self._known.get(label, ()) else OTHER

    # the hot path

    def call_started(self, alias: str) -> None:
        """A call is under way; :meth:`call_ended` must follow, whatever happens."""
        self._in_flight.at(alias).inc()

    def call_ended(self, end: CallEnd) -> None:
        """A call has been answered, or given up."""
        self._in_flight.at(end.alias).dec()
        self._answered.at(end.alias, str(end.status), end.fault).inc()
        names = (end.operation, end.provider, end.alias)
        self._request.at(*names, end.fault).observe(end.seconds)
        if end.fault or end.ttft is None:
            return
        self._first_token.at(*names).observe(end.ttft)
        if end.stream and end.output_tokens is not None and end.output_tokens > 1:
            spent = max(0.0, end.seconds - end.ttft)
            self._per_token.at(*names).observe(spent / (end.output_tokens - 1))

    def attempt_ended(self, end: AttemptEnd) -> None:
        """An attempt's row has been settled."""
        names = (end.operation, end.provider, end.model)
        self._attempts.at(end.alias, end.provider, end.model, end.kind, end.fault).inc()
        self._attempt.at(*names, end.fault).observe(end.seconds)
        if end.input_tokens is not None:
            self._tokens.at(*names, "input").observe(end.input_tokens)
        if end.output_tokens is not None:
            self._tokens.at(*names, "output").observe(end.output_tokens)
        if end.cache_read:
            self._cached.at(end.provider, end.model, "read").inc(end.cache_read)
        if end.cache_write:
            self._cached.at(end.provider, end.model, "write").inc(end.cache_write)
        if end.cost_nano:
            self._cost.at(end.alias, end.provider, end.model).inc(end.cost_nano)

    # the rest

    def committed(self, writes: int, seconds: float) -> None:
        """The store committed a group."""
        self._group.observe(writes)
        self._commit.observe(seconds)

    def lag(self, seconds: float) -> None:
        """The event loop woke the sampler this late."""
        self._lag.observe(seconds)

    def line_dropped(self) -> None:
        """A log line was thrown away."""
        self._dropped_lines.inc()

    def watch_queue(self, name: str, depth: Callable[[], int]) -> None:
        """Read ``depth`` at each scrape. ``name`` is the program's own, never a caller's."""
        self._queues[name] = depth

    def watch_breakers(self, states: Callable[[], Mapping[str, str]]) -> None:
        """Read states by ``provider/model`` at each scrape; who is not in there is closed."""
        self._breakers = states

    def render(self) -> tuple[str, bytes]:
        """The content type and body of ``GET /metrics``."""
        queues = self._families["gateway_queue_depth"].metric
        for name, depth in self._queues.items():
            queues.labels(name).set(depth())
        self._refresh_breakers()
        return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(_WithoutCreated(self._registry))

    def _refresh_breakers(self) -> None:
        gauge = self._families["gateway_breaker_state"].metric
        gauge.clear()
        now = self._breakers()
        for provider, model in self._deployments:
            current = now.get(f"{provider}/{model}", "closed")
            for state in STATES:
                gauge.labels(provider, model, state).set(state == current)
