"""Chooses who makes the spans: OpenTelemetry where it is switched on and installed, else nobody.

OpenTelemetry is imported only when switched on, because it would slow every start.
"""

from __future__ import annotations

from typing import Any

from gateway.observe.traces import NoTracer, Tracer


class TracingUnavailable(Exception):
    """Tracing is switched on, but the ``otel`` extra is not installed."""


def tracer(*, enabled: bool, version: str = "", exporter: Any = None) -> Tracer:
    """A tracer that sends to the OTLP endpoint of the standard ``OTEL_*`` environment.

    :param exporter: an OpenTelemetry span exporter to use in its place.
    :raises TracingUnavailable: with the command that installs what is missing.
    """
    if not enabled:
        return NoTracer()
    try:
        from gateway.observe.otel import OtelTracer  # noqa: PLC0415 - imported only when needed
    except ImportError as missing:
        raise TracingUnavailable(
            f"Tracing is on, but {missing.name} is not installed. Install the extra: "
            "pip install 'llm-gateway[otel]', or switch tracing off."
        ) from missing
    return OtelTracer(version, exporter)
