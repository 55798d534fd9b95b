"""The table of all metrics: names, labels, buckets, and which label values there may be.

Names follow the OpenTelemetry GenAI conventions where those have one, in Prometheus spelling
(``gen_ai.server.time_to_first_token`` in seconds is ``gen_ai_server_time_to_first_token_seconds``).
``docs/metrics.md`` is tested against it. Data only; :mod:`gateway.observe.metrics` fills them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from adapters.canonical.faults import KINDS
from adapters.canonical.record import record

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


@record(frozen=True, slots=True)
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

BUSY = frozenset(
    {
        "gen_ai_server_request_duration_seconds",
        "gen_ai_server_time_to_first_token_seconds",
        "gen_ai_server_time_per_output_token_seconds",
        "gen_ai_client_operation_duration_seconds",
        "gen_ai_client_token_usage",
        "gateway_requests_total",
        "gateway_attempts_total",
        "gateway_cost_nano_dollars_total",
        "gateway_cached_tokens_total",
        "gateway_requests_in_flight",
        "gateway_store_group_size",
        "gateway_store_commit_seconds",
    }
)
"""What each call counts, all of it in the event loop; the others may be counted in any thread."""

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
