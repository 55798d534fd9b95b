"""The few calls that fill the metrics of :mod:`gateway.observe.table`, and their exposition.

Label values are bounded: what is not known from the configuration or a closed set is ``other``,
so that no caller can make series (fault kind K08). Nothing is global: each :class:`Metrics` has
its own registry.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
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

from gateway.observe.series import Number, Numbers, Spread, Spreads
from gateway.observe.table import (
    BUSY,
    CLOSED_SETS,
    METRICS,
    MODEL,
    OPERATION,
    PROVIDER,
    STATES,
    Spec,
)

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


class _CallSeries(NamedTuple):
    """The series that the calls with the same labels count in."""

    answered: Number
    seconds: Spread
    first_token: Spread
    per_token: Spread

    def take(self, ends: Sequence[CallEnd]) -> None:
        """Count calls that have ended."""
        *_, seconds, first_token, _, stream = zip(*ends, strict=True)
        self.answered.value += len(ends)
        self.seconds.observe_all(seconds)
        if ends[0].fault:
            return  # so have all of them: it is one of the labels
        self.first_token.observe_all(_known(first_token))
        if any(stream):
            self.per_token.observe_all([pace for end in ends if (pace := _pace(end)) is not None])


def _pace(end: CallEnd) -> float | None:
    """Seconds for each token after the first, of a stream with more than one."""
    if not end.stream or end.ttft is None or end.output_tokens is None or end.output_tokens < 2:
        return None
    return max(0.0, end.seconds - end.ttft) / (end.output_tokens - 1)


class _AttemptSeries(NamedTuple):
    """The series that the attempts with the same labels count in."""

    made: Number
    seconds: Spread
    input_tokens: Spread
    output_tokens: Spread
    cache_read: Number
    cache_write: Number
    cost: Number

    def take(self, ends: Sequence[AttemptEnd]) -> None:
        """Count attempts that have ended."""
        *_, seconds, given, made, read, written, cost = zip(*ends, strict=True)
        self.made.value += len(ends)
        self.seconds.observe_all(seconds)
        self.input_tokens.observe_all(_known(given))
        self.output_tokens.observe_all(_known(made))
        self.cache_read.value += sum(filter(None, read))
        self.cache_write.value += sum(filter(None, written))
        self.cost.value += sum(filter(None, cost))


def _known(numbers: tuple[Any, ...]) -> Sequence[Any]:
    return [n for n in numbers if n is not None] if None in numbers else numbers


_call_labels = itemgetter(slice(5))
_attempt_labels = itemgetter(slice(6))
"""What of an end becomes labels."""

MANY = 128
"""Ends that are waited for before they are counted, all in one go: of the steps that a call takes
in here most are then taken once for so many calls."""


_TYPES: Mapping[str, Callable[..., MetricWrapperBase]] = {"counter": Counter, "gauge": Gauge}


def _build(spec: Spec, registry: CollectorRegistry) -> MetricWrapperBase:
    """A metric that may be counted in any thread."""
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
    """The gateway's metrics; one instance serves one process (case M02).

    Calls and attempts are counted by the event loop alone; the series of each are found once.
    Only combinations of known label values are remembered, so that is as bounded as the series.
    """

    def __init__(self, version: str = "") -> None:
        self._registry = CollectorRegistry()
        self._known: dict[str, Collection[str]] = dict(CLOSED_SETS)
        self._deployments: tuple[tuple[str, str], ...] = ()
        self._of: dict[str, Any] = {}
        for spec in METRICS:
            if spec.name not in BUSY:
                self._of[spec.name] = _build(spec, self._registry)
                continue
            series = Spreads(spec) if spec.type == "histogram" else Numbers(spec)
            self._registry.register(series)
            self._of[spec.name] = series
        self._started: dict[str, Number] = {}
        self._calls: dict[tuple[Any, ...], _CallSeries] = {}
        self._attempts: dict[tuple[str, ...], _AttemptSeries] = {}
        self._ended_calls: list[CallEnd] = []
        self._ended_attempts: list[AttemptEnd] = []
        self._queues: dict[str, Callable[[], int]] = {}
        self._breakers: Callable[[], Mapping[str, str]] = dict
        ProcessCollector(registry=self._registry)
        build = self._of["gateway_build_info"]
        build.labels(version, platform.python_version()).set(1)
        self._group = self._of["gateway_store_group_size"].at()
        self._commit = self._of["gateway_store_commit_seconds"].at()
        self._lag = self._of["gateway_event_loop_lag_seconds"]
        self._dropped_lines = self._of["gateway_log_lines_dropped_total"]

    def know(self, aliases: Collection[str], deployments: Iterable[tuple[str, str]]) -> None:
        """Take the names that labels may hold: aliases, and deployments as
        ``(provider, model)``. Called at start and after each reload; old series stay."""
        self._count()
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
        self._started.clear()
        self._calls.clear()
        self._attempts.clear()

    def _bounded(self, labels: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
        known = self._known
        pairs = zip(labels, values, strict=True)
        return tuple(value if value in known.get(label, ()) else OTHER for label, value in pairs)

    # the hot path

    def call_started(self, alias: str) -> Number:
        """A call is under way; :meth:`call_ended` must follow, whatever happens, with what this
        returns: a reload may have taken the alias's name away by then."""
        series = self._started.get(alias)
        if series is None:
            (known,) = self._bounded(("alias",), (alias,))
            series = self._of["gateway_requests_in_flight"].at(known)
            if known == alias:
                self._started[alias] = series
        series.value += 1
        return series

    def call_ended(self, end: CallEnd, under_way: Number) -> None:
        """A call has been answered, or given up."""
        under_way.value -= 1
        ended = self._ended_calls
        ended.append(end)
        if len(ended) >= MANY:
            self._count()

    def _call_series(self, end: CallEnd) -> _CallSeries:
        given = (end.alias, end.operation, end.provider, str(end.status), end.fault)
        bounded = self._bounded(("alias", OPERATION, PROVIDER, "status", "fault"), given)
        alias, operation, provider, status, fault = bounded
        names = (operation, provider, alias)
        of = self._of
        found = _CallSeries(
            of["gateway_requests_total"].at(alias, status, fault),
            of["gen_ai_server_request_duration_seconds"].at(*names, fault),
            of["gen_ai_server_time_to_first_token_seconds"].at(*names),
            of["gen_ai_server_time_per_output_token_seconds"].at(*names),
        )
        if bounded == given:
            self._calls[end[:5]] = found
        return found

    def attempt_ended(self, end: AttemptEnd) -> None:
        """An attempt's row has been settled."""
        ended = self._ended_attempts
        ended.append(end)
        if len(ended) >= MANY:
            self._count()

    def _count(self) -> None:
        """Count whatever has ended since the last time; whoever reads the series does it first."""
        calls, self._ended_calls = self._ended_calls, []
        attempts, self._ended_attempts = self._ended_attempts, []
        for labels, alike in groupby(sorted(calls, key=_call_labels), _call_labels):
            answered = list(alike)
            (self._calls.get(labels) or self._call_series(answered[0])).take(answered)
        for labels, similar in groupby(sorted(attempts, key=_attempt_labels), _attempt_labels):
            tried = list(similar)
            (self._attempts.get(labels) or self._attempt_series(tried[0])).take(tried)

    def _attempt_series(self, end: AttemptEnd) -> _AttemptSeries:
        given = (end.alias, end.operation, end.provider, end.model, end.kind, end.fault)
        labels = ("alias", OPERATION, "provider", "model", "kind", "fault")
        bounded = self._bounded(labels, given)
        alias, operation, provider, model, kind, fault = bounded
        names = (operation, provider, model)
        of = self._of
        found = _AttemptSeries(
            of["gateway_attempts_total"].at(alias, provider, model, kind, fault),
            of["gen_ai_client_operation_duration_seconds"].at(*names, fault),
            of["gen_ai_client_token_usage"].at(*names, "input"),
            of["gen_ai_client_token_usage"].at(*names, "output"),
            of["gateway_cached_tokens_total"].at(provider, model, "read"),
            of["gateway_cached_tokens_total"].at(provider, model, "write"),
            of["gateway_cost_nano_dollars_total"].at(alias, provider, model),
        )
        if bounded == given:
            self._attempts[given] = found
        return found

    # the rest

    def committed(self, writes: int, seconds: float) -> None:
        """The store committed a group; told in the event loop."""
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
        self._count()
        queues = self._of["gateway_queue_depth"]
        for name, depth in self._queues.items():
            queues.labels(name).set(depth())
        self._refresh_breakers()
        return CONTENT_TYPE_PLAIN_0_0_4, generate_latest(_WithoutCreated(self._registry))

    def _refresh_breakers(self) -> None:
        gauge = self._of["gateway_breaker_state"]
        gauge.clear()
        now = self._breakers()
        for provider, model in self._deployments:
            current = now.get(f"{provider}/{model}", "closed")
            for state in STATES:
                gauge.labels(provider, model, state).set(state == current)
