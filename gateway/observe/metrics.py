"""Every metric of the gateway in one table, and the few calls that fill them.

Names follow the OpenTelemetry GenAI conventions where those have one, in Prometheus spelling
(``gen_ai.server.time_to_first_token`` in seconds is ``gen_ai_server_time_to_first_token_seconds``).
Label values are bounded: what is not known from the configuration or a closed set is ``other``,
so that no caller can make series (fault kind K08). Nothing is global: each :class:`Metrics` has
its own registry. ``docs/metrics.md`` is tested against the table.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.metrics_core import Metric

from adapters.canonical.faults import KINDS

OTHER = "other"
"""The value of a label that nobody foresaw."""

OPERATION, PROVIDER, MODEL = "gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model"
ERROR, TOKEN = "error_type", "gen_ai_token_type"

DURATIONS = tuple(0.01 * 2**n for n in range(17))
"""Seconds: the conventions' buckets (to 81.92), and on to the longest time-out."""
FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0),
    *(20.0, 40.0, 80.0, 160.0, 320.0),
)
PER_TOKEN = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
TOKENS = tuple(float(4**n) for n in range(14))
LAG = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0)
COMMIT = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.5, 1.0)
GROUP = tuple(float(2**n) for n in range(11))


@dataclass(frozen=True, slots=True)
class Spec:
    """One row of the table. ``name`` is as exposed, a counter's ``_total`` included."""

    name: str
    type: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


METRICS: tuple[Spec, ...] = (
    Spec(
        "gen_ai_server_request_duration_seconds",
        "histogram",
        "Time of a whole call as the caller sees it, all attempts included.",
        (OPERATION, PROVIDER, MODEL, ERROR),
        DURATIONS,
    ),
    Spec(
        "gen_ai_server_time_to_first_token_seconds",
        "histogram",
        "Time from the start of a successful call to its first content.",
        (OPERATION, PROVIDER, MODEL),
        FIRST_TOKEN,
    ),
    Spec(
        "gen_ai_server_time_per_output_token_seconds",
        "histogram",
        "Time per output token after the first one, of successful streamed calls.",
        (OPERATION, PROVIDER, MODEL),
        PER_TOKEN,
    ),
    Spec(
        "gen_ai_client_operation_duration_seconds",
        "histogram",
        "Time of one attempt at a provider.",
        (OPERATION, PROVIDER, MODEL, ERROR),
        DURATIONS,
    ),
    Spec(
        "gen_ai_client_token_usage",
        "histogram",
        "Tokens of an attempt as the provider reported them; input includes cached tokens.",
        (OPERATION, PROVIDER, MODEL, TOKEN),
        TOKENS,
    ),
    Spec(
        "gateway_requests_total",
        "counter",
        "Calls answered, by alias, HTTP status and fault; the fault is empty for a success.",
        ("alias", "status", "fault"),
    ),
    Spec(
        "gateway_attempts_total",
        "counter",
        "Attempts at providers, by why they were made and the fault that ended them.",
        ("alias", "provider", "model", "kind", "fault"),
    ),
    Spec(
        "gateway_cost_nano_dollars_total",
        "counter",
        "Money charged for attempts, in billionths of a US dollar, as in the ledger.",
        ("alias", "provider", "model"),
    ),
    Spec(
        "gateway_cached_tokens_total",
        "counter",
        "Input tokens read from or written to a provider's prompt cache.",
        ("provider", "model", "direction"),
    ),
    Spec("gateway_requests_in_flight", "gauge", "Calls under way, by alias.", ("alias",)),
    Spec("gateway_queue_depth", "gauge", "Entries waiting in an internal queue.", ("queue",)),
    Spec(
        "gateway_breaker_state",
        "gauge",
        "1 for the state that a deployment's circuit breaker is in, 0 for the others.",
        ("provider", "model", "state"),
    ),
    Spec(
        "gateway_store_group_size",
        "histogram",
        "Writes that the store committed together in one group.",
        (),
        GROUP,
    ),
    Spec(
        "gateway_store_commit_seconds",
        "histogram",
        "Time that the store took to commit one group of writes.",
        (),
        COMMIT,
    ),
    Spec(
        "gateway_event_loop_lag_seconds",
        "histogram",
        "How late the event loop woke up the sampler: what every other task waits too.",
        (),
        LAG,
    ),
    Spec(
        "gateway_log_lines_dropped_total",
        "counter",
        "Log lines thrown away because the log's queue was full.",
    ),
    Spec(
        "gateway_build_info",
        "gauge",
        "Always 1; the labels say which program runs.",
        ("version", "python"),
    ),
)
"""All metrics but ``process_*``, which the Prometheus client adds."""

STATES = ("closed", "half_open", "open")

CLOSED_SETS: Mapping[str, frozenset[str]] = {
    OPERATION: frozenset({"chat", "embeddings", "invoke_agent", "execute_tool"}),
    TOKEN: frozenset({"input", "output"}),
    ERROR: frozenset({"", *KINDS}),
    "fault": frozenset({"", *KINDS}),
    "status": frozenset({"200", "202", "204", *(str(row.status) for row in KINDS.values())}),
    "kind": frozenset({"first", "retry", "failover", "repair", "more_room", "choice"}),
    "direction": frozenset({"read", "write"}),
    "state": frozenset(STATES),
}
"""Values of labels that do not come from the configuration."""


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
        self._breakers: Callable[[], Iterable[tuple[str, str, str]]] = tuple
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

    def watch_breakers(self, states: Callable[[], Iterable[tuple[str, str, str]]]) -> None:
        """Read ``(provider, model, state)`` at each scrape; who is not told of is closed."""
        self._breakers = states

    def render(self) -> tuple[str, bytes]:
        """The content type and body of ``GET /metrics``."""
        queues = self._families["gateway_queue_depth"].metric
        for name, depth in self._queues.items():
            queues.labels(name).set(depth())
        self._refresh_breakers()
        return CONTENT_TYPE_LATEST, generate_latest(_WithoutCreated(self._registry))

    def _refresh_breakers(self) -> None:
        gauge = self._families["gateway_breaker_state"].metric
        gauge.clear()
        now = {(provider, model): state for provider, model, state in self._breakers()}
        for provider, model in self._deployments:
            current = now.get((provider, model), "closed")
            for state in STATES:
                gauge.labels(provider, model, state).set(state == current)
