"""A streamed answer as the Messages API writes it.

``message_start``, blocks one after another, ``message_delta`` with the reason and the counts,
``message_stop``. The prompt's size may not be known when a stream of another protocol opens:
then ``message_start`` says 0, and ``message_delta`` has the counts that hold (case S11). If the
provider spoke the same dialect its own frames are relayed (:mod:`.relay`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from adapters.canonical.events import (
    ArgumentsDelta,
    Event,
    Failed,
    Finished,
    OpaqueEvent,
    PartAnnotated,
    PartEnded,
    PartStarted,
    Started,
    Terminal,
    TextDelta,
    TextRun,
    ThinkingDelta,
    Usage,
    UsageReported,
    Verbatim,
)
from adapters.canonical.parts import Dialect
from adapters.wire.anthropic_messages import NAME
from adapters.wire.json import dumps
from adapters.wire.plain import expanded
from adapters.wire.sse import frame
from gateway.northbound import errors
from gateway.northbound.anthropic_messages import answer
from gateway.northbound.anthropic_messages.blocks import Blocks
from gateway.northbound.anthropic_messages.relay import STOP, Relay
from gateway.northbound.base import Envelope


class StreamEncoder:
    """One streamed answer; see :class:`gateway.northbound.base.StreamEncoder`."""

    PING: ClassVar[bytes] = frame(b'{"type": "ping"}', "ping")
    told = None

    __slots__ = (
        "_blocks",
        "_dialect",
        "_envelope",
        "_relay",
        "_relaying",
        "_start",
        "_usage",
    )

    def __init__(self, envelope: Envelope) -> None:
        self._envelope = envelope
        self._relay = Relay(envelope)
        self._relaying = False
        self._blocks = Blocks(own=False)
        self._dialect: Dialect | None = None
        self._usage: Usage | None = None
        self._start: dict[str, Any] | None = None
        """The opening message, until it is written: counts may still join it."""

    # ----------------------------------------------------------------- the interface

    def feed(self, events: list[Event]) -> bytes:
        """The frames for ``events``; those that a relayed frame decodes to are only watched."""
        out: list[bytes] = []
        for event in events:
            if isinstance(event, TextRun):
                out.append(self._run(event))
            elif isinstance(event, Verbatim):
                # A whole body, which a provider may answer a stream with, has no name.
                self._relaying = event.dialect == NAME and event.name != ""
                if self._relaying:
                    out.append(self._relay.feed(event))
            elif not self._relaying:
                writer = _WRITERS.get(type(event))
                if writer is not None:
                    out.append(writer(self, event))
        if self._start is not None:
            out.append(self._opening())
        return b"".join(out)

    def _run(self, run: TextRun) -> bytes:
        """Text that its decoder has not looked at; nor need we, where frames are relayed."""
        written = self._relay.run(run) if self._relaying else None
        return self.feed(expanded(run)) if written is None else written

    def verdict(self, told: Mapping[str, Any]) -> bytes:
        """An event of the gateway's own, which the vendor's SDKs pass over."""
        return self._opening() + _frame({"type": "gateway_structured", **told})

    def finish(self, terminal: Terminal) -> bytes:
        """The end of the stream; see the interface."""
        if isinstance(terminal, Failed):
            return frame(errors.body(terminal.fault, NAME), "error")
        if self._relaying:
            return self._relay.finish()
        return self._opening() + self._ending(terminal) + STOP

    # ----------------------------------------------------------------- the message

    def _started(self, event: Started) -> bytes:
        self._dialect = event.dialect
        self._blocks = Blocks(own=event.dialect == NAME)
        self._start = {
            "id": answer.message_id(event.id, event.dialect, self._envelope.id),
            "type": "message",
            "role": "assistant",
            "model": answer.model_name(event.model, self._envelope),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            **answer.own_extras(event.extras, event.dialect),
        }
        return b""

    def _opening(self) -> bytes:
        """``message_start``, once, with the counts that came with it."""
        start, self._start = self._start, None
        if start is None:
            return b""
        start["usage"] = answer.usage(self._usage, self._dialect)
        return _frame({"type": "message_start", "message": start})

    def _usage_reported(self, event: UsageReported) -> bytes:
        self._usage = event.usage
        return b""

    def _part(self, event: Any) -> bytes:
        written = [_frame(one) for one in self._blocks.take(event.index, event)]
        return b"".join([self._opening(), *written])

    def _opaque(self, event: OpaqueEvent) -> bytes:
        if event.dialect != NAME or event.name.startswith("content_block_"):
            return b""  # Another protocol's event, or one about a block that is told anew.
        return self._opening() + frame(dumps(event.data), event.name)

    def _ending(self, finished: Finished) -> bytes:
        delta = answer.ending(finished, self._dialect)
        extras = dict(answer.own_extras(finished.extras, self._dialect))
        beside = {name: extras.pop(name) for name in _BESIDE if name in extras}
        return _frame(
            {
                "type": "message_delta",
                "delta": {**delta, **extras},
                "usage": answer.usage(self._usage, self._dialect),
                **beside,
            }
        )


_BESIDE = ("context_management", "input_transformations")
"""Fields of an ending that stand beside its ``delta``, not in it."""


def _frame(event: dict[str, Any]) -> bytes:
    return frame(dumps(event), event["type"])


_WRITERS: Mapping[type, Callable[[StreamEncoder, Any], bytes]] = {
    Started: StreamEncoder._started,
    UsageReported: StreamEncoder._usage_reported,
    PartStarted: StreamEncoder._part,
    TextDelta: StreamEncoder._part,
    ThinkingDelta: StreamEncoder._part,
    ArgumentsDelta: StreamEncoder._part,
    PartAnnotated: StreamEncoder._part,
    PartEnded: StreamEncoder._part,
    OpaqueEvent: StreamEncoder._opaque,
}
"""A row for every event that ``feed`` may see but ``Verbatim``, which decides the path."""
