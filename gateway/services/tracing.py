"""Whether tracing, where it is switched on, can work here."""

from __future__ import annotations

from importlib.util import find_spec

from gateway.settings.problems import Problem
from gateway.settings.snapshot import ObserveSettings


def check_tracing(observe: ObserveSettings) -> list[Problem]:
    """A problem where spans are wanted and the extra that makes them is not installed."""
    if not observe.tracing or find_spec("opentelemetry") is not None:
        return []
    return [
        Problem(
            "observe.tracing",
            "needs the extra that is not installed: pip install 'llm-gateway[otel]', or switch "
            "tracing off",
        )
    ]
