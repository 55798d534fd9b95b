"""Trace context in and out, and spans after the OpenTelemetry GenAI conventions.

``traceparent`` is read and written without any library (W3C Trace Context, version 00). Where
tracing is off every span is the one :data:`NO_SPAN`, which costs next to nothing. Attributes are
names and numbers, never content. Who makes real spans is :mod:`gateway.observe.tracer`'s matter.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Protocol

from adapters.canonical.record import record

Value = str | int | float | bool | tuple[str, ...]

_TRACEPARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


@record(frozen=True, slots=True)
class TraceContext:
    """Where a call belongs: ``trace_id`` 32 and ``span_id`` 16 lower-case hexadecimal digits."""

    trace_id: str
    span_id: str
    sampled: bool = False

    def header(self) -> str:
        """The value of ``traceparent``."""
        return f"00-{self.trace_id}-{self.span_id}-{'01' if self.sampled else '00'}"

    def child(self) -> TraceContext:
        """The same trace with a fresh span id, for a call that leaves."""
        return TraceContext(self.trace_id, secrets.token_hex(8), self.sampled)


def parse(header: str | None) -> TraceContext | None:
    """The context in a ``traceparent`` header; ``None`` where it is absent or invalid.

    A higher version may carry more fields after the flags; version ``ff`` is forbidden, and so
    are ids of zeros (W3C Trace Context, section 3.2.2).
    """
    match = _TRACEPARENT.fullmatch(header.strip()) if header is not None else None
    if match is None:
        return None
    version, trace_id, span_id, flags, rest = match.groups()
    if version == "ff" or (version == "00" and rest is not None):
        return None
    if not trace_id.strip("0") or not span_id.strip("0"):
        return None
    return TraceContext(trace_id, span_id, bool(int(flags, 16) & 1))


def fresh() -> TraceContext:
    """A new trace, not sampled: the gateway's own id for a call that came without one."""
    return TraceContext(secrets.token_hex(16), secrets.token_hex(8))


class Span(Protocol):
    """A span under way. ``end`` must be called exactly once."""

    @property
    def context(self) -> TraceContext | None:
        """What goes into ``traceparent`` of calls made inside; ``None`` without tracing."""
        ...

    def set(self, name: str, value: Value | None) -> None:
        """Set an attribute; ``None`` is left out."""
        ...

    def end(self, fault: str | None = None) -> None:
        """End it; ``fault`` is the kind of what went wrong."""
        ...


class Tracer(Protocol):
    """Makes spans."""

    @property
    def makes_spans(self) -> bool:
        """Whether it does; then what a span would say need not be put together."""
        ...

    def span(
        self,
        operation: str,
        model: str,
        attributes: Mapping[str, Value],
        *,
        parent: TraceContext | None = None,
        client: bool = True,
    ) -> Span:
        """Begin ``{operation} {model}``; ``client`` is a call to a provider, else our own."""
        ...

    def close(self) -> None:
        """Send what is left."""
        ...


class _NoSpan:
    __slots__ = ()
    context: TraceContext | None = None

    def set(self, name: str, value: Value | None) -> None:
        pass

    def end(self, fault: str | None = None) -> None:
        pass


NO_SPAN: Span = _NoSpan()
"""The span of a gateway that does not trace."""


class NoTracer:
    """Tracing switched off."""

    __slots__ = ()
    makes_spans = False

    def span(
        self,
        operation: str,
        model: str,
        attributes: Mapping[str, Value],
        *,
        parent: TraceContext | None = None,
        client: bool = True,
    ) -> Span:
        return NO_SPAN

    def close(self) -> None:
        pass
